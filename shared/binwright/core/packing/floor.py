"""No fewer consumers than a group is to have, whatever the load."""

from collections import defaultdict
from itertools import count
from math import fsum

from binwright.core.model import Assignment, Rates, Slot, TopicPartition
from binwright.core.packing.capacity import PerSlot


def at_least(
    target: Assignment, rates: Rates, capacities: PerSlot, current: Assignment, minimum: int
) -> dict[TopicPartition, Slot]:
    """Return `target` spread over `minimum` consumers, or one for each partition if that is fewer.

    Whom the target leaves nothing gets back first what it reads now: a group at its minimum stays
    as it is. Then the fullest gives half of its load to a new one.

    Args:
        target: As a packing says.
        rates: Bytes/s of every partition in `target`.
        capacities: What consumers are packed to, bytes/s.
        current: Who reads what now.
        minimum: Consumers that are wanted, > 0.
    """
    placed = dict(target)
    held: defaultdict[Slot, set[TopicPartition]] = defaultdict(set)
    for partition, slot in placed.items():
        held[slot].add(partition)
    wanted = min(minimum, len(placed))

    def give(partition: TopicPartition, slot: Slot) -> None:
        held[placed[partition]].remove(partition)
        held[slot].add(partition)
        placed[partition] = slot

    for slot in sorted(set(current.values()) - held.keys()):
        if len(held) >= wanted:
            break
        room: float = capacities.of(slot)
        for partition in sorted(p for p in placed if current.get(p) == slot):
            if len(held[placed[partition]]) > 1 and rates[partition] <= room:
                give(partition, slot)
                room -= rates[partition]
    while len(held) < wanted:
        fullest = max(
            (slot for slot, some in held.items() if len(some) > 1),
            key=lambda slot: (fsum(rates[p] for p in held[slot]), -slot),  # in whatever order
        )
        fresh = next(slot for slot in map(Slot, count()) if slot not in held)
        for partition in _half(held[fullest], rates):
            give(partition, fresh)
    return placed


def _half(partitions: set[TopicPartition], rates: Rates) -> list[TopicPartition]:
    """Return some of these, not all: as near to half of the load as one gets without search."""
    half, found, load = fsum(rates[p] for p in partitions) / 2, list[TopicPartition](), 0.0
    ordered = sorted(partitions, key=lambda p: (-rates[p], p))
    if not half:
        return ordered[: len(ordered) // 2]
    for partition in ordered:
        if load + rates[partition] <= half:
            found.append(partition)
            load += rates[partition]
    return (found or ordered[-1:])[: len(ordered) - 1]
