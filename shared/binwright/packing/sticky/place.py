"""Places one partition: where there is room, or by a chain of ejections; and takes moves back.

A partition goes to a consumer with room, or replaces a slower one, which is placed in turn. Rates
decrease along a chain, so it ends; the search is best first, for the cheapest chain.
"""

from heapq import heappop, heappush, nlargest
from itertools import combinations, islice
from typing import NamedTuple

from binwright.packing.sticky.draft import NO_SLOT, Draft
from binwright.protocol.model import Slot

WIDE, NARROW = 100, 12
"""Ejections are considered from this many consumers, those with the most room first."""
LONG, SHORT = 8, 3
"""How many links are expanded before a search gives up."""
MAX_STEPS = 30_000
"""After this many visits of consumers in one decision, searches are narrow and short: the group is
then so large that the few consumers with the most room are as good as any."""
EFFORT = 400
"""How many moved partitions, the fastest first, are tried."""
EXCHANGES = 8
"""How many ways to make room at home are tried for each."""
CANDIDATES = 12
"""How many partitions at home, the fastest first, are candidates to leave, one or two at a time."""
ROUNDING = 1e-9
"""A gain below this share of a capacity counts as none."""


class Link(NamedTuple):
    """A partition to be placed, and the link whose partition replaces it."""

    estimate: float  # lower bound on the cost of the whole chain, bytes/s
    order: int  # of creation: breaks ties
    cost: float  # so far, bytes/s
    number: int  # the partition
    before: "Link | None"


def place(draft: Draft, number: int, budget: float) -> float | None:
    """Move a partition to a consumer with room; that costs its rate, unless it goes home.

    Args:
        draft: Changed if there is room.
        number: The partition; if it has moved before, the cost of that is refunded.
        budget: The cost must be below this, bytes/s.

    Returns:
        The cost, bytes/s (below 0 for a gain), or None: nothing was changed.
    """
    here, home = draft.owners[number], draft.homes[number]
    # A partition that had no home, or has moved already, moves at no further cost.
    own = draft.rates[number] if home != NO_SLOT and here in (NO_SLOT, home) else 0.0
    if budget <= 0:
        return None
    if (offer := _direct(draft, number)) is None:
        return _by_chain(draft, number, own, budget)
    slot, cost = offer
    if own + cost >= budget or slot == here:
        return None
    draft.move(number, slot)
    return own + cost


def _by_chain(draft: Draft, number: int, own: float, budget: float) -> float | None:
    patience = LONG if draft.search_steps < MAX_STEPS else SHORT
    search = _Search(draft, budget)
    search.expand(Link(-budget, 0, own, number, None))
    for _ in range(patience - 1):
        if not search.heap or (link := heappop(search.heap)).estimate >= budget:
            return None
        if (offer := _direct(draft, link.number)) is None:
            search.expand(link)
            continue
        slot, cost = offer
        if link.cost + cost < budget and _apply(draft, link, slot):
            return link.cost + cost
    return None


class _Search:
    """Unfinished chains in a heap, the one with the lowest estimate first."""

    def __init__(self, draft: Draft, budget: float) -> None:
        self.heap: list[Link] = []
        self._draft, self._budget, self._pushed = draft, budget, 0
        # The draft does not change during a search.
        width = WIDE if draft.search_steps < MAX_STEPS else NARROW
        offers = islice(draft.offers.descending(), width)
        self._offers = [(spare, slot, draft.held(slot)) for spare, slot in offers]

    def expand(self, link: Link) -> None:
        """Add a link for each slower partition that could make room."""
        draft, best = self._draft, self._budget
        rates, value = draft.rates, draft.costs.value
        rate, spent = rates[link.number], link.cost
        draft.search_steps += len(self._offers)
        most = self._offers[0][0] if self._offers else 0.0
        visited = _owners(draft, link)
        for spare, slot, held in self._offers:
            need = rate - spare
            if spent + need >= best:
                return
            for other in held:
                smaller = rates[other]
                if need <= smaller < rate and slot not in visited:
                    cost = spent if draft.moved(other) else spent + smaller
                    rest = smaller - most if smaller > most else 0.0
                    if cost + rest >= best:
                        continue
                    cost += value.cost_of_taking(spare, rate - smaller)
                    self._push(cost + rest, cost, other, link)
                    if not rest:
                        best = cost + value.penalty

    def _push(self, estimate: float, cost: float, number: int, before: Link) -> None:
        self._pushed += 1
        heappush(self.heap, Link(estimate, self._pushed, cost, number, before))


def _direct(draft: Draft, number: int) -> tuple[Slot, float] | None:
    """Return a consumer with room, the home first, and the cost besides the partition's rate."""
    rate, home, value = draft.rates[number], draft.homes[number], draft.costs.value
    if home in draft.offered and draft.spare[home] >= rate:
        return home, value.cost_of_taking(draft.spare[home], rate) - rate  # the move is undone
    # The fullest consumer with ample room afterwards; without one, that with the most room.
    offer = draft.offers.least(rate + value.ample_spare) or draft.offers.last
    if offer is None or offer[0] < rate:
        return None
    return offer[1], value.cost_of_taking(offer[0], rate)


def _owners(draft: Draft, link: Link) -> set[Slot]:
    """Return the consumers of a chain's partitions."""
    owners = set()
    step: Link | None = link
    while step is not None:
        owners.add(draft.owners[step.number])
        step = step.before
    return owners


def _apply(draft: Draft, link: Link, slot: Slot) -> bool:
    """Carry out a chain from its end; False if `slot` is one of its consumers."""
    if slot in _owners(draft, link):
        return False
    step: Link | None = link
    while step is not None:
        source = draft.owners[step.number]
        draft.move(step.number, slot)
        slot, step = source, step.before
    return True


# --- moves back home, where others can make room at less cost -----------------------------------


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
    return value(draft.spare[source]) - value(draft.spare[source] + draft.rates[number])


def _swap_in(draft: Draft, number: int, leaving: tuple[int, ...], budget: float) -> float | None:
    """Move a partition home and `leaving` elsewhere; return the cost, bytes/s; None: no room."""
    home, value = draft.homes[number], draft.costs.value
    before = value(draft.spare[home])
    sunk = sum([draft.move_cost(other, home) for other in leaving])
    for other in leaving:
        draft.move(other, NO_SLOT)
    draft.move(number, home)
    spent = value(draft.spare[home]) - before - sunk
    for other in leaving:
        if (cost := place(draft, other, budget - spent)) is None:
            return None
        spent += cost
    return spent


def _exchanges(draft: Draft, number: int) -> list[tuple[int, ...]]:
    """Return the sets of partitions that could make room at home, the cheapest to move first."""
    home, rates = draft.homes[number], draft.rates
    lacking = rates[number] - draft.spare[home]
    if lacking <= 0:
        return [()]
    candidates = draft.biggest_first(draft.held(home))[:CANDIDATES]
    exchanges = []
    for leaving in (*combinations(candidates, 1), *combinations(candidates, 2)):
        if sum([rates[other] for other in leaving]) >= lacking:
            cost = sum([rates[other] for other in leaving if not draft.moved(other)])
            if cost < rates[number]:
                exchanges.append((cost, leaving))
    return [leaving for _, leaving in sorted(exchanges)]
