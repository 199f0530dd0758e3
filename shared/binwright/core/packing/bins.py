"""Open consumers, kept so that the next partition finds its place fast.

A partition fits where load + rate <= capacity. Nobody opens a consumer without putting a partition
into it, so the paper's other case, an empty one that takes whatever comes, cannot be met in here.

Consumers are compared by what is missing to their capacity; with one capacity for all that is the
paper's order by load. Ties go to the lowest slot.
"""

from heapq import heappush, heapreplace
from math import inf
from typing import Protocol

from binwright.core.model import BytesPerSecond, Slot
from binwright.core.packing.capacity import PerSlot
from binwright.core.packing.ordered import Ordered


class Bins(Protocol):
    """Consumers that are open, and the rule that picks among those where a partition fits."""

    def open(self, slot: Slot, load: BytesPerSecond) -> None:
        """Offer a new consumer that already carries `load` bytes/s."""

    def place(self, rate: BytesPerSecond) -> Slot | None:
        """Put `rate` bytes/s where the rule says; None if it fits nowhere."""


class WorstFit:
    """The consumer with the most room: O(log n) a placement."""

    def __init__(self, capacities: PerSlot) -> None:
        self._capacities = capacities
        self._heap: list[tuple[float, float, Slot]] = []  # load less capacity, load, slot

    def open(self, slot: Slot, load: BytesPerSecond) -> None:
        """See `Bins.open`."""
        heappush(self._heap, (load - self._capacities.of(slot), load, slot))

    def place(self, rate: BytesPerSecond) -> Slot | None:
        """See `Bins.place`."""
        if not self._heap:
            return None
        _, load, slot = self._heap[0]
        capacity = self._capacities.of(slot)
        # What does not fit where there is most room fits nowhere.
        if load + rate > capacity:
            return None
        heapreplace(self._heap, (load + rate - capacity, load + rate, slot))
        return slot


class BestFit:
    """The consumer with the least room that is enough: O(log n) a placement."""

    def __init__(self, capacities: PerSlot) -> None:
        self._capacities = capacities
        self._ordered: Ordered[tuple[float, float, Slot]] = Ordered()  # room, -load, slot

    def open(self, slot: Slot, load: BytesPerSecond) -> None:
        """See `Bins.open`."""
        self._ordered.add((self._capacities.of(slot) - load, -load, slot))

    def place(self, rate: BytesPerSecond) -> Slot | None:
        """See `Bins.place`."""
        of = self._capacities.of
        # Added up, not `rate <= room`: rounding would answer otherwise than the rule.
        found = self._ordered.first(lambda bin_: rate - bin_[1] <= of(bin_[2]))
        if found is None:
            return None
        _, negative, slot = found
        self._ordered.remove(found)
        self.open(slot, BytesPerSecond(rate - negative))
        return slot


class FirstFit:
    """The lowest slot with room enough: O(log n) a placement, in a tree of the greatest rooms."""

    def __init__(self, capacities: PerSlot) -> None:
        self._capacities = capacities
        self._leaves = 1
        # Node k spans nodes 2k and 2k + 1 and holds the lesser (load less capacity, load, slot).
        self._tree: list[tuple[float, float, Slot]] = [_CLOSED, _CLOSED]

    def open(self, slot: Slot, load: BytesPerSecond) -> None:
        """See `Bins.open`."""
        if slot >= self._leaves:
            self._grow(slot)
        self._set(slot, load)

    def place(self, rate: BytesPerSecond) -> Slot | None:
        """See `Bins.place`."""
        if not self._fits(1, rate):
            return None
        node = 1
        while node < self._leaves:
            node *= 2
            node += not self._fits(node, rate)
        _, load, slot = self._tree[node]
        self._set(slot, BytesPerSecond(load + rate))
        return slot

    def _fits(self, node: int, rate: BytesPerSecond) -> bool:
        _, load, slot = self._tree[node]
        return load + rate <= self._capacities.of(slot)

    def _set(self, slot: Slot, load: BytesPerSecond) -> None:
        node, tree = self._leaves + slot, self._tree
        tree[node] = (load - self._capacities.of(slot), load, slot)
        while node > 1:
            node //= 2
            tree[node] = min(tree[2 * node], tree[2 * node + 1])

    def _grow(self, slot: Slot) -> None:
        open_ = [leaf for leaf in self._tree[self._leaves :] if leaf is not _CLOSED]
        while self._leaves <= slot:
            self._leaves *= 2
        self._tree = [_CLOSED] * (2 * self._leaves)
        for _, load, known in open_:
            self._set(known, BytesPerSecond(load))


_CLOSED = (inf, inf, Slot(0))
