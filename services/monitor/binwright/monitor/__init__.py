"""Measures how fast each partition is written."""
