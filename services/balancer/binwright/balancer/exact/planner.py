"""The entry for commands and services: exact where the cluster is small and scipy is there."""

from importlib.util import find_spec

from binwright.balancer.decide import planner
from binwright.balancer.decide.cluster import Cluster
from binwright.balancer.decide.plans import Goal, Outcome
from binwright.balancer.decide.search.heuristic import Heuristic
from binwright.balancer.decide.search.solution import Solver


def plan(cluster: Cluster, goal: Goal, limit_s: float = 20.0) -> Outcome:
    """Return the plan of least bytes. See `core.balance.planner.plan`.

    Args:
        cluster: As it is.
        goal: `Balance` or `FewestBrokers`.
        limit_s: Seconds for one integer program; a plan solves a few at most.
    """
    return planner.plan(cluster, goal, solver(limit_s))


def solver(limit_s: float) -> Solver:
    """Return the exact solver where scipy is installed, else the search."""
    if find_spec("scipy") is None:
        return Heuristic()
    from binwright.balancer.exact.exact import Exact  # noqa: PLC0415 - only where scipy is

    return Exact(limit_s)
