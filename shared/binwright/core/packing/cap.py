"""What a packing may ask for: no more consumers than the group is allowed."""

from heapq import heapify, heapreplace

from binwright.core.model import Assignment, Rates, Slot, TopicPartition


def within(target: Assignment, rates: Rates, max_slots: int) -> dict[TopicPartition, Slot]:
    """Return `target` with the partitions of slots >= `max_slots` given to the least loaded others.

    Consumers are then above capacity: there is nothing better to do, and lag tells of it.
    """
    loads = {Slot(slot): 0.0 for slot in range(max_slots)}
    for partition, slot in target.items():
        if slot < max_slots:
            loads[slot] += rates[partition]
    heap = [(load, slot) for slot, load in loads.items()]
    heapify(heap)
    placed = dict(target)
    for partition in sorted(target, key=lambda p: (-rates[p], p)):
        if target[partition] >= max_slots:
            load, slot = heap[0]
            placed[partition] = slot
            heapreplace(heap, (load + rates[partition], slot))
    return placed
