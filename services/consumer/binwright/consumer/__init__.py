"""The consumer service: reads data partitions, stages their rows and lands them in Delta tables.

`ingest` applies the controllers' commands and the `events` of the other parts; `mailbox` connects
it to the controllers. `partitions` owns each partition until its rows are taken, by means of
`reading` (Kafka's clients); `staging` turns them into announced Parquet files, `writer` announced
files into commits, `lake` makes the commits through Spark.
"""
