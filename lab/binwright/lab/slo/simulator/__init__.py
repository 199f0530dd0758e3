"""A discrete-event simulator of one consumer group, of its replicas and of a controller.

Deterministic for a seed. `run.run` is the entrance; `group` has what every protocol of rebalancing
shares, `eager` and `incremental` the protocols. May import the core.
"""
