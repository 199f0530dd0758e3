"""Searches placements within limits: the heuristic for clusters of any size.

`problem` is the cluster as arrays, `draft` a placement that changes. `heuristic` has the order of
the steps: a first draft, `repair`, what was not needed taken back, and `tabu` for small clusters.
"""
