"""Placements of replicas by an integer program: the optimum of small clusters.

Needs scipy, which the core may not import. `exact` is the solver; `planner` has the entry for
commands and services. May import the core.
"""
