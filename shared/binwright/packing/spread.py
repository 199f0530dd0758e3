"""Adds partitions to an assignment, each at the least loaded of some consumers."""

from collections.abc import Collection, Iterable
from heapq import heapify, heapreplace

from binwright.protocol.model import Assignment, Rates, Slot, TopicPartition


def spread(
    rates: Rates,
    target: Assignment,
    unassigned: Iterable[TopicPartition],
    new_owners: Collection[Slot],
) -> dict[TopicPartition, Slot]:
    """Return `target` with partitions added, the largest first, each at the least loaded slot.

    Of equal loads the one of fewer partitions is less. Limits do not count.

    Args:
        rates: Bytes/s; a partition without a rate counts 0.
        target: Assigns none of `unassigned`.
        unassigned: The partitions to add.
        new_owners: The slots to choose from; not empty if `unassigned` is not.
    """
    loads = dict.fromkeys(new_owners, (0.0, 0))
    for partition, slot in sorted(target.items()):
        if slot in loads:
            load, count = loads[slot]
            loads[slot] = (load + rates.get(partition, 0.0), count + 1)
    heap = [(load, count, slot) for slot, (load, count) in loads.items()]
    heapify(heap)
    assigned = dict(target)
    for partition in sorted(unassigned, key=lambda p: (-rates.get(p, 0.0), p)):
        load, count, slot = heap[0]
        assigned[partition] = slot
        heapreplace(heap, (load + rates.get(partition, 0.0), count + 1, slot))
    return assigned
