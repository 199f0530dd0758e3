"""Reading: fetches records of data partitions from Kafka into the buffer.

Decides where partitions begin (`locator`) and when fetching pauses (`fetching`). Implements the
port `Intake` on aiokafka (`intake`). It may import `core`, `kafka` and `runtime`, and asks
`staging.backlog` for room; it knows nothing of tables.
"""
