"""Recorded and generated streams of rates: their forms, where they are, and their commands.

A stream is rows of per cents (`streams`), a recording the metrics topic's measurements as they were
(`recording`; `table` keeps one in a Delta table). `stream_file` reads either as the other,
`generated` makes streams, and `load` writes records at a stream's rates.
"""
