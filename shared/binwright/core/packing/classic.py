"""The classical algorithms, but for one thing: a consumer opened anew keeps its number (eq. 14).

Any Fit opens a consumer only for what fits into none; Next Fit looks at the last one alone.
Landau, Andrade, Barbosa, arXiv 2402.06085. Rates in bytes/s, slots are consumer numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

from binwright.core.model import Assignment, Rates, Slot, TopicPartition
from binwright.core.packing.bins import Bins
from binwright.core.packing.capacity import Capacity, PerSlot
from binwright.core.packing.inputs import check
from binwright.core.packing.order import Numbers, Order


@dataclass(frozen=True, slots=True)
class AnyFit:
    """One of FF, FFD, WF, WFD, BF, BFD. See `catalogue.Packing`; O(n log n)."""

    fit: Callable[[PerSlot], Bins]
    order: Order

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        change: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Place partition after partition; only then see where each one was."""
        del change
        bins = self.fit(check(rates, capacity))
        numbers = Numbers()
        placed: dict[TopicPartition, Slot] = {}
        for partition in self.order(rates):
            if (slot := bins.place(rates[partition])) is None:
                slot = numbers.open(current.get(partition))
                bins.open(slot, rates[partition])
            placed[partition] = slot
        return dict(sorted(placed.items()))


@dataclass(frozen=True, slots=True)
class NextFit:
    """NF or NFD. See `catalogue.Packing`; O(n) after the order.

    Two peculiarities are the paper's: consumer 0 is the first, whoever the first partition belongs
    to; and the last one takes whatever comes while it carries nothing, be it with partitions.
    """

    order: Order

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        change: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Fill one consumer until something does not fit, then never look back."""
        del change
        capacities = check(rates, capacity)
        numbers = Numbers()
        last, load = numbers.open(Slot(0)), 0.0
        placed: dict[TopicPartition, Slot] = {}
        for partition in self.order(rates):
            if load and load + rates[partition] > capacities.of(last):
                last, load = numbers.open(current.get(partition)), 0.0
            load += rates[partition]
            placed[partition] = last
        return dict(sorted(placed.items()))


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """kd_n: Kafka's own way, n consumers whatever the load; who has a partition keeps it."""

    consumers: int  # > 0

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        change: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Deal the partitions out in their order, like cards."""
        del change
        check(rates, capacity)
        dealt = enumerate(sorted(rates))
        return {p: current.get(p, Slot(number % self.consumers)) for number, p in dealt}
