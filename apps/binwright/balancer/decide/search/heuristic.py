"""The search as a solver: a first draft, the order of its steps, and fewest brokers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import inf

from binwright.balancer.decide.search.draft import PlacementDraft, undo
from binwright.balancer.decide.search.problem import PlacementProblem, Solution
from binwright.balancer.decide.search.repair import repair
from binwright.balancer.decide.search.tabu import improved

Places = Sequence[Sequence[int]]


Solve = Callable[[PlacementProblem, Places], Solution]
SINGLE = 8
"""Brokers that are tried one by one after as many as possible were closed at once."""


def seeded(problem: PlacementProblem, start: Places) -> PlacementDraft:
    """Return a draft that satisfies every constraint but the loads, where that succeeds.

    Replicas stay where they are unless a constraint other than a load forces them away. Where a
    replica finds no broker its partition has too few.

    Args:
        problem: What is to be solved.
        start: Brokers of each partition to begin with, usually `problem.homes`.
    """
    owners = _group_owners(problem, start)
    draft = PlacementDraft(
        problem, [_kept(problem, p, each, owners) for p, each in enumerate(start)]
    )
    lacking = [p for p, n in enumerate(problem.counts) if len(draft.at[p]) < n]
    # The largest first: small ones fit into what is left. Groups before all: they are choosy.
    lacking.sort(key=lambda p: (problem.groups[p] < 0, -sum(problem.follows[p]), p))
    for p in lacking:
        _complete(draft, p)
    return draft


def _kept(
    problem: PlacementProblem, p: int, start: Sequence[int], owners: dict[tuple[int, int], int]
) -> list[int]:
    """Return the replicas of a partition that may stay, pinned ones included, the leader first."""
    if problem.fixed[p]:
        return list(start)
    group, topic = problem.groups[p], problem.topics[p]
    pins = sorted(problem.pins[p])
    kept: list[int] = []
    racks: dict[int, int] = {}
    for b in chain(pins, (b for b in start if b not in pins)):
        rack = problem.racks[b]
        free = problem.allowed[p][b] and owners.get((group, b), topic) == topic
        if b in pins or (
            free and len(kept) < problem.counts[p] and racks.get(rack, 0) < problem.most[p]
        ):
            kept.append(b)
            racks[rack] = racks.get(rack, 0) + 1
    places = {b: place for place, b in enumerate(start)}
    return sorted(kept, key=lambda b: (places.get(b, len(places)), b))


def _complete(draft: PlacementDraft, p: int) -> None:
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


def _group_owners(problem: PlacementProblem, start: Places) -> dict[tuple[int, int], int]:
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


def _in_groups(problem: PlacementProblem, start: Places) -> Iterator[tuple[int, int]]:
    """Yield partition and broker of each replica of a topic in a group."""
    for p, replicas in enumerate(start):
        if problem.groups[p] >= 0:
            for b in replicas:
                if problem.allowed[p][b] or problem.fixed[p]:
                    yield p, b


class Heuristic:
    """Finds placements for clusters of any size; proves nothing."""

    def place(self, problem: PlacementProblem) -> Solution:
        """Return a placement within the limits that copies few bytes. See `Solver`."""
        return _solution(searched(problem, problem.homes))

    def fewest(self, problem: PlacementProblem) -> Solution:
        """Return a placement on few brokers that copies few bytes. See `Solver`."""
        return fewest(problem, lambda left, start: _solution(searched(left, start)))


def searched(problem: PlacementProblem, start: Places) -> PlacementDraft:
    """Return the best draft that is found from a start."""
    draft = seeded(problem, start)
    repair(draft)
    undo(draft)
    return improved(draft)


def _solution(draft: PlacementDraft) -> Solution:
    return Solution(draft.at, draft.is_complete() and not draft.overloaded())


def fewest(problem: PlacementProblem, place: Solve) -> Solution:
    """Return a placement on few brokers; infeasible where not even all of them are enough.

    Closes as many at once as it can in one order, then some of the others one by one; never more
    than the loads and the replicas allow. Orders: those of least data first, and where capacities
    differ also those of least room first.

    Args:
        problem: With the limits of all brokers.
        place: Returns a placement for the brokers that are left, from a start.
    """
    best = place(problem, problem.homes)
    if not best.feasible:
        return best
    held, room = _held(problem), [min(limit) for limit in problem.limits]
    closing_orders = [_closing(problem, held)]
    if len({each for each in room if each}) > 1:
        closing_orders.append(_closing(problem, list(zip(room, held, strict=True))))
    closed = [_closed(problem, place, order, best) for order in closing_orders]
    return min(closed, key=lambda one: _cost(problem, one))


def _closed(
    problem: PlacementProblem, place: Solve, order: Sequence[int], best: Solution
) -> Solution:
    """Close brokers in an order, as many as can be; return the last placement that holds."""
    usable = sum(map(any, problem.limits))
    most = min(len(order), usable - fewest_possible(problem))
    low, high = 0, most  # so many are known to be closable; more than that are not
    while low < high:
        count = (low + high + 1) // 2
        solution = place(without(problem, set(order[:count])), problem.homes)
        low, high, best = (count, high, solution) if solution.feasible else (low, count - 1, best)
    closed = set(order[:low])
    for b in order[low + 1 : low + 1 + SINGLE] if low < most else ():
        solution = place(without(problem, closed | {b}), problem.homes)
        if solution.feasible and len(closed) < most:
            best, closed = solution, closed | {b}
    return best


def _cost(problem: PlacementProblem, solution: Solution) -> tuple[int, int]:
    """Return the brokers that a placement needs, then the bytes that it copies."""
    used = {b for replicas in solution.at for b in replicas}
    return len(used), PlacementDraft(problem, solution.at).copied()


def _held(problem: PlacementProblem) -> list[int]:
    """Return the bytes that each broker holds today."""
    held = [0] * len(problem.brokers)
    for size, homes in zip(problem.sizes, problem.homes, strict=True):
        for b in homes:
            held[b] += size
    return held


def _closing(
    problem: PlacementProblem, rank: Sequence[int] | Sequence[tuple[float, int]]
) -> list[int]:
    """Return the brokers that can be closed in order: of the largest rack, the one of least rank.

    What is fixed or pinned keeps its broker open.
    """
    stuck = _stuck(problem)
    left: dict[int, list[int]] = {}
    for b in sorted(range(len(rank)), key=lambda b: (rank[b], b), reverse=True):
        if any(problem.limits[b]) and b not in stuck:
            left.setdefault(problem.racks[b], []).append(b)
    order = []
    while any(left.values()):
        rack = min(left, key=lambda r: (-len(left[r]), [rank[b] for b in left[r][-1:]], r))
        order.append(left[rack].pop())
    return order


def _stuck(problem: PlacementProblem) -> set[int]:
    """Return the brokers that have to hold something."""
    rows = zip(problem.fixed, problem.homes, problem.pins, strict=True)
    return {b for fixed, homes, pins in rows for b in (homes if fixed else pins)}


def without(problem: PlacementProblem, closed: set[int]) -> PlacementProblem:
    """Return the problem with brokers that may hold nothing."""
    tables = {id(row): [each and b not in closed for b, each in enumerate(row)]
              for row in problem.allowed}  # fmt: skip
    nothing = (0.0, 0.0, 0.0, 0.0)
    limits = [nothing if b in closed else limit for b, limit in enumerate(problem.limits)]
    return replace(problem, limits=limits, allowed=[tables[id(row)] for row in problem.allowed])


def fewest_possible(problem: PlacementProblem) -> int:
    """Return a number of brokers below which there is no placement."""
    counts = problem.counts
    least = max([1, *counts]) if counts else 0
    for resource in range(4):
        needed = sum(
            lead[resource] + (n - 1) * follow[resource]
            for lead, follow, n in zip(problem.leads, problem.follows, counts, strict=True)
        )
        rooms = sorted((limit[resource] for limit in problem.limits), reverse=True)
        least = max(least, _largest_needed(rooms, needed))
    return least


def _largest_needed(rooms: Sequence[float], needed: float) -> int:
    """Return how many of the largest rooms it takes to hold a load."""
    left, taken = needed * (1 - 1e-9), 0
    for room in rooms:
        if left <= 0 or room == inf:
            return taken + (left > 0)
        left, taken = left - room, taken + 1
    return taken
