"""Staging: writes buffered rows to Parquet files and announces them in the landing topic.

Decides nothing about batches (`core.consumer`). Implements the port `Staging` on Arrow's file
systems. It may import `core`, `kafka` and `runtime`; it knows nothing of reading and of tables.
"""
