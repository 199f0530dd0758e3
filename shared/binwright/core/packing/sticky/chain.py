"""Room for one more partition: where there is some, or by a chain of ejections.

A partition goes to a consumer that has room, or takes the place of a smaller one, which goes
elsewhere in turn. Rates fall along a chain, so it ends; the cheapest is found best first.
"""

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
    here, home = board.at[number], board.homes[number]
    # Who never had a home, or has left it already, moves for nothing.
    own = board.rates[number] if home != NOWHERE and here in (NOWHERE, home) else 0.0
    if budget <= 0:
        return None
    if (found := _direct(board, number)) is None:
        return _by_chain(board, number, own, budget)
    slot, cost = found
    if own + cost >= budget or slot == here:
        return None
    board.shift(number, slot)
    return own + cost


def _by_chain(board: Board, number: int, own: float, budget: float) -> float | None:
    patience = PATIENT if board.looks < LOOKS else HASTY
    search = _Search(board, budget)
    search.expand(Link(-budget, 0, own, number, None))
    for _ in range(patience - 1):
        if not search.heap or (link := heappop(search.heap)).estimate >= budget:
            return None
        if (found := _direct(board, link.number)) is None:
            search.expand(link)
            continue
        slot, cost = found
        if link.cost + cost < budget and _apply(board, link, slot):
            return link.cost + cost
    return None


class _Search:
    """Chains begun, the one that can end the cheapest on top."""

    def __init__(self, board: Board, budget: float) -> None:
        self.heap: list[Link] = []
        self._board, self._budget, self._pushed = board, budget, 0
        # Nothing changes while a search lasts.
        width = WIDE if board.looks < LOOKS else NARROW
        self._offers = list(islice(board.offers.descending(), width))

    def expand(self, link: Link) -> None:
        """Think of each smaller partition that could make room."""
        board, best = self._board, self._budget
        rates, held, value = board.rates, board.held, board.costs.value
        rate, spent = rates[link.number], link.cost
        board.looks += len(self._offers)
        most = self._offers[0][0] if self._offers else 0.0
        places = _places(board, link)
        for room, slot in self._offers:
            need = rate - room
            if spent + need >= best:
                return
            for other in held(slot):
                smaller = rates[other]
                if need <= smaller < rate and slot not in places:
                    cost = spent if board.moved(other) else spent + smaller
                    rest = smaller - most if smaller > most else 0.0
                    if cost + rest >= best:
                        continue
                    cost += value.taking(room, rate - smaller)
                    self._push(cost + rest, cost, other, link)
                    if not rest:
                        best = cost + value.penalty

    def _push(self, estimate: float, cost: float, number: int, before: Link) -> None:
        self._pushed += 1
        heappush(self.heap, Link(estimate, self._pushed, cost, number, before))


def _direct(board: Board, number: int) -> tuple[Slot, float] | None:
    """Return a consumer that has room, home before any, and the cost besides the own move."""
    rate, home, value = board.rates[number], board.homes[number], board.costs.value
    if home in board.offered and board.room[home] >= rate:
        return home, value.taking(board.room[home], rate) - rate  # the move is taken back
    # With room to spare the fullest will do; without, the roomiest is the least bad.
    offer = board.offers.least(rate + value.enough) or board.offers.last
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
