"""Decodes records' values into columns; what cannot be decoded becomes a bad record.

`json_records` reads one value and decides what is bad. `json_blocks` reads many at once, in a
fraction of the time, where the result is the same.
"""
