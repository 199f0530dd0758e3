"""The consumer service: reads data partitions, stages their rows and lands them in Delta tables.

`ingest` runs one consumer by the decisions of `core.consumer`; `mailbox` and `outbox` connect it to
the controllers. The packages do the work: `reading` (Kafka into the buffer), `staging` (the buffer
into announced Parquet files), `writer` (announced files into commits), `lake` (commits through
Spark). It may import `core`, `kafka` and `runtime`, no other service.
"""
