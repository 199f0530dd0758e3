"""How old records are when they are read: the paper's latency model and its Figures 5 to 8.

`experiments` has the equations and runs a packing over a stream, `samples` counts and ranks what
they give; `published` has the paper's values.
"""
