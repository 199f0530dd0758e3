"""Writes taken rows to Parquet files, and announces them in the landing topic.

Implements the port `Staging` on Arrow's file systems. The buffer (`decide`) decides what is
staged, and when.
"""
