"""Plans: from a cluster and a goal to a placement with its moves, or to why there is none."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from typing import Final

from binwright.balancer.decide.constraints import (
    Constraint,
    UnmetConstraint,
    contradictions,
    violations,
)
from binwright.balancer.decide.loads import (
    LoadLimits,
    balance_limits,
    broker_loads,
    even_limits,
    hard_limits,
)
from binwright.balancer.decide.model import (
    RESOURCES,
    Broker,
    BrokerId,
    Cluster,
    Placement,
    Topic,
    current,
)
from binwright.balancer.decide.plans import (
    Balance,
    FewestBrokers,
    Goal,
    Infeasible,
    PlacementPlan,
    PlanOutcome,
    moves,
)
from binwright.balancer.decide.search.draft import SLACK, PlacementDraft
from binwright.balancer.decide.search.heuristic import Heuristic
from binwright.balancer.decide.search.near_leaders import bring_near
from binwright.balancer.decide.search.problem import PlacementProblem, Solution, Solver, compiled
from binwright.balancer.decide.search.repair import evened
from binwright.balancer.decide.search.tabu import is_small

RELAXED = (1.0, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 3.0, inf)
"""Factors on the balance limits that are tried in turn; `inf`: the hard limits alone."""
MOST_ADDED = 1_000
"""Brokers that fewest brokers adds at most."""

_HEURISTIC = Heuristic()


def plan(cluster: Cluster, goal: Goal, solver: Solver = _HEURISTIC) -> PlanOutcome:
    """Return the plan that copies few bytes, or the constraints that make it impossible.

    The same input gives the same plan. See `PlacementPlan` and `Infeasible`.

    Args:
        cluster: As it is.
        goal: `Balance` or `FewestBrokers`.
        solver: Finds placements; by default the search, which serves clusters of any size.
    """
    if isinstance(goal, FewestBrokers):
        return _fewest(cluster, goal, solver)
    if unmet := contradictions(cluster):
        return Infeasible(goal, unmet, proved=True)
    return _balanced(cluster, goal, solver)


def _balanced(cluster: Cluster, goal: Balance, solver: Solver) -> PlanOutcome:
    """Try ever wider balance limits, down to the hard limits alone."""
    least = 1.0
    for relaxed in RELAXED if goal.bound < inf else (inf,):
        if relaxed >= least:
            limits = balance_limits(cluster, goal.bound, relaxed)
            problem = compiled(cluster, limits)
            solution = solver.place(problem)
            if solution.feasible:
                placement = _with_good_leaders(cluster, goal, problem, solution)
                plan = _plan(cluster, goal, placement, limits)
                wide = relaxed if goal.bound < inf else 1.0
                return replace(plan, relaxed=wide, proved=solution.proved)
            if not is_small(problem):  # a search takes seconds: skip what will not do
                least = relaxed * _reached(problem, solution)
    return _infeasible(cluster, goal, problem, solution, solver)


def _with_good_leaders(
    cluster: Cluster, goal: Balance, problem: PlacementProblem, solution: Solution
) -> Placement:
    """Return a placement whose leaders are as even, then as near, as leader moves make them."""
    draft = PlacementDraft(problem, solution.at)
    if goal.bound < inf:
        even = compiled(cluster, even_limits(cluster, goal.bound)).limits
        draft = evened(draft, even)
        draft.limits = [
            (disk, into, min(out, tight[2] + SLACK), min(cpu, tight[3] + SLACK))
            for (disk, into, out, cpu), tight in zip(draft.limits, even, strict=True)
        ]
    bring_near(draft)
    return problem.placement(draft.at)


def _reached(problem: PlacementProblem, solution: Solution) -> float:
    """Return the factor on the limits within which a placement is; `inf`: it lacks replicas."""
    draft = PlacementDraft(problem, solution.at)
    if not draft.is_complete():
        return inf
    usable = [b for b, limit in enumerate(problem.limits) if any(limit)]
    return max(draft.fill(b, (0.0, 0.0, 0.0, 0.0)) for b in usable)


def _infeasible(
    cluster: Cluster, goal: Goal, problem: PlacementProblem, solution: Solution, solver: Solver
) -> Infeasible:
    placement = problem.placement(solution.at)
    return Infeasible(goal, shortfall(cluster, placement, solver), solution.proved)


def _plan(cluster: Cluster, goal: Goal, placement: Placement, limits: LoadLimits) -> PlacementPlan:
    """Return the plan that reaches a placement; for fewest brokers, empty ones are closed."""
    held = {broker for replicas in placement.values() for broker in replicas}
    empty = (b.id for b in cluster.brokers if b.usable and b.id not in held)
    closed = tuple(sorted(empty)) if isinstance(goal, FewestBrokers) else ()
    return PlacementPlan(
        goal,
        placement,
        moves(cluster, placement, limits, frozenset(closed)),
        broker_loads(cluster, current(cluster)),
        broker_loads(cluster, placement),
        closed=closed,
    )


# --- fewest brokers ------------------------------------------------------------------------------


def _fewest(cluster: Cluster, goal: FewestBrokers, solver: Solver) -> PlanOutcome:
    """Close brokers; where all of them are not enough, add some."""
    grown = cluster.grown(goal.growth)
    unmet = contradictions(grown)
    if not unmet:
        problem = compiled(grown, hard_limits(grown))
        solution = solver.fewest(problem)
        if solution.feasible:
            plan = _plan(grown, goal, problem.placement(solution.at), hard_limits(grown))
            return replace(plan, proved=solution.proved)
    if goal.spare is not None and (plan_of_more := _with_spares(grown, goal, goal.spare, solver)):
        return plan_of_more
    if unmet:
        return Infeasible(goal, unmet, proved=True)
    return _infeasible(grown, goal, problem, solution, solver)


def _with_spares(
    cluster: Cluster, goal: FewestBrokers, spare: Broker, solver: Solver
) -> PlacementPlan | None:
    """Return a plan with the fewest added brokers that are enough; None: no number is."""
    enough, best = 1, None
    while enough <= MOST_ADDED and (best := _placed(cluster, goal, spare, enough, solver)) is None:
        enough *= 2
    low, high = enough // 2, enough  # not enough, enough
    while best is not None and high - low > 1:
        middle = (low + high) // 2
        if (smaller := _placed(cluster, goal, spare, middle, solver)) is None:
            low = middle
        else:
            high, best = middle, smaller
    return best


def _placed(
    cluster: Cluster, goal: FewestBrokers, spare: Broker, count: int, solver: Solver
) -> PlacementPlan | None:
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
    spares = []
    for number in range(first, first + count):
        rack = spare.rack or min(sizes, key=lambda name: (sizes[name], name), default=None)
        if rack is not None:
            sizes[rack] += 1
        spares.append(replace(spare, id=BrokerId(number), rack=rack, state="new"))
    return tuple(spares)


def shortfall(
    cluster: Cluster, placement: Placement, solver: Solver
) -> tuple[UnmetConstraint, ...]:
    """Return the constraints in the way, at least one.

    Each constraint without which there is a placement, tried one by one where the cluster is
    small. Otherwise, and where no single one is in the way: what the best placement breaks.

    Args:
        cluster: For which none was found.
        placement: The best that was found; partitions may have too few replicas in it.
        solver: That found none.
    """
    problem = compiled(cluster, hard_limits(cluster))
    culprits = tuple(_culprits(cluster, solver)) if is_small(problem) else ()
    return culprits or tuple(_broken(cluster, placement))


def _culprits(cluster: Cluster, solver: Solver) -> Iterator[UnmetConstraint]:
    """Yield the constraints without which there is a placement."""
    for constraint, what, weaker in _weaker(cluster):
        if weaker != cluster:
            solution = solver.place(compiled(weaker, hard_limits(weaker)))
            if solution.feasible:
                yield UnmetConstraint(constraint, f"without {what} there is a placement")


def _weaker(cluster: Cluster) -> Iterator[tuple[Constraint, str, Cluster]]:
    """Yield the cluster without each kind of constraint."""
    for place, resource in enumerate(RESOURCES):
        brokers = tuple(_unlimited(broker, place) for broker in cluster.brokers)
        yield "capacity", f"limits on {resource}", replace(cluster, brokers=brokers)
    for constraint, what, weaken in _TOPICS:
        topics = {name: weaken(topic) for name, topic in cluster.topics.items()}
        yield constraint, what, replace(cluster, topics=topics)
    free = tuple(replace(each, pinned=frozenset()) for each in cluster.partitions)
    yield "pin", "pins", replace(cluster, partitions=free)
    staying = tuple(
        replace(each, state="up") if each.state == "draining" else each for each in cluster.brokers
    )
    yield "broker draining", "draining", replace(cluster, brokers=staying)


_TOPICS: Final[tuple[tuple[Constraint, str, Callable[[Topic], Topic]], ...]] = (
    ("rack spread", "rack spread", lambda topic: replace(topic, rack_spread=False)),
    ("anti-colocation", "groups", lambda topic: replace(topic, group=None)),
    (
        "exclusion",
        "exclusions",
        lambda topic: replace(topic, excluded=False, excluded_brokers=frozenset()),
    ),
)


def _unlimited(broker: Broker, place: int) -> Broker:
    capacity = [inf if i == place else each for i, each in enumerate(broker.capacity)]
    return replace(broker, capacity=type(broker.capacity)(*capacity))


def _broken(cluster: Cluster, placement: Placement) -> Iterator[UnmetConstraint]:
    """Yield what a placement breaks: loads by broker, all else counted."""
    counts: Counter[Constraint] = Counter()
    for each in violations(cluster, placement):
        if each.resource is None:
            counts[each.constraint] += 1
        else:
            where = f"{each.resource} of broker {each.broker}"
            detail = f"{where}: {each.load:.6g} of at most {each.limit:.6g}"
            yield UnmetConstraint(each.constraint, f"{detail} in the best placement found")
    for constraint, times in sorted(counts.items()):
        yield UnmetConstraint(constraint, f"broken {times} times in the best placement found")
