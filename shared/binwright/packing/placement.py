"""Placement within people's rules, around a packing of what the rules leave open."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heapify, heappush, heapreplace
from itertools import chain, islice

from binwright.packing.inputs import Load, SlotCapacities
from binwright.packing.rules import Rules
from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition

LEAST_ROOM = 1e-6
"""Share of its capacity that a consumer keeps for the packing when its pins take all of it."""


def open_load(load: Load, rules: Rules) -> Load:
    """Return what a packing is to place: partitions that the rules do not, in the room left.

    A partition has no owner for the packing where it cannot stay.
    """
    rates, capacities, current = load.rates, load.capacities, load.current
    fixed = _fixed(rates, current, rules)
    taken: dict[Slot, float] = {}
    for partition, slot in sorted(fixed.items()):
        taken[slot] = taken.get(slot, 0.0) + rates[partition]
    left = {slot: room(capacities.for_slot(slot), used) for slot, used in taken.items()}
    rest = {p: rate for p, rate in rates.items() if p not in fixed}
    owners = {
        p: slot
        for p, slot in current.items()
        if p in rest and slot not in rules.drained and rest[p] <= left.get(slot, rest[p])
    }
    capacity = SlotCapacities(capacities.default, {**capacities.named, **left})
    return replace(load, rates=rest, capacity=capacity, current=owners)


def room(capacity: BytesPerSecond, taken: float) -> BytesPerSecond:
    """Return what is left of a capacity, above 0, bytes/s."""
    return BytesPerSecond(max(capacity - taken, LEAST_ROOM * capacity))


def _fixed(rates: Rates, current: Assignment, rules: Rules) -> dict[TopicPartition, Slot]:
    slots = ((p, rules.only_reader(p, current.get(p))) for p in rates)
    return {p: slot for p, slot in slots if slot is not None}


def place(
    packed: Assignment, load: Load, rules: Rules, max_slots: int
) -> dict[TopicPartition, Slot]:
    """Return a slot for each partition that the rules allow, as the packing has it if they do.

    What the packing puts elsewhere goes to the consumer with the most room, to one more where none
    has room, and to the least loaded when there are no more: it is then above its capacity.

    Args:
        packed: By a packing of what the rules leave open; may lack partitions.
        load: Of all partitions.
        rules: That hold; they leave a slot below `max_slots` open.
        max_slots: Slots are below this.
    """
    rates, current = load.rates, load.current
    fixed = _fixed(rates, current, rules)
    usable = _usable(packed, fixed, load, rules, max_slots)
    draft = _Placement(rates, load.capacities)
    for partition, slot in fixed.items():
        draft.put(partition, slot)
    pinned_slots = frozenset(fixed.values())
    others = sorted(
        rates.keys() - fixed.keys(),
        key=lambda p: (current.get(p) != packed.get(p), -rates[p], p),
    )
    displaced: list[TopicPartition] = []
    for partition in others:
        slot_by_packing = packed.get(partition)
        if (
            slot_by_packing is not None
            and slot_by_packing in usable
            and rules.allow(partition, slot_by_packing, current.get(partition))
            and (slot_by_packing not in pinned_slots or draft.fits(partition, slot_by_packing))
        ):
            draft.put(partition, slot_by_packing)
        else:
            displaced.append(partition)
    draft.spread(
        sorted(displaced, key=lambda p: (-rates[p], p)),
        [slot for slot in sorted(usable) if rules.is_open(slot)],
    )
    return draft.placed


@dataclass(slots=True)
class _Placement:
    """Partitions as placed so far, and how full that makes consumers, as shares of capacity."""

    rates: Rates
    capacities: SlotCapacities
    placed: dict[TopicPartition, Slot] = field(default_factory=dict)
    loads: dict[Slot, float] = field(default_factory=dict)

    def share(self, partition: TopicPartition, slot: Slot) -> float:
        return self.rates[partition] / self.capacities.for_slot(slot)

    def fits(self, partition: TopicPartition, slot: Slot) -> bool:
        return self.loads.get(slot, 0.0) + self.share(partition, slot) <= 1

    def put(self, partition: TopicPartition, slot: Slot) -> None:
        self.placed[partition] = slot
        self.loads[slot] = self.loads.get(slot, 0.0) + self.share(partition, slot)

    def spread(self, partitions: Iterable[TopicPartition], slots: Iterable[Slot]) -> None:
        """Put each where there is most room, else into another consumer, while there is one."""
        used = [(self.loads[slot], slot) for slot in slots if slot in self.loads]
        heapify(used)
        unused = iter([slot for slot in slots if slot not in self.loads])
        for partition in partitions:
            if not used or not self.fits(partition, used[0][1]):
                fresh = next(unused, None)
                if fresh is not None:
                    self.put(partition, fresh)
                    heappush(used, (self.loads[fresh], fresh))
                    continue
            slot = used[0][1]
            self.put(partition, slot)
            heapreplace(used, (self.loads[slot], slot))


def _usable(
    packed: Assignment, fixed: Assignment, load: Load, rules: Rules, max_slots: int
) -> frozenset[Slot]:
    """Return the slots that may read: with a number of consumers, those that need the fewest moves.

    An open one is always among them.
    """
    every = dict.fromkeys(s for s in map(Slot, range(max_slots)) if s not in rules.drained)
    if rules.consumers is None:
        return frozenset(every)
    loads: dict[Slot, float] = {}
    for partition, slot in load.current.items():
        loads[slot] = loads.get(slot, 0.0) + load.rates.get(partition, 0.0)
    pinned = sorted(set(fixed.values()))
    readers = sorted(loads, key=lambda slot: (not rules.is_open(slot), -loads[slot], slot))
    open_slots = [slot for slot in every if rules.is_open(slot)]
    ordered = dict.fromkeys(chain(pinned, readers, sorted(set(packed.values())), open_slots))
    allowed = (slot for slot in ordered if slot in every and (rules.is_open(slot) or slot in loads))
    usable = frozenset(islice(allowed, max(rules.consumers, len(pinned))))
    return usable if any(map(rules.is_open, usable)) else usable | {open_slots[0]}


def is_overfull(target: Assignment, rates: Rates, capacities: SlotCapacities) -> bool:
    """Whether a consumer of several partitions would be above its capacity."""
    loads: dict[Slot, list[float]] = {}
    for partition, slot in sorted(target.items()):
        loads.setdefault(slot, []).append(rates[partition])
    return any(len(own) > 1 and sum(own) > capacities.for_slot(slot) for slot, own in loads.items())


def most_consumers(
    partitions: Mapping[TopicPartition, Slot | None], rules: Rules, max_slots: int
) -> int:
    """Return how many consumers can read these partitions (-> the present reader) by the rules."""
    pinned = [rules.pin(p) for p in partitions]
    used = {slot for slot in pinned if slot is not None}
    free = sum(slot is None for slot in pinned)
    readers = {slot for slot in partitions.values() if slot is not None}
    open_to = {
        slot
        for slot in map(Slot, range(max_slots))
        if rules.is_open(slot) or (slot in rules.cordoned and slot in readers)
    }
    return len(used) + min(free, len(open_to - used))
