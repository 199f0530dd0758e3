"""The sticky algorithm: places what must move, then closes consumers where that pays."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import fsum, isfinite, sqrt
from typing import TypeVar

from binwright.packing.inputs import Load
from binwright.packing.score import lower_bound
from binwright.packing.sticky.close_consumer import close_consumers
from binwright.packing.sticky.draft import NO_SLOT, Costs, Draft, SpareValue
from binwright.packing.sticky.place import place, undo_moves
from binwright.packing.sticky.zones import avoid_crossing
from binwright.protocol.errors import PackingError
from binwright.protocol.model import Slot, TopicPartition

GRAIN = 1_024
"""Sums within one part in this many of a capacity count as equal."""
ROUNDING = 1e-9
"""The tolerance for sums of floats, as a share of a capacity."""
T = TypeVar("T")
_NOWHERE: frozenset[str] = frozenset()
PRICE = 2.0
"""At 32 partitions this dominates the paper's four algorithms at any volatility of rates."""
UNKNOWN_DEVIATION = 0.05
"""The assumed standard deviation of a rate's change, in capacities, before one is observed."""
LEAST_DEVIATION = 1e-3
"""The bound below which a standard deviation is raised to it, in capacities; the upper one is 1."""


@dataclass(frozen=True, slots=True)
class Sticky:
    """Moves only what must move, and what pays. See `docs/design/packing.md`.

    Searches for the assignment with the least price x consumers + V(spare) + moved bytes/s, then,
    with its consumers, for less of that and price of a zone x bytes/s that cross.

    Args:
        price: What a closed consumer is worth, in capacities of moved rate per decision, > 0: from
            stable (0.4) to cost-saving (10).

    Raises:
        PackingError: The price is out of range.
    """

    price: float = PRICE

    def __post_init__(self) -> None:
        """Validate the price."""
        if not (isfinite(self.price) and self.price > 0):
            raise PackingError(f"a consumer's price must be finite and > 0, got {self.price}")

    def __call__(self, load: Load) -> dict[TopicPartition, Slot]:
        """Return the new owner of each of n partitions. See `catalogue.Packing`; O(n log n)."""
        capacities, rates, zones = load.checked(), load.rates, load.zones
        costs = self.costs(load)
        names = sorted(rates)
        speeds = _in_order(names, rates, 0.0)
        homes = _in_order(names, load.current, NO_SLOT)
        draft = Draft(
            list(compress(speeds, speeds)), list(compress(homes, speeds)), capacities, costs
        )
        solve(draft)
        if zones.price:
            known = _in_order(names, zones.of_partition, _NOWHERE)
            near = list(compress(known, speeds))
            avoid_crossing(draft, near, zones.of_slot, zones.price)
        busy, idle = iter(draft.owners), iter(_idle_owners(homes, speeds, draft))
        owners = [next(busy if speed else idle) for speed in speeds]
        return dict(zip(names, owners, strict=True))

    def costs(self, load: Load) -> Costs:
        """Return the costs of an assignment of a load whose rates and capacities are valid.

        Raises:
            PackingError: The variance is out of range.
        """
        unit, rates, variance = load.capacities.default, load.rates, load.variance
        if variance is None:
            variance = (UNKNOWN_DEVIATION * unit) ** 2
        if not (isfinite(variance) and variance >= 0):
            raise PackingError(f"a variance of rates must be finite and >= 0, got {variance}")
        # The variance of a consumer's load is the sum of its partitions' variances.
        per_consumer = len(rates) / max(1.0, fsum(rates.values()) / unit)
        deviation = min(max(sqrt(variance * per_consumer), LEAST_DEVIATION * unit), unit)
        return Costs(self.price * unit, SpareValue.for_deviation(deviation, unit))


def solve(draft: Draft) -> None:
    """Give every partition of the draft a consumer."""
    value = draft.costs.value
    # If a consumer costs more than all its room is worth, any consumer with room is cheaper.
    expensive = value(0.0) < draft.costs.price
    for number in evict(draft):
        if expensive and draft.assign_elsewhere(number, value.ample_spare):
            continue
        if place(draft, number, _alone(draft, number)) is None:
            draft.open(number)
    unit = draft.capacities.largest
    least = lower_bound(sorted([rate / unit for rate in draft.rates]))
    close_consumers(draft, draft.consumers - least)
    undo_moves(draft)


