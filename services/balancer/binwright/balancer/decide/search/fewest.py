"""Closes brokers while the others have room for their replicas."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from binwright.balancer.decide.search.draft import Draft
from binwright.balancer.decide.search.problem import Problem
from binwright.balancer.decide.search.seed import Places
from binwright.balancer.decide.search.solution import Solution

Place = Callable[[Problem, Places], Solution]

SINGLE = 8
"""Brokers that are tried one by one after as many as possible were closed at once."""


def fewest(problem: Problem, place: Place) -> Solution:
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
    orders = [_closing(problem, held)]
    if len({each for each in room if each}) > 1:
        orders.append(_closing(problem, list(zip(room, held, strict=True))))
    found = [_closed(problem, place, order, best) for order in orders]
    return min(found, key=lambda one: _cost(problem, one))


def _closed(problem: Problem, place: Place, order: Sequence[int], best: Solution) -> Solution:
    """Close brokers in an order, as many as can be; return the last placement that holds."""
    usable = sum(map(any, problem.limits))
    most = min(len(order), usable - fewest_possible(problem))
    low, high = 0, most  # so many are known to be closable; more than that are not
    while low < high:
        count = (low + high + 1) // 2
        found = place(without(problem, set(order[:count])), problem.homes)
        low, high, best = (count, high, found) if found.feasible else (low, count - 1, best)
    closed = set(order[:low])
    for b in order[low + 1 : low + 1 + SINGLE] if low < most else ():
        found = place(without(problem, closed | {b}), problem.homes)
        if found.feasible and len(closed) < most:
            best, closed = found, closed | {b}
    return best


def _cost(problem: Problem, solution: Solution) -> tuple[int, int]:
    """Return the brokers that a placement needs, then the bytes that it copies."""
    used = {b for replicas in solution.at for b in replicas}
    return len(used), Draft(problem, solution.at).copied()


def _held(problem: Problem) -> list[int]:
    """Return the bytes that each broker holds today."""
    held = [0] * len(problem.brokers)
    for size, homes in zip(problem.sizes, problem.homes, strict=True):
        for b in homes:
            held[b] += size
    return held


def _closing(problem: Problem, rank: Sequence[int] | Sequence[tuple[float, int]]) -> list[int]:
    """Return the brokers that can be closed in order: of the largest rack, the one of least rank.

    What is fixed or pinned keeps its broker open.
    """
    stuck = _stuck(problem)
    left: dict[int, list[int]] = {}
    for b in sorted(range(len(rank)), key=lambda b: (rank[b], b), reverse=True):
        if any(problem.limits[b]) and b not in stuck:
            left.setdefault(problem.racks[b], []).append(b)
    found = []
    while any(left.values()):
        rack = min(left, key=lambda r: (-len(left[r]), [rank[b] for b in left[r][-1:]], r))
        found.append(left[rack].pop())
    return found


def _stuck(problem: Problem) -> set[int]:
    """Return the brokers that have to hold something."""
    rows = zip(problem.fixed, problem.homes, problem.pins, strict=True)
    return {b for fixed, homes, pins in rows for b in (homes if fixed else pins)}


def without(problem: Problem, closed: set[int]) -> Problem:
    """Return the problem with brokers that may hold nothing."""
    tables = {id(row): [each and b not in closed for b, each in enumerate(row)]
              for row in problem.allowed}  # fmt: skip
    nothing = (0.0, 0.0, 0.0, 0.0)
    limits = [nothing if b in closed else limit for b, limit in enumerate(problem.limits)]
    return replace(problem, limits=limits, allowed=[tables[id(row)] for row in problem.allowed])


def fewest_possible(problem: Problem) -> int:
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
