"""An index of consumers by spare capacity, for fast best-fit searches among up to millions."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from binwright.protocol.model import Slot

BLOCK = 250
"""Consumers in a new block; a block that doubles is split."""


class ConsumersBySpare:
    """Consumers by ascending spare capacity, bytes/s, equal ones by slot, in short sorted blocks.

    Every operation is a few binary searches and a memory move within one block: O(log n + BLOCK).
    Blocks are arrays, for locality. No block is empty, except a single one.
    """

    def __init__(self, slots: Iterable[Slot], spare: Callable[[Slot], float]) -> None:
        """Order distinct consumers by their `spare`."""
        ordered = sorted(sorted(slots), key=spare)
        every, spares = array("i", ordered), array("d", map(spare, ordered))
        starts = range(0, len(every) or 1, BLOCK)
        self._slots = [every[at : at + BLOCK] for at in starts]
        self._spares = [spares[at : at + BLOCK] for at in starts]
        self._first_slots = [block[0] for block in self._slots if block]
        self._first_spares = [block[0] for block in self._spares if block]

    def add(self, spare: float, slot: Slot) -> None:
        """Add a consumer."""
        at = max(0, self._block(spare, slot))
        spares, slots = self._spares[at], self._slots[at]
        index = bisect_left(spares, spare)
        if index < len(spares) and spares[index] == spare:
            index = bisect_left(slots, slot, index, bisect_right(spares, spare, index))
        spares.insert(index, spare)
        slots.insert(index, slot)
        if not index:
            self._first_spares[at : at + 1] = [spare]
            self._first_slots[at : at + 1] = [slot]
        if len(spares) > 2 * BLOCK:
            self._cut(at)

    def remove(self, spare: float, slot: Slot) -> None:
        """Remove a consumer that is present with that spare capacity."""
        at = self._block(spare, slot)
        spares, slots = self._spares[at], self._slots[at]
        index = bisect_left(spares, spare)
        if slots[index] != slot:
            index = bisect_left(slots, slot, index, bisect_right(spares, spare, index))
        self._delete(at, index)

    def least(self, bound: float) -> tuple[float, Slot] | None:
        """Return the least spare capacity from `bound` up, and its consumer; None if none has."""
        at, index = self._from(bound)
        if at == len(self._spares):
            return None
        return self._spares[at][index], Slot(self._slots[at][index])

    def take_best_fit(self, need: float, margin: float) -> tuple[float, Slot] | None:
        """Remove and return the consumer with the least spare capacity for `need` + `margin`.

        Without one, the consumer with the most spare capacity; None if that is below `need`.
        """
        last = self._spares[-1]
        if not last or (most := last[-1]) < need:
            return None
        if most < need + margin:
            at, index = len(self._spares) - 1, len(last) - 1
        else:
            at, index = self._from(need + margin)
        best = self._spares[at][index], Slot(self._slots[at][index])
        self._delete(at, index)
        return best

    @property
    def last(self) -> tuple[float, Slot] | None:
        """Return the most spare capacity, and its consumer; None: there are no consumers."""
        spares, slots = self._spares[-1], self._slots[-1]
        return (spares[-1], Slot(slots[-1])) if spares else None

    def descending(self) -> Iterator[tuple[float, Slot]]:
        """Iterate from the most to the least; the index must not change meanwhile."""
        for spares, slots in zip(reversed(self._spares), reversed(self._slots), strict=True):
            pairs = zip(reversed(spares), reversed(slots), strict=True)
            yield from cast("Iterator[tuple[float, Slot]]", pairs)

    def _block(self, spare: float, slot: Slot) -> int:
        """Return the last block that does not begin after this consumer; -1: there is none."""
        spares = self._first_spares
        after = bisect_right(spares, spare)
        if after and spares[after - 1] == spare:
            after = bisect_right(self._first_slots, slot, bisect_left(spares, spare), after)
        return after - 1

    def _from(self, bound: float) -> tuple[int, int]:
        """Return the block and the index in it of the first one that is not below `bound`."""
        at = max(0, bisect_left(self._first_spares, bound) - 1)
        spares = self._spares[at]
        index = bisect_left(spares, bound)
        return (at, index) if index < len(spares) else (at + 1, 0)

    def _delete(self, at: int, index: int) -> None:
        spares, slots = self._spares[at], self._slots[at]
        del spares[index], slots[index]
        if not spares:
            del self._first_spares[at], self._first_slots[at]
            if len(self._spares) > 1:
                del self._spares[at], self._slots[at]
        elif not index:
            self._first_spares[at], self._first_slots[at] = spares[0], slots[0]

    def _cut(self, at: int) -> None:
        spares, slots = self._spares[at], self._slots[at]
        self._spares[at : at + 1] = [spares[:BLOCK], spares[BLOCK:]]
        self._slots[at : at + 1] = [slots[:BLOCK], slots[BLOCK:]]
        self._first_spares.insert(at + 1, spares[BLOCK])
        self._first_slots.insert(at + 1, slots[BLOCK])