def _in_order(names: list[TopicPartition], known: Mapping[TopicPartition, T], other: T) -> list[T]:
    """Return the value of each name, or `other` if it has none."""
    # The keys are usually in this order already; comparing is faster than a million look-ups.
    if len(known) == len(names) and list(known) == names:
        return list(known.values())
    return [known.get(name, other) for name in names]


def _alone(draft: Draft, number: int) -> float:
    """Return the cost, bytes/s, of a new consumer for an unassigned partition alone."""
    rate, costs = draft.rates[number], draft.costs
    own = 0.0 if draft.homes[number] == NO_SLOT else rate
    return costs.price + costs.value(max(0.0, draft.capacities.default - rate)) + own


def _idle_owners(homes: Sequence[Slot], speeds: Sequence[float], draft: Draft) -> list[Slot]:
    """Return the owners of partitions without load: their home if it is open, else another one."""
    idle = [home for home, speed in zip(homes, speeds, strict=True) if not speed]
    open_homes = {home for home in idle if home in draft.offered and draft.holds(home)}
    open_slots = (slot for slot in draft.slots if slot in draft.offered and draft.holds(slot))
    common = next(open_slots, NO_SLOT)
    if common == NO_SLOT:
        # The home of most of them, so that the fewest move; else the lowest free slot.
        most = Counter(home for home in idle if home != NO_SLOT and not draft.holds(home))
        common = min(most, key=lambda s: (-most[s], s)) if most else draft.free(0.0)
        open_homes = {common}
    return [home if home in open_homes else common for home in idle]


# --- which partitions leave an overloaded consumer ----------------------------------------------


def evict(draft: Draft) -> list[int]:
    """Evict partitions from every overloaded consumer, and offer the consumers that have room.

    A partition above capacity stays, alone, and its consumer is not offered.

    Returns:
        The unassigned partitions, with the new ones, the fastest first.
    """
    unassigned = [number for number, slot in enumerate(draft.homes) if slot == NO_SLOT]
    tolerated = -ROUNDING * draft.capacities.default
    every = zip(draft.slots, draft.spare, strict=True)
    for slot in [slot for slot, spare in every if spare < tolerated]:
        unassigned += _evict_from(draft, slot)
    draft.offer_all(draft.with_spare(tolerated))
    return draft.biggest_first(unassigned)


def _evict_from(draft: Draft, slot: Slot) -> list[int]:
    capacity, over, rates = draft.capacities.for_slot(slot), -draft.spare[slot], draft.rates
    # The list is by number, and the sort stable: equal rates stay in this order.
    held = sorted(draft.held(slot), key=rates.__getitem__, reverse=True)
    falling = [rates[number] for number in held]
    if falling[0] > capacity:
        leaving = held[1:]
    else:
        leaving = [
            held[index] for index in cheapest_eviction(falling, over, capacity, draft.costs.value)
        ]
    draft.release(slot, leaving)
    return leaving


def cheapest_eviction(
    rates: Sequence[float], over: float, capacity: float, value: SpareValue
) -> tuple[int, ...]:
    """Return the indices of `rates`, descending, that leave: sum s >= over, least s + V(s - over).

    Exact to within capacity / GRAIN, because one of several sums within that is followed.
    O(k min(2^k, GRAIN)) for k rates.
    """
    if len(rates) > 1 and rates[-2] >= over:  # all but the least are enough alone
        costs = [rate + value(rate - over) for rate in rates if rate >= over]
        return (costs.index(min(costs)),)
    least, cheapest = float("inf"), tuple(range(len(rates)))
    sums: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for index, rate in enumerate(rates):
        for total, picks in list(sums.values()):
            reached = total + rate
            if reached >= least:
                continue
            if reached < over:
                sums.setdefault(int(reached * GRAIN / capacity), (reached, (*picks, index)))
            elif (cost := reached + value(reached - over)) < least:
                least, cheapest = cost, (*picks, index)
    return cheapest
