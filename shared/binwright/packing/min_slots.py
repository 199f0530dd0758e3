"""Spreads an assignment over the minimum number of consumers of a group."""

from collections import defaultdict
from itertools import count
from math import fsum

from binwright.packing.capacity import SlotCapacities
from binwright.protocol.model import Assignment, Rates, Slot, TopicPartition


def ensure_min_slots(
    target: Assignment, rates: Rates, capacities: SlotCapacities, current: Assignment, minimum: int
) -> dict[TopicPartition, Slot]:
    """Return `target` spread over `minimum` consumers, or one per partition if that is fewer.

    Consumers that the target empties first get back what they read now, so a group at its minimum
    does not change. After that the most loaded consumer gives half of its load to a new one.

    Args:
        target: By a packing algorithm.
        rates: Bytes/s of every partition in `target`.
        capacities: Of consumers, bytes/s.
        current: Who reads each partition now.
        minimum: The number of consumers, > 0.
    """
    placed = dict(target)
    owned: defaultdict[Slot, set[TopicPartition]] = defaultdict(set)
    for partition, slot in placed.items():
        owned[slot].add(partition)
    wanted = min(minimum, len(placed))

    def give(partition: TopicPartition, slot: Slot) -> None:
        owned[placed[partition]].remove(partition)
        owned[slot].add(partition)
        placed[partition] = slot

    for slot in sorted(set(current.values()) - owned.keys()):
        if len(owned) >= wanted:
            break
        room: float = capacities.for_slot(slot)
        for partition in sorted(p for p in placed if current.get(p) == slot):
            if len(owned[placed[partition]]) > 1 and rates[partition] <= room:
                give(partition, slot)
                room -= rates[partition]
    while len(owned) < wanted:
        fullest = max(
            (slot for slot, some in owned.items() if len(some) > 1),
            key=lambda slot: (fsum(rates[p] for p in owned[slot]), -slot),  # exact in any order
        )
        fresh = next(slot for slot in map(Slot, count()) if slot not in owned)
        for partition in _half(owned[fullest], rates):
            give(partition, fresh)
    return placed


def _half(partitions: set[TopicPartition], rates: Rates) -> list[TopicPartition]:
    """Return some of these, not all, greedily up to half of the load."""
    half, found, load = fsum(rates[p] for p in partitions) / 2, list[TopicPartition](), 0.0
    ordered = sorted(partitions, key=lambda p: (-rates[p], p))
    if not half:
        return ordered[: len(ordered) // 2]
    for partition in ordered:
        if load + rates[partition] <= half:
            found.append(partition)
            load += rates[partition]
    return (found or ordered[-1:])[: len(ordered) - 1]
