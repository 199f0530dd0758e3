"""The consumer service: reads data partitions, stages their rows and lands them in Delta tables.

Four rooms, of which none knows a later one: `read` has Kafka's clients, and owns each partition
until its rows are taken; `decode` makes columns of values; `stage` makes announced Parquet files of
rows, and `land` commits of announced files, through Spark. `decide` has what they decide. `ingest`
applies the controllers' commands and the `events` of the rooms; `mailbox` connects it to the
controllers.
"""
