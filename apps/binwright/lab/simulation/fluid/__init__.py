"""What is written and what is read, as a fluid: bytes arrive, wait, and leave in order.

`arrivals` is the load, `readers` how consumers share their capacity and what waits, `measures` the
lag and how long bytes waited, `data_path` all partitions together, `group` a group that a policy
scales.
"""
