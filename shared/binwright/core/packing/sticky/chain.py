"""Room for one more partition: where there is some, or by a chain of ejections.

A partition goes to a consumer that has room, or takes the place of a smaller one, which goes
elsewhere in turn. Rates fall along a chain, so it ends; the cheapest is found best first.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

from binwright.core.model import Slot
from binwright.core.packing.sticky.board import NOWHERE, Board

WIDE, NARROW = 100, 12
"""Of how many consumers, the roomiest first, an ejection is thought of."""
PATIENT, HASTY = 8, 3
"""How many links are looked beyond before a search gives up."""
LOOKS = 30_000
"""After so many looks at consumers in one decision searches are narrow and hasty: by then the group
is so large that the roomiest few are as good as any."""


class Link(NamedTuple):
    """A partition that looks for a place, and the link whose partition took its old one."""

    estimate: float  # bytes/s at least, when the chain ends
    order: int
    cost: float  # bytes/s so far
    number: int
    before: "Link | None"


def place(board: Board, number: int, budget: float) -> float | None:
    """Find room for a partition; its own move costs its rate unless it goes home.

    Args:
        board: Changed if there is room.
        number: It may be held already; then what its move has cost is given back.
        budget: Nothing that costs as much is done.

    Returns:
        What it costs, bytes/s (below 0 if it gains), or None: nothing was done.
    """
    here = board.at[number]
    sunk = 0.0 if here == NOWHERE else board.toll(number, here)
    search = _Search(board, budget, [])
    search.push(-budget, board.toll(number, NOWHERE) - sunk, number, None)
    for _ in range(PATIENT if board.looks < LOOKS else HASTY):
        if not search.heap or (link := heappop(search.heap)).estimate >= budget:
            return None
        if (found := _direct(board, link.number)) is None:
            search.expand(link)
            continue
        slot, cost = found
        if link.cost + cost < budget and _apply(board, link, slot):
            return link.cost + cost
    return None


@dataclass(slots=True)
class _Search:
    """Chains begun, the one that can end the cheapest on top."""

    board: Board
    budget: float
    heap: list[Link]
    pushed: int = 0
    offers: list[tuple[float, Slot]] | None = None  # nothing changes while a search lasts

    def push(self, estimate: float, cost: float, number: int, before: Link | None) -> None:
        self.pushed += 1
        heappush(self.heap, Link(estimate, self.pushed, cost, number, before))

    def expand(self, link: Link) -> None:
        """Think of each smaller partition that could make room."""
        board, best = self.board, self.budget
        rate, taking = board.rates[link.number], board.costs.value.taking
        if self.offers is None:
            width = WIDE if board.looks < LOOKS else NARROW
            self.offers = list(islice(board.offers.descending(), width))
        board.looks += len(self.offers)
        most = self.offers[0][0] if self.offers else 0.0
        places = _places(board, link)
        for room, slot in self.offers:
            need = rate - room
            if link.cost + need >= best:
                return
            for other in board.held[slot]:
                smaller = board.rates[other]
                if need <= smaller < rate and slot not in places:
                    cost = link.cost + (0.0 if board.moved(other) else smaller)
                    rest = max(0.0, smaller - most)
                    if cost + rest >= best:
                        continue
                    cost += taking(room, rate - smaller)
                    self.push(cost + rest, cost, other, link)
                    if not rest:
                        best = cost + board.costs.value.penalty


def _direct(board: Board, number: int) -> tuple[Slot, float] | None:
    """Return a consumer that has room, home before any, and the cost besides the own move."""
    rate, home, value = board.rates[number], board.homes[number], board.costs.value
    if home in board.offered and board.room[home] >= rate:
        return home, value.taking(board.room[home], rate) - rate  # the move is taken back
    # With room to spare the fullest will do; without, the roomiest is the least bad.
    offer = board.offers.least((rate + value.enough, NOWHERE)) or board.offers.last
    if offer is None or offer[0] < rate:
        return None
    return offer[1], value.taking(offer[0], rate)


def _places(board: Board, link: Link) -> set[Slot]:
    places = set()
    step: Link | None = link
    while step is not None:
        places.add(board.at[step.number])
        step = step.before
    return places


def _apply(board: Board, link: Link, slot: Slot) -> bool:
    """Carry a chain out from its end; whether every partition fits where it should go."""
    if slot in _places(board, link):
        return False
    step: Link | None = link
    while step is not None:
        source = board.at[step.number]
        board.shift(step.number, slot)
        slot, step = source, step.before
    return True
