"""Why no placement was found, where no contradiction is to be seen."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from typing import Final

from binwright.balancer.decide.amounts import RESOURCES
from binwright.balancer.decide.bounds import hard_limits
from binwright.balancer.decide.cluster import Broker, Cluster, Placement, Topic
from binwright.balancer.decide.plans import Conflict, Constraint
from binwright.balancer.decide.search.problem import compiled
from binwright.balancer.decide.search.solution import Solver
from binwright.balancer.decide.search.tabu import is_small
from binwright.balancer.decide.violations import violations


def shortfall(cluster: Cluster, placement: Placement, solver: Solver) -> tuple[Conflict, ...]:
    """Return the constraints in the way, at least one.

    Each constraint without which there is a placement, tried one by one where the cluster is
    small. Otherwise, and where no single one is in the way: what the best placement breaks.

    Args:
        cluster: For which none was found.
        placement: The best that was found; partitions may have too few replicas in it.
        solver: That found none.
    """
    problem = compiled(cluster, hard_limits(cluster))
    found = tuple(_culprits(cluster, solver)) if is_small(problem) else ()
    return found or tuple(_broken(cluster, placement))


def _culprits(cluster: Cluster, solver: Solver) -> Iterator[Conflict]:
    """Yield the constraints without which there is a placement."""
    for constraint, what, weaker in _weaker(cluster):
        if weaker != cluster:
            solution = solver.place(compiled(weaker, hard_limits(weaker)))
            if solution.feasible:
                yield Conflict(constraint, f"without {what} there is a placement")


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


def _broken(cluster: Cluster, placement: Placement) -> Iterator[Conflict]:
    """Yield what a placement breaks: loads by broker, all else counted."""
    counts: Counter[Constraint] = Counter()
    for each in violations(cluster, placement):
        if each.resource is None:
            counts[each.constraint] += 1
        else:
            where = f"{each.resource} of broker {each.broker}"
            detail = f"{where}: {each.load:.6g} of at most {each.limit:.6g}"
            yield Conflict(each.constraint, f"{detail} in the best placement found")
    for constraint, times in sorted(counts.items()):
        yield Conflict(constraint, f"broken {times} times in the best placement found")
