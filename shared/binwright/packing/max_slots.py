"""Limits an assignment to the maximum number of consumers of a group."""

from heapq import heapify, heapreplace

from binwright.packing.capacity import SlotCapacities
from binwright.protocol.model import Assignment, Rates, Slot, TopicPartition

MAX_LOAD_AFTER = 0.9
"""Moves within the maximum must lower the highest load below this share of itself."""


def limit_slots(
    target: Assignment, rates: Rates, capacities: SlotCapacities, max_slots: int
) -> dict[TopicPartition, Slot]:
    """Return `target` with the partitions of slots >= `max_slots` moved to the least loaded slots.

    Consumers are then above capacity, which shows as lag. Loads are compared as shares of capacity.

    Args:
        target: By a packing algorithm.
        rates: Bytes/s of every partition in `target`.
        capacities: Of consumers, bytes/s.
        max_slots: The maximum number of consumers, > 0.
    """
    loads = {Slot(slot): 0.0 for slot in range(max_slots)}
    for partition, slot in target.items():
        if slot < max_slots:
            loads[slot] += rates[partition] / capacities.for_slot(slot)
    heap = [(load, slot) for slot, load in loads.items()]
    heapify(heap)
    placed = dict(target)
    for partition in sorted(target, key=lambda p: (-rates[p], p)):
        if target[partition] >= max_slots:
            load, slot = heap[0]
            placed[partition] = slot
            heapreplace(heap, (load + rates[partition] / capacities.for_slot(slot), slot))
    return placed


def worth_moving(
    rates: Rates, capacities: SlotCapacities, current: Assignment, target: Assignment
) -> bool:
    """Whether a limited `target` is worth its moves, so that an overload does not move forever.

    Always true if partitions were added or removed.
    """
    if current.keys() != target.keys():
        return True
    before, after = (_highest_load(rates, capacities, one) for one in (current, target))
    return after < MAX_LOAD_AFTER * before


def _highest_load(rates: Rates, capacities: SlotCapacities, assignment: Assignment) -> float:
    loads: dict[Slot, float] = {}
    for partition, slot in sorted(assignment.items()):
        loads[slot] = loads.get(slot, 0.0) + rates[partition] / capacities.for_slot(slot)
    return max(loads.values(), default=0.0)
