"""Consumers by their room: the one that fits best is found fast, up to millions of them."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from binwright.core.model import Slot

BLOCK = 250
"""Consumers of a block when it is made; one that doubles is cut in two."""


class Rooms:
    """Consumers by ascending room, equal ones by slot, kept as a list of short sorted blocks.

    Every operation is a few binary searches and a shift within one block: O(log n + BLOCK), the
    shift at the speed of memory. Blocks are arrays: what a search looks at lies side by side. No
    block is ever empty, but for the only one.
    """

    def __init__(self, slots: Iterable[Slot], room: Callable[[Slot], float]) -> None:
        """Order distinct consumers by what `room` says of each."""
        ordered = sorted(sorted(slots), key=room)
        every, rooms = array("i", ordered), array("d", map(room, ordered))
        starts = range(0, len(every) or 1, BLOCK)
        self._slots = [every[at : at + BLOCK] for at in starts]
        self._rooms = [rooms[at : at + BLOCK] for at in starts]
        self._first_slots = [block[0] for block in self._slots if block]
        self._first_rooms = [block[0] for block in self._rooms if block]

    def add(self, room: float, slot: Slot) -> None:
        """Put a consumer in its place."""
        at = max(0, self._block(room, slot))
        rooms, slots = self._rooms[at], self._slots[at]
        index = bisect_left(rooms, room)
        if index < len(rooms) and rooms[index] == room:
            index = bisect_left(slots, slot, index, bisect_right(rooms, room, index))
        rooms.insert(index, room)
        slots.insert(index, slot)
        if not index:
            self._first_rooms[at : at + 1] = [room]
            self._first_slots[at : at + 1] = [slot]
        if len(rooms) > 2 * BLOCK:
            self._cut(at)

    def remove(self, room: float, slot: Slot) -> None:
        """Take out a consumer that is there, with that room."""
        at = self._block(room, slot)
        rooms, slots = self._rooms[at], self._slots[at]
        index = bisect_left(rooms, room)
        if slots[index] != slot:
            index = bisect_left(slots, slot, index, bisect_right(rooms, room, index))
        self._delete(at, index)

    def least(self, bound: float) -> tuple[float, Slot] | None:
        """Return who has the least room that is not below `bound`, and how much that is."""
        at, index = self._from(bound)
        if at == len(self._rooms):
            return None
        return self._rooms[at][index], Slot(self._slots[at][index])

    def take(self, need: float, spare: float) -> tuple[float, Slot] | None:
        """Take out who has the least room for `need` and `spare`, else the most for `need`."""
        last = self._rooms[-1]
        if not last or (most := last[-1]) < need:
            return None
        if most < need + spare:
            at, index = len(self._rooms) - 1, len(last) - 1
        else:
            at, index = self._from(need + spare)
        found = self._rooms[at][index], Slot(self._slots[at][index])
        self._delete(at, index)
        return found

    @property
    def last(self) -> tuple[float, Slot] | None:
        """Return who has the most room, and how much that is."""
        rooms, slots = self._rooms[-1], self._slots[-1]
        return (rooms[-1], Slot(slots[-1])) if rooms else None

    def descending(self) -> Iterator[tuple[float, Slot]]:
        """Walk from the most room to the least; nothing may change meanwhile."""
        for rooms, slots in zip(reversed(self._rooms), reversed(self._slots), strict=True):
            pairs = zip(reversed(rooms), reversed(slots), strict=True)
            yield from cast("Iterator[tuple[float, Slot]]", pairs)

    def _block(self, room: float, slot: Slot) -> int:
        """Return the last block that begins no later than this consumer; -1 if none does."""
        rooms = self._first_rooms
        after = bisect_right(rooms, room)
        if after and rooms[after - 1] == room:
            after = bisect_right(self._first_slots, slot, bisect_left(rooms, room), after)
        return after - 1

    def _from(self, bound: float) -> tuple[int, int]:
        """Return the block and the place in it where rooms that are not below `bound` begin."""
        at = max(0, bisect_left(self._first_rooms, bound) - 1)
        rooms = self._rooms[at]
        index = bisect_left(rooms, bound)
        return (at, index) if index < len(rooms) else (at + 1, 0)

    def _delete(self, at: int, index: int) -> None:
        rooms, slots = self._rooms[at], self._slots[at]
        del rooms[index], slots[index]
        if not rooms:
            del self._first_rooms[at], self._first_slots[at]
            if len(self._rooms) > 1:
                del self._rooms[at], self._slots[at]
        elif not index:
            self._first_rooms[at], self._first_slots[at] = rooms[0], slots[0]

    def _cut(self, at: int) -> None:
        rooms, slots = self._rooms[at], self._slots[at]
        self._rooms[at : at + 1] = [rooms[:BLOCK], rooms[BLOCK:]]
        self._slots[at : at + 1] = [slots[:BLOCK], slots[BLOCK:]]
        self._first_rooms.insert(at + 1, rooms[BLOCK])
        self._first_slots.insert(at + 1, slots[BLOCK])
