"""The Delta tables through Spark Connect: implements the port `Lake`.

`decide.land` chooses batches and versions, `land` calls the port. This package holds
the SQL (`delta`), the sessions (`session`) and what Spark's errors mean (`faults`).
"""
