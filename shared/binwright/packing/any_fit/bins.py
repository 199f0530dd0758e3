"""Open consumers, indexed so that each fit rule finds the consumer of the next partition fast.

A partition fits where load + rate <= capacity. A consumer is opened only with a partition in it, so
the paper's other case, an empty consumer that takes any partition, does not occur here.

Consumers are compared by load - capacity; with one capacity for all that is the paper's order by
load. Ties go to the lowest slot.
"""

from heapq import heappush, heapreplace
from math import inf
from typing import Protocol

from binwright.packing.capacity import SlotCapacities
from binwright.packing.ordered import Ordered
from binwright.protocol.model import BytesPerSecond, Slot


class Bins(Protocol):
    """Open consumers, and the rule that picks one of those where a partition fits."""

    def open(self, slot: Slot, load: BytesPerSecond) -> None:
        """Add a consumer with a load of `load` bytes/s."""

    def place(self, rate: BytesPerSecond) -> Slot | None:
        """Add `rate` bytes/s to the consumer that the rule picks; None if it fits nowhere."""


class WorstFit:
    """Picks the consumer with the most room; O(log n)."""

    def __init__(self, capacities: SlotCapacities) -> None:
        self._capacities = capacities
        self._heap: list[tuple[float, float, Slot]] = []  # load less capacity, load, slot

    def open(self, slot: Slot, load: BytesPerSecond) -> None:
        """See `Bins.open`."""
        heappush(self._heap, (load - self._capacities.for_slot(slot), load, slot))

    def place(self, rate: BytesPerSecond) -> Slot | None:
        """See `Bins.place`."""
        if not self._heap:
            return None
        _, load, slot = self._heap[0]
        capacity = self._capacities.for_slot(slot)
        # A rate that does not fit where there is most room fits nowhere.
        if load + rate > capacity:
            return None
        heapreplace(self._heap, (load + rate - capacity, load + rate, slot))
        return slot


class BestFit:
    """Picks the consumer with the least room that is enough; O(log n)."""

    def __init__(self, capacities: SlotCapacities) -> None:
        self._capacities = capacities
        self._ordered: Ordered[tuple[float, float, Slot]] = Ordered()  # room, -load, slot

    def open(self, slot: Slot, load: BytesPerSecond) -> None:
        """See `Bins.open`."""
        self._ordered.add((self._capacities.for_slot(slot) - load, -load, slot))

    def place(self, rate: BytesPerSecond) -> Slot | None:
        """See `Bins.place`."""
        of = self._capacities.for_slot
        # A sum, as in the rule: `rate <= room` differs from it by rounding.
        found = self._ordered.first(lambda bin_: rate - bin_[1] <= of(bin_[2]))
        if found is None:
            return None
        _, negative, slot = found
        self._ordered.remove(found)
        self.open(slot, BytesPerSecond(rate - negative))
        return slot


class FirstFit:
    """Picks the lowest slot with enough room; O(log n), in a tree of the greatest rooms."""

    def __init__(self, capacities: SlotCapacities) -> None:
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
        return load + rate <= self._capacities.for_slot(slot)

    def _set(self, slot: Slot, load: BytesPerSecond) -> None:
        node, tree = self._leaves + slot, self._tree
        tree[node] = (load - self._capacities.for_slot(slot), load, slot)
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
