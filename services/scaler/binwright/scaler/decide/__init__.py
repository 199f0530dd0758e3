"""Decides how many replicas a group of ordinary consumers needs, and when to change the number.

For groups whose consumers binwright neither wrote nor steers: what is known is how far each log
reaches, what the group has committed, and how many replicas its workload has. Everything is in
records: rates per second, lags and capacities. `machine` has the state of a group; `log_ends`,
`lags` and `throughput` make what it needs from what was looked up. May import the model, the
errors and `core.scaling`.
"""
