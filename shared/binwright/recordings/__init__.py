"""Recordings of the metrics topic: written to a file or a Delta table, read, and replayed.

The form of a recording is that of `recording`; only `table` needs Spark.
"""
