"""What the consumer groups of a cluster would cost otherwise: recorded, simulated, ranked.

`recorder` records every group of a cluster; `past` and `capacity` fold a recording into what was
written, read and running; `ranking` simulates each group as it is and under other rules. `own` is
the same for binwright's groups, whose load their monitor has recorded already.
"""
