"""Decides what a consumer does: which partitions it reads, what it stages, which tables it writes.

`handover` obeys the controller's commands, `buffer` turns fetched records into offset ranges that
tell the truth. Knows nothing of what lands: that is `core.writer`.
"""
