"""Decides which consumer reads each partition, from rates, capacities and the current assignment.

`catalogue` names the algorithms: `any_fit` has the paper's, `sticky` our own, `exact` the optimum
of a small group. `adjust` enforces a group's bounds and adds partitions without a packing; `score`
rates assignments by the paper's metrics.
"""
