"""Decides how fast each partition is written, which topics are measured, and how much rates change.

`estimator` turns samples of logs into bytes/s over a sliding window; `needs` merges the topics that
groups want measured; `measured_rates` holds the last known rates; `volatility` measures how much
they change. May import the messages, the ports and the model.
"""
