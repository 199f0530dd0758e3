"""Save a consumer where that costs less than it is worth."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from binwright.core.model import Slot
from binwright.core.packing.sticky.board import Board
from binwright.core.packing.sticky.chain import place
from binwright.core.packing.sticky.repack import Effort, widen

FAILURES = 5
"""After so many consumers in turn that could not be emptied, at most, the others are left alone."""
REPACKED = 4
"""How many consumers are tried to be packed anew with others at a time; the best is taken."""
EFFORT = 6_000
"""How many partitions may be packed anew in one decision, tries that fail included."""
SMALL = 150
"""In every so many consumers one more may fail; of so many more, one less is worth less effort."""


@dataclass(frozen=True, slots=True)
class Saving:
    """One consumer less, and what that leaves of its price, bytes/s."""

    gain: float
    slot: Slot  # the consumer that is not needed any more
    changes: Mapping[int, Slot]  # partition -> consumer


def save(board: Board, surplus: int) -> int:
    """Do without consumers while that pays; return how many.

    Args:
        board: Changed for every consumer saved.
        surplus: How many more there are than a bound says are needed: no more can be saved.
    """
    if surplus <= 0:
        return 0
    # Ordered once: what moves meanwhile changes little of it.
    cheapest = sorted(sorted(board.offered), key=board.kept.__getitem__)
    times = 1 + len(cheapest) // SMALL
    # In a small group another repacking is cheaper than the next best consumer to empty.
    saved = _sweep(board, cheapest, surplus, min(FAILURES, times))
    effort = Effort(EFFORT // times)
    while saved < surplus and (found := _repacking(board, cheapest, effort)) is not None:
        board.withdraw(found.slot)
        for number, slot in found.changes.items():
            board.shift(number, slot)
        saved += 1
    return saved


def _worth(board: Board, slot: Slot) -> float:
    """Return what it is worth to do without a consumer: its price, and what its room costs."""
    return board.costs.price + board.costs.value(board.room[slot])


def _sweep(board: Board, cheapest: list[Slot], surplus: int, patience: int) -> int:
    """Empty one consumer after another, until as many in turn fail; return how many."""
    saved = failures = 0
    for slot in filter(board.offered.__contains__, cheapest):
        if saved == surplus or failures == patience:
            break
        if _empty(board, slot):
            saved, failures = saved + 1, 0
        else:
            failures += 1
    return saved


def _empty(board: Board, slot: Slot) -> bool:
    """Give away all that a consumer holds if that costs less than it is worth."""
    mark, left = board.mark, _worth(board, slot)
    board.withdraw(slot)
    for number in board.biggest_first(board.held(slot)):
        cost = place(board, number, left)
        if cost is None:
            board.back(mark)
            board.offer(slot)
            return False
        left -= cost
    return True


def _repacking(board: Board, cheapest: list[Slot], effort: Effort) -> Saving | None:
    """Return the best of a few ways to pack a consumer anew with others."""
    tried = islice(filter(board.offered.__contains__, cheapest), REPACKED)
    savings = [_repacked(board, slot, effort) for slot in tried]
    return max(filter(None, savings), key=lambda saving: saving.gain, default=None)


def _repacked(board: Board, slot: Slot, effort: Effort) -> Saving | None:
    if (changes := widen(board, slot, effort)) is None:
        return None
    spent = sum([board.toll(n, to) - board.toll(n, board.at[n]) for n, to in changes.items()])
    gain = _worth(board, slot) - spent
    return Saving(gain, slot, changes) if gain > 0 else None
