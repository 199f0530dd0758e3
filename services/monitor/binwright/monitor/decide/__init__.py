"""Decides how fast each partition is written, and which topics are measured.

`estimator` turns samples of logs into bytes/s over a sliding window; `needs` merges the topics that
groups want measured.
"""
