"""Places one partition: where there is room, or by a chain of ejections.

A partition goes to a consumer with room, or replaces a slower one, which is placed in turn. Rates
decrease along a chain, so it ends; the search is best first, for the cheapest chain.
"""

from heapq import heappop, heappush
from itertools import islice
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
    if (found := _direct(draft, number)) is None:
        return _by_chain(draft, number, own, budget)
    slot, cost = found
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
        if (found := _direct(draft, link.number)) is None:
            search.expand(link)
            continue
        slot, cost = found
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
        self._offers = [(room, slot, draft.held(slot)) for room, slot in offers]

    def expand(self, link: Link) -> None:
        """Add a link for each slower partition that could make room."""
        draft, best = self._draft, self._budget
        rates, value = draft.rates, draft.costs.value
        rate, spent = rates[link.number], link.cost
        draft.search_steps += len(self._offers)
        most = self._offers[0][0] if self._offers else 0.0
        visited = _owners(draft, link)
        for room, slot, held in self._offers:
            need = rate - room
            if spent + need >= best:
                return
            for other in held:
                smaller = rates[other]
                if need <= smaller < rate and slot not in visited:
                    cost = spent if draft.moved(other) else spent + smaller
                    rest = smaller - most if smaller > most else 0.0
                    if cost + rest >= best:
                        continue
                    cost += value.cost_of_taking(room, rate - smaller)
                    self._push(cost + rest, cost, other, link)
                    if not rest:
                        best = cost + value.penalty

    def _push(self, estimate: float, cost: float, number: int, before: Link) -> None:
        self._pushed += 1
        heappush(self.heap, Link(estimate, self._pushed, cost, number, before))


def _direct(draft: Draft, number: int) -> tuple[Slot, float] | None:
    """Return a consumer with room, the home first, and the cost besides the partition's rate."""
    rate, home, value = draft.rates[number], draft.homes[number], draft.costs.value
    if home in draft.offered and draft.room[home] >= rate:
        return home, value.cost_of_taking(draft.room[home], rate) - rate  # the move is undone
    # The fullest consumer with ample room afterwards; without one, that with the most room.
    offer = draft.offers.least(rate + value.ample_room) or draft.offers.last
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
