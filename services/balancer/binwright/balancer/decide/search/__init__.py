"""Searches placements within limits: the heuristic for clusters of any size.

`problem` is the cluster as arrays, `draft` a placement that changes. `seed` satisfies what names
brokers (drained ones, pins, racks, groups), `repair` brings loads within the limits, `undo` takes
back what was not needed, and `tabu` improves small clusters. `fewest` closes brokers, `heuristic`
has the order of it all, `shortfall` names what was in the way. May import the rest of the balance.
"""
