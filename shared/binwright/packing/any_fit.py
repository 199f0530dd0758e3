"""The any-fit family: the classical bin-packing algorithms, and the paper's modified ones.

Landau, Andrade, Barbosa, arXiv 2402.06085. Rates in bytes/s. The classical algorithms have one
change: a new consumer gets its partition's old slot (eq. 14). Any Fit opens a consumer only for a
partition that fits into none; Next Fit tries only the last one.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from typing import Protocol

from binwright.packing.bins import Bins
from binwright.packing.inputs import Load, SlotCapacities
from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition


class PartitionOrder(Protocol):
    """A total order of partitions; the same rates give the same order."""

    def __call__(self, rates: Rates, /) -> Sequence[TopicPartition]:
        """Return the partitions of `rates` in order."""


def descending(rates: Rates, among: Iterable[TopicPartition] | None = None) -> list[TopicPartition]:
    """Return partitions by falling rate, equal ones by partition: all, or those in `among`."""
    partitions = rates if among is None else among
    # Two stable sorts of a nearly sorted list are faster than one by pairs.
    return sorted(sorted(partitions), key=rates.__getitem__, reverse=True)


@dataclass(frozen=True, slots=True)
class Shuffled:
    """A random order given by a seed, for the paper's online algorithms.

    The paper shuffles for each measurement: use a seed for each.
    """

    seed: int

    def __call__(self, rates: Rates) -> list[TopicPartition]:
        """Return the partitions of `rates` in an order that depends only on the seed."""
        return sorted(sorted(rates), key=self._digest)

    def _digest(self, partition: TopicPartition) -> bytes:
        return blake2b(f"{self.seed}/{partition}".encode(), digest_size=8).digest()


class OpenSlots:
    """The slots that are open (eq. 14 of the paper, f and h)."""

    def __init__(self) -> None:
        self.taken: set[Slot] = set()
        self._lowest = 0

    def open(self, preferred: Slot | None) -> Slot:
        """Open `preferred` unless it is open already, else the lowest free slot; return it."""
        slot = self._free() if preferred is None or preferred in self.taken else preferred
        self.taken.add(slot)
        return slot

    def _free(self) -> Slot:
        while self._lowest in self.taken:
            self._lowest += 1
        return Slot(self._lowest)


@dataclass(frozen=True, slots=True)
class AnyFit:
    """One of FF, FFD, WF, WFD, BF, BFD. See `catalogue.Packing`; O(n log n)."""

    fit: Callable[[SlotCapacities], Bins]
    order: PartitionOrder

    def __call__(self, load: Load) -> dict[TopicPartition, Slot]:
        """Place each partition by the rule; its current slot matters only for a new consumer."""
        bins, rates = self.fit(load.checked()), load.rates
        numbers = OpenSlots()
        placed: dict[TopicPartition, Slot] = {}
        for partition in self.order(rates):
            if (slot := bins.place(rates[partition])) is None:
                slot = numbers.open(load.current.get(partition))
                bins.open(slot, rates[partition])
            placed[partition] = slot
        return dict(sorted(placed.items()))


@dataclass(frozen=True, slots=True)
class NextFit:
    """NF or NFD. See `catalogue.Packing`; O(n) after sorting.

    As in the paper, the first consumer is slot 0, whatever the first partition's current slot; and
    the last consumer accepts any partition while its load is 0.
    """

    order: PartitionOrder

    def __call__(self, load: Load) -> dict[TopicPartition, Slot]:
        """Fill one consumer until a partition does not fit, then open the next one."""
        capacities, rates = load.checked(), load.rates
        numbers = OpenSlots()
        last, used = numbers.open(Slot(0)), 0.0
        placed: dict[TopicPartition, Slot] = {}
        for partition in self.order(rates):
            if used and used + rates[partition] > capacities.for_slot(last):
                last, used = numbers.open(load.current.get(partition)), 0.0
            used += rates[partition]
            placed[partition] = last
        return dict(sorted(placed.items()))


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """kd_n: as Kafka's own assignors, n consumers whatever the load; assigned partitions stay."""

    consumers: int  # > 0

    def __call__(self, load: Load) -> dict[TopicPartition, Slot]:
        """Assign new partitions round robin, in their order."""
        load.checked()
        dealt = enumerate(sorted(load.rates))
        return {p: load.current.get(p, Slot(number % self.consumers)) for number, p in dealt}


@dataclass(frozen=True, slots=True)
class Modified:
    """One of MWF, MBF, MWFP, MBFP: a fit rule, and an order in which consumers are processed.

    Args:
        fit: Returns empty bins with the algorithm's rule.
        weight_of: A consumer's weight, by its partitions' rates; the heaviest comes first:
            `sum`, or `max` for the algorithms in P.
    """

    fit: Callable[[SlotCapacities], Bins]
    weight_of: Callable[[Iterable[float]], float]

    def __call__(self, load: Load) -> dict[TopicPartition, Slot]:
        """Return the new owner of each of the n partitions. See `catalogue.Packing`; O(n log n)."""
        capacities, rates, current = load.checked(), load.rates, load.current
        bins = self.fit(capacities)
        numbers = OpenSlots()
        placed: dict[TopicPartition, Slot] = {}
        unassigned = [p for p in rates if p not in current]
        for slot, kept in self._consumers(rates, current):
            # The smallest partitions move to open consumers first; if all do, this one stays shut.
            while kept and (host := bins.place(rates[kept[-1]])) is not None:
                placed[kept.pop()] = host
            if kept:
                stay, used = _fill([rates[p] for p in kept], capacities.for_slot(slot))
                bins.open(numbers.open(slot), used)
                placed.update(dict.fromkeys(kept[:stay], slot))
                unassigned += kept[stay:]

        for partition in descending(rates, unassigned):
            if (host := bins.place(rates[partition])) is None:
                # Eq. 14 would open its current consumer, but that is open already.
                host = numbers.open(None)
                bins.open(host, rates[partition])
            placed[partition] = host
        return dict(sorted(placed.items()))

    def _consumers(
        self, rates: Rates, current: Assignment
    ) -> list[tuple[Slot, list[TopicPartition]]]:
        """Return each consumer's partitions, heaviest consumer and largest partition first."""
        owned: dict[Slot, list[TopicPartition]] = {}
        for partition in descending(rates, (p for p in rates if p in current)):
            owned.setdefault(current[partition], []).append(partition)
        weight = {slot: self.weight_of(rates[p] for p in kept) for slot, kept in owned.items()}
        return sorted(owned.items(), key=lambda item: (-weight[item[0]], item[0]))


def _fill(rates: list[BytesPerSecond], capacity: BytesPerSecond) -> tuple[int, BytesPerSecond]:
    """Return how many of these fit an empty consumer in order, at least one, and their load."""
    loads = list(accumulate(rates))
    fitting = max(1, bisect_right(loads, capacity))
    return fitting, BytesPerSecond(loads[fitting - 1])
