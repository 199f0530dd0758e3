"""Decides what a consumer reads, stages and writes.

`machine` applies the controller's commands and returns actions; `buffer` turns fetched records into
complete offset ranges, and decides when they are staged.
"""
