"""Decides which consumer reads each partition, from rates, capacities and the current assignment.

`catalogue` names the algorithms: `any_fit` has the paper's, `sticky` our own. `min_slots` and
`max_slots` enforce a group's bounds; `spread` adds partitions without a packing; `score` rates
assignments by the paper's metrics. May import the model and the errors.
"""
