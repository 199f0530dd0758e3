"""An index of consumers by their room, for fast best-fit searches among up to millions."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from binwright.protocol.model import Slot

BLOCK = 250
"""Consumers in a new block; a block that doubles is split."""


class ConsumersByRoom:
    """Consumers by ascending room, bytes/s, equal ones by slot, in a list of short sorted blocks.

    Every operation is a few binary searches and a memory move within one block: O(log n + BLOCK).
    Blocks are arrays, for locality. No block is empty, except a single one.
    """

    def __init__(self, slots: Iterable[Slot], room: Callable[[Slot], float]) -> None:
        """Order distinct consumers by their `room`."""
        ordered = sorted(sorted(slots), key=room)
        every, rooms = array("i", ordered), array("d", map(room, ordered))
        starts = range(0, len(every) or 1, BLOCK)
        self._slots = [every[at : at + BLOCK] for at in starts]
        self._rooms = [rooms[at : at + BLOCK] for at in starts]
        self._first_slots = [block[0] for block in self._slots if block]
        self._first_rooms = [block[0] for block in self._rooms if block]

    def add(self, room: float, slot: Slot) -> None:
        """Add a consumer."""
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
        """Remove a consumer that is present with that room."""
        at = self._block(room, slot)
        rooms, slots = self._rooms[at], self._slots[at]
        index = bisect_left(rooms, room)
        if slots[index] != slot:
            index = bisect_left(slots, slot, index, bisect_right(rooms, room, index))
        self._delete(at, index)

    def least(self, bound: float) -> tuple[float, Slot] | None:
        """Return the least room that is not below `bound`, and its consumer; None if none has."""
        at, index = self._from(bound)
        if at == len(self._rooms):
            return None
        return self._rooms[at][index], Slot(self._slots[at][index])

    def take_best_fit(self, need: float, spare: float) -> tuple[float, Slot] | None:
        """Remove and return the consumer with the least room for `need` + `spare`.

        Without one, the consumer with the most room; None if that is below `need`.
        """
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
        """Return the most room, and its consumer; None: there are no consumers."""
        rooms, slots = self._rooms[-1], self._slots[-1]
        return (rooms[-1], Slot(slots[-1])) if rooms else None

    def descending(self) -> Iterator[tuple[float, Slot]]:
        """Iterate from the most room to the least; the index must not change meanwhile."""
        for rooms, slots in zip(reversed(self._rooms), reversed(self._slots), strict=True):
            pairs = zip(reversed(rooms), reversed(slots), strict=True)
            yield from cast("Iterator[tuple[float, Slot]]", pairs)

    def _block(self, room: float, slot: Slot) -> int:
        """Return the last block that does not begin after this consumer; -1: there is none."""
        rooms = self._first_rooms
        after = bisect_right(rooms, room)
        if after and rooms[after - 1] == room:
            after = bisect_right(self._first_slots, slot, bisect_left(rooms, room), after)
        return after - 1

    def _from(self, bound: float) -> tuple[int, int]:
        """Return the block and the index in it of the first room that is not below `bound`."""
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
