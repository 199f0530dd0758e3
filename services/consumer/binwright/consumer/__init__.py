"""Lands partitions in Delta tables, exactly once."""
