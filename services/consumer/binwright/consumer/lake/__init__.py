"""The Delta tables through Spark Connect: implements the port `Lake` (`protocol.ports.lake`).

`decide.writer` chooses batches and versions, `consumer.writer` calls the port. Here are the
SQL (`delta`), the sessions (`session`) and what Spark's errors mean (`faults`).
"""
