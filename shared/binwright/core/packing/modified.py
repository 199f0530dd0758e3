"""The paper's Modified Any Fit: repack, but let consumers keep what they can (Algorithm 1).

Landau, Andrade, Barbosa, arXiv 2402.06085. Rates in bytes/s, slots are consumer numbers.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate

from binwright.core.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition
from binwright.core.packing.bins import Bins
from binwright.core.packing.capacity import Capacity, PerSlot
from binwright.core.packing.inputs import check
from binwright.core.packing.order import Numbers, descending


@dataclass(frozen=True, slots=True)
class Modified:
    """One of MWF, MBF, MWFP, MBFP: a fit rule and an order in which consumers have their say.

    Args:
        fit: Makes the bins of a given capacity; their rule is the algorithm's.
        weigh: Rates of a consumer's partitions to what consumers are ordered by, heaviest first:
            `sum`, or `max` for the algorithms in P.
    """

    fit: Callable[[PerSlot], Bins]
    weigh: Callable[[Iterable[float]], float]

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        change: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Return the new owner of each of the n partitions. See `catalogue.Packing`; O(n log n)."""
        del change
        capacities = check(rates, capacity)
        bins = self.fit(capacities)
        numbers = Numbers()
        placed: dict[TopicPartition, Slot] = {}
        homeless = [p for p in rates if p not in current]
        for slot, kept in self._consumers(rates, current):
            # Its smallest move in with others first: perhaps nothing is left to open it for.
            while kept and (host := bins.place(rates[kept[-1]])) is not None:
                placed[kept.pop()] = host
            if kept:
                stay, load = _fill([rates[p] for p in kept], capacities.of(slot))
                bins.open(numbers.open(slot), load)
                placed.update(dict.fromkeys(kept[:stay], slot))
                homeless += kept[stay:]

        for partition in descending(rates, homeless):
            if (host := bins.place(rates[partition])) is None:
                # Eq. 14 would open its old consumer, were it not open already.
                host = numbers.open(None)
                bins.open(host, rates[partition])
            placed[partition] = host
        return dict(sorted(placed.items()))

    def _consumers(
        self, rates: Rates, current: Assignment
    ) -> list[tuple[Slot, list[TopicPartition]]]:
        """Return who reads what, heaviest consumer first, each one's largest partition first."""
        owned: dict[Slot, list[TopicPartition]] = {}
        for partition in descending(rates, (p for p in rates if p in current)):
            owned.setdefault(current[partition], []).append(partition)
        weight = {slot: self.weigh(rates[p] for p in kept) for slot, kept in owned.items()}
        return sorted(owned.items(), key=lambda item: (-weight[item[0]], item[0]))


def _fill(rates: list[BytesPerSecond], capacity: BytesPerSecond) -> tuple[int, BytesPerSecond]:
    """Return how many of these fit an empty consumer in turn (one always does), and their load."""
    loads = list(accumulate(rates))
    fitting = max(1, bisect_right(loads, capacity))
    return fitting, BytesPerSecond(loads[fitting - 1])
