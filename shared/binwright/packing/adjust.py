"""Adjusts an assignment without a packing: within a minimum and maximum, and by new partitions."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from heapq import heapify, heapreplace
from itertools import count
from math import fsum

from binwright.packing.inputs import SlotCapacities
from binwright.packing.rules import NO_RULES, Rules
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


def ensure_min_slots(
    target: Assignment,
    rates: Rates,
    capacities: SlotCapacities,
    current: Assignment,
    minimum: int,
    *,
    rules: Rules = NO_RULES,
    max_slots: int | None = None,
) -> dict[TopicPartition, Slot]:
    """Return `target` spread over `minimum` consumers, or one per partition if that is fewer.

    Consumers that the target empties first get back what they read now, so a group at its minimum
    does not change. After that the most loaded consumer gives half of its load to a new one.

    Args:
        target: By a packing algorithm.
        rates: Bytes/s of every partition in `target`.
        capacities: Of consumers, bytes/s.
        current: Who reads each partition now.
        minimum: The number of consumers, > 0; fewer if the rules leave no more.
        rules: That hold, in `target` too.
        max_slots: Slots are below this; None: any.
    """
    placed = dict(target)
    fixed = {p for p in placed if rules.only_reader(p, current.get(p)) is not None} if rules else ()
    numbers = count() if max_slots is None else range(max_slots)
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
        spare: float = capacities.for_slot(slot)
        for partition in sorted(p for p in placed if current.get(p) == slot):
            allowed = rules.allow(partition, slot, slot) and (max_slots is None or slot < max_slots)
            if allowed and len(owned[placed[partition]]) > 1 and rates[partition] <= spare:
                give(partition, slot)
                spare -= rates[partition]
    unused = (s for s in map(Slot, numbers) if s not in owned and rules.is_open(s))
    while len(owned) < wanted and (fresh := next(unused, None)) is not None:
        movable = {slot: some.difference(fixed) for slot, some in owned.items() if len(some) > 1}
        fullest = max(
            (slot for slot, some in movable.items() if some),
            key=lambda slot: (fsum(rates[p] for p in owned[slot]), -slot),  # exact in any order
            default=None,
        )
        if fullest is None:
            break
        most = min(len(movable[fullest]), len(owned[fullest]) - 1)
        for partition in _half(movable[fullest], rates)[:most]:
            give(partition, fresh)
    return placed


def _half(partitions: set[TopicPartition], rates: Rates) -> list[TopicPartition]:
    """Return some of these, one at least, greedily up to half of the load."""
    half, smaller_half, load = fsum(rates[p] for p in partitions) / 2, list[TopicPartition](), 0.0
    ordered = sorted(partitions, key=lambda p: (-rates[p], p))
    if not half:
        return ordered[: max(1, len(ordered) // 2)]
    for partition in ordered:
        if load + rates[partition] <= half:
            smaller_half.append(partition)
            load += rates[partition]
    return smaller_half or ordered[-1:]


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
            load, number = loads[slot]
            loads[slot] = (load + rates.get(partition, 0.0), number + 1)
    heap = [(load, number, slot) for slot, (load, number) in loads.items()]
    heapify(heap)
    assigned = dict(target)
    for partition in sorted(unassigned, key=lambda p: (-rates.get(p, 0.0), p)):
        load, number, slot = heap[0]
        assigned[partition] = slot
        heapreplace(heap, (load + rates.get(partition, 0.0), number + 1, slot))
    return assigned
