"""What is written and what is read, as a fluid: bytes arrive, wait, and leave in order.

`arrivals` is the load, `backlog` what waits in one partition, `readers` how consumers share their
capacity, `latency` how long bytes waited. Depends on no controller and no policy.
"""
