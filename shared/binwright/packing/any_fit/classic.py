"""The classical algorithms, with one change: a new consumer gets its partition's old slot (eq. 14).

Any Fit opens a consumer only for a partition that fits into none; Next Fit tries only the last one.
Landau, Andrade, Barbosa, arXiv 2402.06085. Rates in bytes/s.
"""

from collections.abc import Callable
from dataclasses import dataclass

from binwright.packing.any_fit.bins import Bins
from binwright.packing.any_fit.order import OpenSlots, Order
from binwright.packing.capacity import Capacity, SlotCapacities
from binwright.packing.inputs import check_inputs
from binwright.protocol.model import Assignment, Rates, Slot, TopicPartition


@dataclass(frozen=True, slots=True)
class AnyFit:
    """One of FF, FFD, WF, WFD, BF, BFD. See `catalogue.Packing`; O(n log n)."""

    fit: Callable[[SlotCapacities], Bins]
    order: Order

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        rate_variance: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Place each partition by the rule; its current slot matters only for a new consumer."""
        del rate_variance
        bins = self.fit(check_inputs(rates, capacity))
        numbers = OpenSlots()
        placed: dict[TopicPartition, Slot] = {}
        for partition in self.order(rates):
            if (slot := bins.place(rates[partition])) is None:
                slot = numbers.open(current.get(partition))
                bins.open(slot, rates[partition])
            placed[partition] = slot
        return dict(sorted(placed.items()))


@dataclass(frozen=True, slots=True)
class NextFit:
    """NF or NFD. See `catalogue.Packing`; O(n) after sorting.

    As in the paper, the first consumer is slot 0, whatever the first partition's current slot; and
    the last consumer accepts any partition while its load is 0.
    """

    order: Order

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        rate_variance: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Fill one consumer until a partition does not fit, then open the next one."""
        del rate_variance
        capacities = check_inputs(rates, capacity)
        numbers = OpenSlots()
        last, load = numbers.open(Slot(0)), 0.0
        placed: dict[TopicPartition, Slot] = {}
        for partition in self.order(rates):
            if load and load + rates[partition] > capacities.for_slot(last):
                last, load = numbers.open(current.get(partition)), 0.0
            load += rates[partition]
            placed[partition] = last
        return dict(sorted(placed.items()))


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """kd_n: as Kafka's own assignors, n consumers whatever the load; assigned partitions stay."""

    consumers: int  # > 0

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        rate_variance: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Assign new partitions round robin, in their order."""
        del rate_variance
        check_inputs(rates, capacity)
        dealt = enumerate(sorted(rates))
        return {p: current.get(p, Slot(number % self.consumers)) for number, p in dealt}
