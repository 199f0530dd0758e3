"""The paper's Modified Any Fit: repacks, but consumers keep partitions that fit (Algorithm 1).

Landau, Andrade, Barbosa, arXiv 2402.06085. Rates in bytes/s.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate

from binwright.packing.any_fit.bins import Bins
from binwright.packing.any_fit.order import OpenSlots, descending
from binwright.packing.capacity import Capacity, SlotCapacities
from binwright.packing.inputs import check_inputs
from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition


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

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        rate_variance: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Return the new owner of each of the n partitions. See `catalogue.Packing`; O(n log n)."""
        del rate_variance
        capacities = check_inputs(rates, capacity)
        bins = self.fit(capacities)
        numbers = OpenSlots()
        placed: dict[TopicPartition, Slot] = {}
        unassigned = [p for p in rates if p not in current]
        for slot, kept in self._consumers(rates, current):
            # The smallest partitions move to open consumers first; if all do, this one stays shut.
            while kept and (host := bins.place(rates[kept[-1]])) is not None:
                placed[kept.pop()] = host
            if kept:
                stay, load = _fill([rates[p] for p in kept], capacities.for_slot(slot))
                bins.open(numbers.open(slot), load)
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
