"""How old records are when they are read: the paper's latency model and its Figures 5 to 8.

`queues` has the equations, `samples` counts and ranks what they give, `experiments` runs a packing
over a stream, `comparison` sets the results beside the published ones. May import the core, the
lab's streams and its packing experiments.
"""
