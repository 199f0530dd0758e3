"""Steers ordinary consumer groups: publishes plans that the assignors in their members follow.

`steered_group` is one group: looked at, decided on, steered. `group_metrics` is what Prometheus
sees of it, `last_plans` reads what was published before, `__main__` is the process
(`binwright steer`).
"""
