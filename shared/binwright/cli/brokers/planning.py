"""Finds plans without a word of the solver on standard output, where JSON goes."""

from binwright.core.balance.cluster import Cluster
from binwright.core.balance.plans import Goal, Outcome
from binwright.ops.console import to_stderr
from binwright.placements.planner import plan


def find_plan(cluster: Cluster, goal: Goal, limit_s: float) -> Outcome:
    """Return the plan of least bytes; see `placements.planner.plan`."""
    with to_stderr():  # HiGHS prints some lines whatever it is told
        return plan(cluster, goal, limit_s)
