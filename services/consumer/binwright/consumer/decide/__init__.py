"""Decides which partitions a consumer reads, when it stages files, and which tables it writes.

`handover` applies the controller's commands and returns `actions`; `buffer` turns fetched records
into complete offset ranges, `batch` decides when they are staged. May import the messages, the
ports and the model; what lands in tables is decided by `core.writer`.
"""
