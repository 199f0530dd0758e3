"""The Delta tables through Spark Connect: implements the port `Lake` (`core.ports.lake`).

Decides nothing about landing: `core.writer` chooses batches and versions, `consumer.writer` calls
the port. This package holds the SQL (`delta`), the sessions (`session`) and what Spark's errors
mean (`faults`). It may import `core`, `runtime` and the columns of `staging.rows`; only it imports
pyspark.
"""
