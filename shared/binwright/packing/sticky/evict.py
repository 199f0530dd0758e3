"""Selects the partitions that leave an overloaded consumer: the cheapest that make enough room."""

from collections.abc import Sequence

from binwright.packing.sticky.draft import NO_SLOT, Draft
from binwright.packing.sticky.room_value import RoomValue
from binwright.protocol.model import Slot

GRAIN = 1_024
"""Sums within one part in this many of a capacity count as equal."""
ROUNDING = 1e-9
"""The tolerance for sums of floats, as a share of a capacity."""


def evict(draft: Draft) -> list[int]:
    """Evict partitions from every overloaded consumer, and offer the consumers that have room.

    A partition above capacity stays, alone, and its consumer is not offered.

    Returns:
        The unassigned partitions, with the new ones, the fastest first.
    """
    unassigned = [number for number, slot in enumerate(draft.homes) if slot == NO_SLOT]
    tolerated = -ROUNDING * draft.capacities.default
    every = zip(draft.slots, draft.room, strict=True)
    for slot in [slot for slot, room in every if room < tolerated]:
        unassigned += _evict_from(draft, slot)
    draft.offer_all(draft.with_room(tolerated))
    return draft.biggest_first(unassigned)


def _evict_from(draft: Draft, slot: Slot) -> list[int]:
    capacity, over, rates = draft.capacities.for_slot(slot), -draft.room[slot], draft.rates
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
    rates: Sequence[float], over: float, capacity: float, value: RoomValue
) -> tuple[int, ...]:
    """Return the indices of `rates`, descending, that leave: sum s >= over, least s + V(s - over).

    Exact to within capacity / GRAIN, because one of several sums within that is followed.
    O(k min(2^k, GRAIN)) for k rates.
    """
    if len(rates) > 1 and rates[-2] >= over:  # all but the least are enough alone
        costs = [rate + value(rate - over) for rate in rates if rate >= over]
        return (costs.index(min(costs)),)
    best, chosen = float("inf"), tuple(range(len(rates)))
    sums: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for index, rate in enumerate(rates):
        for total, picks in list(sums.values()):
            reached = total + rate
            if reached >= best:
                continue
            if reached < over:
                sums.setdefault(int(reached * GRAIN / capacity), (reached, (*picks, index)))
            elif (cost := reached + value(reached - over)) < best:
                best, chosen = cost, (*picks, index)
    return chosen
