"""Lands staged files in Delta tables through Spark: one writer per table.

`core.writer` decides; here is what it asks of Spark, Kafka and the staging place. `writers` holds
the tables that this consumer writes, `table_writer` serves one of them. `lake` and what it uses
need pyspark: nothing else here imports them.
"""
