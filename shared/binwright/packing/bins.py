"""Open consumers, indexed so that each fit rule finds the consumer of the next partition fast.

A partition fits where load + rate <= capacity. A consumer is opened only with a partition in it, so
the paper's other case, an empty consumer that takes any partition, does not occur here.

Consumers are compared by load - capacity; with one capacity for all that is the paper's order by
load. Ties go to the lowest slot.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from heapq import heappush, heapreplace
from math import inf
from typing import Generic, Protocol, TypeVar

from binwright.packing.inputs import SlotCapacities
from binwright.protocol.model import BytesPerSecond, Slot

T = TypeVar("T", bound=tuple[float, ...])

BLOCK = 1_000
"""A block with twice as many entries is split."""


class Ordered(Generic[T]):
    """Distinct tuples in ascending order, as a list of short sorted lists.

    Every operation is two binary searches and a memory move within one block: O(log n + BLOCK). No
    block is empty, except a single one.
    """

    def __init__(self) -> None:
        self._blocks: list[list[T]] = [[]]
        self._firsts: list[T] = []

    def add(self, entry: T) -> None:
        """Add an entry."""
        at = max(0, bisect_right(self._firsts, entry) - 1)
        block = self._blocks[at]
        insort(block, entry)
        self._firsts[at : at + 1] = [block[0]]
        if len(block) > 2 * BLOCK:
            self._blocks.insert(at + 1, block[BLOCK:])
            self._firsts.insert(at + 1, block[BLOCK])
            del block[BLOCK:]

    def remove(self, entry: T) -> None:
        """Remove an entry that is present."""
        at = bisect_right(self._firsts, entry) - 1
        block = self._blocks[at]
        del block[bisect_left(block, entry)]
        if block:
            self._firsts[at] = block[0]
        else:
            del self._firsts[at]
            if len(self._blocks) > 1:
                del self._blocks[at]

    def first(self, fits: Callable[[T], bool]) -> T | None:
        """Return the least entry that fits; requires that all after one that fits fit, too."""
        at = max(0, bisect_left(self._firsts, x=True, key=fits) - 1)
        for block in self._blocks[at : at + 2]:
            if (index := bisect_left(block, x=True, key=fits)) < len(block):
                return block[index]
        return None


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
        entry = self._ordered.first(lambda bin_: rate - bin_[1] <= of(bin_[2]))
        if entry is None:
            return None
        _, negative, slot = entry
        self._ordered.remove(entry)
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
