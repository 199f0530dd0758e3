"""When no consumer can be emptied: pack one anew together with the roomiest others."""

from bisect import bisect_left, insort

from binwright.core.model import Slot
from binwright.core.packing.sticky.board import NOWHERE, Board

FIRST = 4
"""So many others are taken in at first."""
GROWTH = 1.5
"""By how much the group grows when it does not fit into one consumer less."""


class Effort:
    """How much may still be tried."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, much: int) -> bool:
        """Whether there is still that much; then it is spent."""
        if much > self.left:
            return False
        self.left -= much
        return True


def widen(board: Board, slot: Slot, effort: Effort) -> dict[int, Slot] | None:
    """Take in ever more of the roomiest until they carry everything without this consumer.

    With all of them this is best fit decreasing, which few packings beat.

    Returns:
        Where every partition of the group goes, or None if even all are too few.
    """
    lacking = board.capacities.of(slot) - board.room[slot]
    group: list[Slot] = []
    numbers = list(board.held(slot))
    size = FIRST
    for room, other in board.offers.descending():
        if other == slot:
            continue
        group.append(other)
        numbers += board.held(other)
        lacking -= room
        if len(group) >= size and lacking <= 0:
            if not effort.spend(len(numbers)):
                return None
            if (found := Loyal(board, group, numbers).pack(lazy=False)) is not None:
                return found
            size = max(size + 1, int(size * GROWTH))
    if lacking > 0 or not effort.spend(len(numbers)):
        return None
    return Loyal(board, group, numbers).pack(lazy=True)


class Loyal:
    """Best fit decreasing in which a partition goes home first, if it fits there.

    Lazy: a consumer counts only once a partition that fits nowhere else opened it, its own if it
    can. That packs tighter, and moves more.
    """

    def __init__(self, board: Board, group: list[Slot], numbers: list[int]) -> None:
        """Prepare to pack partitions, by number, into a group of consumers."""
        self._board, self._group, self._numbers = board, group, numbers

    def pack(self, *, lazy: bool) -> dict[int, Slot] | None:
        """Return where each partition goes, or None if they do not fit."""
        self._room: dict[Slot, float] = {
            other: self._board.capacities.of(other) for other in self._group
        }
        self._closed = dict.fromkeys(reversed(self._group)) if lazy else {}
        # Effort keeps groups small: a plain list is the fastest there is.
        open_ = () if lazy else self._room.items()
        offers = self._offers = sorted((room, slot) for slot, room in open_)
        target: dict[int, Slot] = {}
        for number in self._board.biggest_first(self._numbers):
            rate = self._board.rates[number]
            if (slot := self._host(number, rate)) is None:
                return None
            room = self._room[slot]
            del offers[bisect_left(offers, (room, slot))]
            self._room[slot] = room - rate
            insort(offers, (room - rate, slot))
            target[number] = slot
        return target

    def _host(self, number: int, rate: float) -> Slot | None:
        home = self._board.homes[number]
        if home not in self._closed and self._room.get(home, -1.0) >= rate:
            return home
        if (least := bisect_left(self._offers, (rate, NOWHERE))) < len(self._offers):
            return self._offers[least][1]
        if not self._closed:
            return None
        slot = home if home in self._closed else next(reversed(self._closed))
        if self._room[slot] < rate:
            return None
        del self._closed[slot]
        insort(self._offers, (self._room[slot], slot))
        return slot
