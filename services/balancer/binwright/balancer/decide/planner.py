"""Plans: from a cluster and a goal to a placement with its moves, or to why there is none."""

from collections import Counter
from dataclasses import replace
from math import inf

from binwright.balancer.decide.amounts import BrokerId
from binwright.balancer.decide.bounds import Limits, balance_limits, even_limits, hard_limits
from binwright.balancer.decide.cluster import Broker, Cluster, Placement, current
from binwright.balancer.decide.conflicts import contradictions
from binwright.balancer.decide.explain import moves
from binwright.balancer.decide.loads import broker_loads
from binwright.balancer.decide.plans import Balance, FewestBrokers, Goal, Infeasible, Outcome, Plan
from binwright.balancer.decide.search.draft import Draft
from binwright.balancer.decide.search.heuristic import Heuristic
from binwright.balancer.decide.search.leaders import evened
from binwright.balancer.decide.search.problem import Problem, compiled
from binwright.balancer.decide.search.shortfall import shortfall
from binwright.balancer.decide.search.solution import Solution, Solver
from binwright.balancer.decide.search.tabu import is_small

RELAXED = (1.0, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 3.0, inf)
"""Factors on the balance limits that are tried in turn; `inf`: the hard limits alone."""
MOST_ADDED = 1_000
"""Brokers that fewest brokers adds at most."""

_HEURISTIC = Heuristic()


def plan(cluster: Cluster, goal: Goal, solver: Solver = _HEURISTIC) -> Outcome:
    """Return the plan that copies few bytes, or the constraints that make it impossible.

    The same input gives the same plan. See `Plan` and `Infeasible`.

    Args:
        cluster: As it is.
        goal: `Balance` or `FewestBrokers`.
        solver: Finds placements; by default the search, which serves clusters of any size.
    """
    if isinstance(goal, FewestBrokers):
        return _fewest(cluster, goal, solver)
    if found := contradictions(cluster):
        return Infeasible(goal, found, proved=True)
    return _balanced(cluster, goal, solver)


def _balanced(cluster: Cluster, goal: Balance, solver: Solver) -> Outcome:
    """Try ever wider balance limits, down to the hard limits alone."""
    least = 1.0
    for relaxed in RELAXED if goal.bound < inf else (inf,):
        if relaxed >= least:
            limits = balance_limits(cluster, goal.bound, relaxed)
            problem = compiled(cluster, limits)
            solution = solver.place(problem)
            if solution.feasible:
                placement = _with_even_leaders(cluster, goal, problem, solution)
                plan = _plan(cluster, goal, placement, limits)
                wide = relaxed if goal.bound < inf else 1.0
                return replace(plan, relaxed=wide, proved=solution.proved)
            if not is_small(problem):  # a search takes seconds: skip what will not do
                least = relaxed * _reached(problem, solution)
    return _infeasible(cluster, goal, problem, solution, solver)


def _with_even_leaders(
    cluster: Cluster, goal: Balance, problem: Problem, solution: Solution
) -> Placement:
    """Return a placement whose leaders are as even as leader moves make them."""
    if goal.bound == inf:
        return problem.placement(solution.at)
    even = compiled(cluster, even_limits(cluster, goal.bound)).limits
    return problem.placement(evened(Draft(problem, solution.at), even).at)


def _reached(problem: Problem, solution: Solution) -> float:
    """Return the factor on the limits within which a placement is; `inf`: it lacks replicas."""
    draft = Draft(problem, solution.at)
    if not draft.is_complete():
        return inf
    usable = [b for b, limit in enumerate(problem.limits) if any(limit)]
    return max(draft.fill(b, (0.0, 0.0, 0.0, 0.0)) for b in usable)


def _infeasible(
    cluster: Cluster, goal: Goal, problem: Problem, solution: Solution, solver: Solver
) -> Infeasible:
    placement = problem.placement(solution.at)
    return Infeasible(goal, shortfall(cluster, placement, solver), solution.proved)


def _plan(cluster: Cluster, goal: Goal, placement: Placement, limits: Limits) -> Plan:
    """Return the plan that reaches a placement; for fewest brokers, empty ones are closed."""
    held = {broker for replicas in placement.values() for broker in replicas}
    empty = (b.id for b in cluster.brokers if b.usable and b.id not in held)
    closed = tuple(sorted(empty)) if isinstance(goal, FewestBrokers) else ()
    return Plan(
        goal,
        placement,
        moves(cluster, placement, limits, frozenset(closed)),
        broker_loads(cluster, current(cluster)),
        broker_loads(cluster, placement),
        closed=closed,
    )


# --- fewest brokers ------------------------------------------------------------------------------


def _fewest(cluster: Cluster, goal: FewestBrokers, solver: Solver) -> Outcome:
    """Close brokers; where all of them are not enough, add some."""
    grown = cluster.grown(goal.growth)
    found = contradictions(grown)
    if not found:
        problem = compiled(grown, hard_limits(grown))
        solution = solver.fewest(problem)
        if solution.feasible:
            plan = _plan(grown, goal, problem.placement(solution.at), hard_limits(grown))
            return replace(plan, proved=solution.proved)
    if goal.spare is not None and (plan_of_more := _with_spares(grown, goal, goal.spare, solver)):
        return plan_of_more
    if found:
        return Infeasible(goal, found, proved=True)
    return _infeasible(grown, goal, problem, solution, solver)


def _with_spares(
    cluster: Cluster, goal: FewestBrokers, spare: Broker, solver: Solver
) -> Plan | None:
    """Return a plan with the fewest added brokers that are enough; None: no number is."""
    enough, best = 1, None
    while enough <= MOST_ADDED and (best := _placed(cluster, goal, spare, enough, solver)) is None:
        enough *= 2
    low, high = enough // 2, enough  # not enough, enough
    while best is not None and high - low > 1:
        middle = (low + high) // 2
        if (found := _placed(cluster, goal, spare, middle, solver)) is None:
            low = middle
        else:
            high, best = middle, found
    return best


def _placed(
    cluster: Cluster, goal: FewestBrokers, spare: Broker, count: int, solver: Solver
) -> Plan | None:
    """Return a plan with so many brokers added, None if none is found."""
    added = _spares(cluster, spare, count)
    larger = replace(cluster, brokers=(*cluster.brokers, *added))
    if contradictions(larger):
        return None
    problem = compiled(larger, hard_limits(larger))
    solution = solver.place(problem)
    if not solution.feasible:
        return None
    plan = _plan(larger, goal, problem.placement(solution.at), hard_limits(larger))
    return replace(plan, added=added, proved=False)


def _spares(cluster: Cluster, spare: Broker, count: int) -> tuple[Broker, ...]:
    """Return brokers like the spare one, with new ids; in the smallest racks if it has none."""
    first = max((broker.id for broker in cluster.brokers), default=-1) + 1
    sizes = Counter(b.rack for b in cluster.brokers if b.rack is not None and b.usable)
    found = []
    for number in range(first, first + count):
        rack = spare.rack or min(sizes, key=lambda name: (sizes[name], name), default=None)
        if rack is not None:
            sizes[rack] += 1
        found.append(replace(spare, id=BrokerId(number), rack=rack, state="new"))
    return tuple(found)
