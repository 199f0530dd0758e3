"""The Delta tables through Spark Connect: implements the port `Lake`.

`decide.writer` chooses batches and versions, `consumer.writer` calls the port. This package holds
the SQL (`delta`), the sessions (`session`) and what Spark's errors mean (`faults`).
"""
