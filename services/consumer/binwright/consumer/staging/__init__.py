"""Writes taken rows to Parquet files, and announces them in the landing topic.

Implements the port `Staging` on Arrow's file systems. What is staged when is decided by the buffer
(`decide`).
"""
