"""Open consumers, kept so that the next partition finds its place fast.

A partition fits where load + rate <= capacity. Nobody opens a consumer without putting a partition
into it, so the paper's other case, an empty one that takes whatever comes, cannot be met in here.
"""

from bisect import bisect_left, bisect_right, insort
from heapq import heappush, heapreplace
from typing import Protocol

from binwright.core.model import BytesPerSecond, Slot


class Bins(Protocol):
    """Consumers that are open, and the rule that picks among those where a partition fits."""

    def open(self, slot: Slot, load: BytesPerSecond) -> None:
        """Offer a new consumer that already carries `load` bytes/s."""

    def place(self, rate: BytesPerSecond) -> Slot | None:
        """Put `rate` bytes/s where the rule says; None if it fits nowhere."""


class WorstFit:
    """The emptiest consumer, ties to the lowest slot: O(log n) a placement."""

    def __init__(self, capacity: BytesPerSecond) -> None:
        self._capacity = capacity
        self._heap: list[tuple[float, Slot]] = []

    def open(self, slot: Slot, load: BytesPerSecond) -> None:
        """See `Bins.open`."""
        heappush(self._heap, (load, slot))

    def place(self, rate: BytesPerSecond) -> Slot | None:
        """See `Bins.place`."""
        # What does not fit into the emptiest fits nowhere.
        if not self._heap or self._heap[0][0] + rate > self._capacity:
            return None
        load, slot = self._heap[0]
        heapreplace(self._heap, (load + rate, slot))
        return slot


class BestFit:
    """The fullest consumer that still has room, ties to the lowest slot.

    O(log n) comparisons a placement, though the list shifts n pointers.
    """

    def __init__(self, capacity: BytesPerSecond) -> None:
        self._capacity: float = capacity
        self._sorted: list[tuple[float, Slot]] = []

    def open(self, slot: Slot, load: BytesPerSecond) -> None:
        """See `Bins.open`."""
        insort(self._sorted, (load, slot))

    def place(self, rate: BytesPerSecond) -> Slot | None:
        """See `Bins.place`."""
        # Added up, not `load <= capacity - rate`: rounding would answer otherwise than the rule.
        fitting = bisect_right(self._sorted, self._capacity, key=lambda bin_: bin_[0] + rate)
        if fitting == 0:
            return None
        fullest, _ = self._sorted[fitting - 1]
        load, slot = self._sorted.pop(bisect_left(self._sorted, (fullest, Slot(0))))
        insort(self._sorted, (load + rate, slot))
        return slot
