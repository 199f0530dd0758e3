"""One consumer group that works records off in batches, and rebalances by Kafka's protocols.

Deterministic for a seed. `run.simulate` runs a load of records under one policy; `group` has what
every protocol of rebalancing shares, `rebalancing` the protocols.
"""
