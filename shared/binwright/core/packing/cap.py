"""What a packing may ask for: no more consumers than the group is allowed."""

from heapq import heapify, heapreplace

from binwright.core.model import Assignment, Rates, Slot, TopicPartition
from binwright.core.packing.capacity import PerSlot

RELIEF = 0.9
"""Moves that may add no consumer must bring the fullest one's load below this share of itself."""


def within(
    target: Assignment, rates: Rates, capacities: PerSlot, max_slots: int
) -> dict[TopicPartition, Slot]:
    """Return `target` with the partitions of slots >= `max_slots` given to the least loaded others.

    Consumers are then above capacity: there is nothing better to do, and lag tells of it. Loads are
    compared as shares of what a consumer is packed to.
    """
    loads = {Slot(slot): 0.0 for slot in range(max_slots)}
    for partition, slot in target.items():
        if slot < max_slots:
            loads[slot] += rates[partition] / capacities.of(slot)
    heap = [(load, slot) for slot, load in loads.items()]
    heapify(heap)
    placed = dict(target)
    for partition in sorted(target, key=lambda p: (-rates[p], p)):
        if target[partition] >= max_slots:
            load, slot = heap[0]
            placed[partition] = slot
            heapreplace(heap, (load + rates[partition] / capacities.of(slot), slot))
    return placed


def relieves(rates: Rates, capacities: PerSlot, current: Assignment, target: Assignment) -> bool:
    """Whether a capped `target` is worth its moves: else an overload moves partitions for ever.

    Partitions that nobody reads yet, or that have left, are worth any.
    """
    if current.keys() != target.keys():
        return True
    before, after = (_fullest(rates, capacities, one) for one in (current, target))
    return after < RELIEF * before


def _fullest(rates: Rates, capacities: PerSlot, assignment: Assignment) -> float:
    loads: dict[Slot, float] = {}
    for partition, slot in sorted(assignment.items()):
        loads[slot] = loads.get(slot, 0.0) + rates[partition] / capacities.of(slot)
    return max(loads.values(), default=0.0)
