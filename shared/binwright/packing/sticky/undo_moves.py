"""Moves partitions back home where others can make room at less cost."""

from heapq import nlargest
from itertools import combinations, islice

from binwright.packing.sticky.draft import NO_SLOT, Draft
from binwright.packing.sticky.ejection_chain import place

EFFORT = 400
"""How many moved partitions, the fastest first, are tried."""
EXCHANGES = 8
"""How many ways to make room at home are tried for each."""
CANDIDATES = 12
"""How many partitions at home, the fastest first, are candidates to leave, one or two at a time."""
ROUNDING = 1e-9
"""A gain below this share of a capacity counts as none."""


def undo_moves(draft: Draft) -> None:
    """Try to move every displaced partition back home, the fastest first."""
    # The same as the beginning of `biggest_first`, without sorting all of them.
    for number in nlargest(EFFORT, draft.displaced(), key=draft.rates.__getitem__):
        # An earlier one may have moved this one back already.
        if draft.moved(number) and draft.homes[number] in draft.offered:
            _go_home(draft, number)


def _go_home(draft: Draft, number: int) -> None:
    source, mark = draft.owners[number], draft.checkpoint
    saved = draft.rates[number] + _value_of_leaving(draft, number)
    draft.move(number, NO_SLOT)
    for leaving in islice(_exchanges(draft, number), EXCHANGES):
        here = draft.checkpoint
        spent = _swap_in(draft, number, leaving, saved)
        if spent is not None and saved - spent > ROUNDING * draft.capacities.default:
            if source in draft.offered and not draft.held(source):
                draft.withdraw(source)
            return
        draft.undo_to(here)
    draft.undo_to(mark)


def _value_of_leaving(draft: Draft, number: int) -> float:
    """Return what the room that a partition frees at its owner is worth, bytes/s."""
    source, value = draft.owners[number], draft.costs.value
    if source not in draft.offered:
        return 0.0
    return value(draft.room[source]) - value(draft.room[source] + draft.rates[number])


def _swap_in(draft: Draft, number: int, leaving: tuple[int, ...], budget: float) -> float | None:
    """Move a partition home and `leaving` elsewhere; return the cost, bytes/s; None: no room."""
    home, value = draft.homes[number], draft.costs.value
    before = value(draft.room[home])
    sunk = sum([draft.move_cost(other, home) for other in leaving])
    for other in leaving:
        draft.move(other, NO_SLOT)
    draft.move(number, home)
    spent = value(draft.room[home]) - before - sunk
    for other in leaving:
        if (cost := place(draft, other, budget - spent)) is None:
            return None
        spent += cost
    return spent


def _exchanges(draft: Draft, number: int) -> list[tuple[int, ...]]:
    """Return the sets of partitions that could make room at home, the cheapest to move first."""
    home, rates = draft.homes[number], draft.rates
    lacking = rates[number] - draft.room[home]
    if lacking <= 0:
        return [()]
    candidates = draft.biggest_first(draft.held(home))[:CANDIDATES]
    found = []
    for leaving in (*combinations(candidates, 1), *combinations(candidates, 2)):
        if sum([rates[other] for other in leaving]) >= lacking:
            cost = sum([rates[other] for other in leaving if not draft.moved(other)])
            if cost < rates[number]:
                found.append((cost, leaving))
    return [leaving for _, leaving in sorted(found)]
