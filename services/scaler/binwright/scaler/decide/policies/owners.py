"""Gives bins to replicas so that few partitions change their owner."""

from collections import Counter
from collections.abc import Iterator
from itertools import count

from binwright.protocol.model import Assignment, Slot, TopicPartition
from binwright.scaler.decide.policies.least_loaded import Bins


def assign(bins: Bins, current: Assignment) -> dict[TopicPartition, Slot]:
    """Return who reads each partition: bin by bin, the pair that keeps the most partitions first.

    Args:
        bins: n of them; slots 0 to n - 1 get one each.
        current: Who reads each partition now.
    """
    kept = Counter(
        (current[partition], number)
        for number, inside in enumerate(bins)
        for partition in inside
        if current.get(partition, len(bins)) < len(bins)
    )
    slots: dict[int, Slot] = {}
    taken: set[Slot] = set()
    for slot, number in sorted(kept, key=lambda pair: (-kept[pair], pair)):
        if number not in slots and slot not in taken:
            slots[number] = slot
            taken.add(slot)
    free = (Slot(slot) for slot in count() if slot not in taken)
    for number in range(len(bins)):
        if number not in slots:
            slots[number] = next(free)
    return {p: slots[number] for number, inside in enumerate(bins) for p in inside}


def owned(assignment: Assignment) -> Iterator[list[TopicPartition]]:
    """Yield the partitions of each replica that has some, by slot."""
    found: dict[Slot, list[TopicPartition]] = {}
    for partition in sorted(assignment):
        found.setdefault(assignment[partition], []).append(partition)
    yield from (found[slot] for slot in sorted(found))
