"""A first draft: what must leave a broker leaves it, and goes where there is room."""

from collections.abc import Iterator, Sequence
from itertools import chain

from binwright.balancer.decide.search.draft import Draft
from binwright.balancer.decide.search.problem import Problem

Places = Sequence[Sequence[int]]


def seeded(problem: Problem, start: Places) -> Draft:
    """Return a draft that satisfies every constraint but the loads, where that succeeds.

    Replicas stay where they are unless a constraint other than a load forces them away. Where a
    replica finds no broker its partition has too few.

    Args:
        problem: What is to be solved.
        start: Brokers of each partition to begin with, usually `problem.homes`.
    """
    owners = _group_owners(problem, start)
    draft = Draft(problem, [_kept(problem, p, each, owners) for p, each in enumerate(start)])
    lacking = [p for p, n in enumerate(problem.counts) if len(draft.at[p]) < n]
    # The largest first: small ones fit into what is left. Groups before all: they are choosy.
    lacking.sort(key=lambda p: (problem.groups[p] < 0, -sum(problem.follows[p]), p))
    for p in lacking:
        _complete(draft, p)
    return draft


def _kept(
    problem: Problem, p: int, start: Sequence[int], owners: dict[tuple[int, int], int]
) -> list[int]:
    """Return the replicas of a partition that may stay, pinned ones included, the leader first."""
    if problem.fixed[p]:
        return list(start)
    group, topic = problem.groups[p], problem.topics[p]
    pins = sorted(problem.pins[p])
    found: list[int] = []
    racks: dict[int, int] = {}
    for b in chain(pins, (b for b in start if b not in pins)):
        rack = problem.racks[b]
        free = problem.allowed[p][b] and owners.get((group, b), topic) == topic
        if b in pins or (
            free and len(found) < problem.counts[p] and racks.get(rack, 0) < problem.most[p]
        ):
            found.append(b)
            racks[rack] = racks.get(rack, 0) + 1
    places = {b: place for place, b in enumerate(start)}
    return sorted(found, key=lambda b: (places.get(b, len(places)), b))


def _complete(draft: Draft, p: int) -> None:
    """Add replicas until a partition has enough: where they fill a broker least, home first."""
    problem = draft.problem
    while len(draft.at[p]) < problem.counts[p]:
        needs = problem.follows[p] if draft.at[p] else problem.leads[p]
        free = [c for c in range(len(problem.brokers)) if draft.may_hold(p, c)]
        if not free:
            return
        fitting = [c for c in free if draft.fits(c, needs)] or free
        home = [c for c in fitting if c in problem.homes[p]]
        draft.add(p, min(home or fitting, key=lambda c: (draft.fill(c, needs), c)))


def _group_owners(problem: Problem, start: Places) -> dict[tuple[int, int], int]:
    """Return which topic of a group keeps each broker on which there are several.

    The topic that lacks brokers for its replicas keeps it; else the one with the most bytes there.
    """
    there: dict[tuple[int, int], dict[int, int]] = {}
    needed: dict[int, int] = {}
    held: dict[int, set[int]] = {}
    for p, b in _in_groups(problem, start):
        topic = problem.topics[p]
        # What is fixed stays, so its topic keeps the broker.
        weight = 1 << 80 if problem.fixed[p] or b in problem.pins[p] else 1 + problem.sizes[p]
        topics = there.setdefault((problem.groups[p], b), {})
        topics[topic] = topics.get(topic, 0) + weight
        needed[topic] = max(needed.get(topic, 0), problem.counts[p])
        held.setdefault(topic, set()).add(b)
    owners: dict[tuple[int, int], int] = {}
    for (group, b), topics in sorted(there.items(), key=lambda item: (len(item[1]), item[0])):
        keeps = max(topics, key=lambda t: (topics[t] >> 80, len(held[t]) <= needed[t], topics[t]))
        owners[group, b] = keeps
        for topic in topics:
            if topic != keeps:
                held[topic].discard(b)
    return owners


def _in_groups(problem: Problem, start: Places) -> Iterator[tuple[int, int]]:
    """Yield partition and broker of each replica of a topic in a group."""
    for p, replicas in enumerate(start):
        if problem.groups[p] >= 0:
            for b in replicas:
                if problem.allowed[p][b] or problem.fixed[p]:
                    yield p, b
