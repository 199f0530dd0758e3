"""Streams in files: the paper's JSON and recordings, row by row, and each made from the other.

`json_rows` and `recorded` are the two forms, `stream_file` opens a file of either, `compact` holds
a long stream in memory. May import the core and recordings.
"""
