"""Plans for commands and for the watch: exact where the cluster is small and scipy is there."""

from importlib.util import find_spec

from binwright.balancer.decide import planner
from binwright.balancer.decide.model import Cluster
from binwright.balancer.decide.plans import Goal, PlanOutcome
from binwright.balancer.decide.search.heuristic import Heuristic
from binwright.balancer.decide.search.problem import Solver
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log

PLAN_APPROXIMATED = LogEvent.info(
    "plan.approximated", "No optimum was proved for brokers; the best plan known is used."
)


def plan(cluster: Cluster, goal: Goal, limit_s: float = 20.0) -> PlanOutcome:
    """Return the plan of least bytes. See `decide.planner.plan`.

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
    from binwright.balancer.decide.exact import ExactSolver  # noqa: PLC0415 - only where scipy is

    return ExactSolver(limit_s, lambda reason: log(PLAN_APPROXIMATED, reason=reason))
