"""Where the partitions of consumers that were asked to end go, while these still read them."""

from collections.abc import Collection, Container, Iterable
from heapq import heapify, heapreplace

from binwright.core.events import Action, Tell
from binwright.core.group import Group, Held, Starting
from binwright.core.messages import StateQuery
from binwright.core.model import Assignment, BytesPerSecond, Slot, TopicPartition
from binwright.core.plan import Plan, weigh


def leavers(group: Group) -> frozenset[Slot]:
    """Return who was asked to end, and reads something still."""
    leaving = {s for s, m in group.members.items() if m.leaving and m.epoch is not None}
    if not leaving:
        return frozenset()
    reading = (p.at.slot for p in group.places.values() if isinstance(p.at, Held | Starting))
    return frozenset(leaving.intersection(reading))


def comfort(group: Group) -> tuple[Action, ...]:
    """Let leavers know that somebody is there for them, or will be: else they quit sooner.

    Will be: who lives and is not ready yet, or left as they do and has not come back yet.
    """
    hope = any((m.epoch is not None) != m.leaving for m in group.members.values())
    if group.term is None or not hope:
        return ()
    return tuple(Tell(slot, StateQuery(term=group.term)) for slot in sorted(leavers(group)))


def relieved(group: Group, target: Assignment) -> dict[TopicPartition, Slot]:
    """Return `target` with what would wait for a leaver's slot given to who is there.

    The largest first, each to the least loaded: they may be above their limit until the slot's
    newcomer is there. What another consumer still reads can wait for that; and so must everything
    while nobody is there.
    """
    leaving = {slot for slot, member in group.members.items() if member.leaving}
    stranded = [p for p, heir in target.items() if heir in leaving and _waits(group, p, leaving)]
    there = sorted(slot for slot, member in group.members.items() if member.usable)
    if not stranded or not there:
        return dict(target)
    return spread(
        group, {p: s for p, s in target.items() if p not in set(stranded)}, stranded, there
    )


def spread(
    group: Group,
    target: Assignment,
    homeless: Iterable[TopicPartition],
    heirs: Collection[Slot],
) -> dict[TopicPartition, Slot]:
    """Return `target` with the homeless, the largest first, given each to the least loaded heir.

    There must be an heir if anybody is homeless; none of these is an heir's already.
    """
    loads = dict.fromkeys(heirs, (0.0, 0))
    for partition, slot in sorted(target.items()):
        if slot in loads:
            load, count = loads[slot]
            loads[slot] = (load + group.rates.get(partition, 0.0), count + 1)
    heap = [(load, count, slot) for slot, (load, count) in loads.items()]
    heapify(heap)
    placed = dict(target)
    for partition in sorted(homeless, key=lambda p: (-group.rates.get(p, 0.0), p)):
        load, count, slot = heap[0]
        placed[partition] = slot
        heapreplace(heap, (load + group.rates.get(partition, 0.0), count + 1, slot))
    return placed


def _waits(group: Group, partition: TopicPartition, leaving: Container[Slot]) -> bool:
    place = group.places.get(partition)
    return place is None or place.slot is None or place.slot in leaving


def relief(group: Group) -> Plan | None:
    """Return the plan that takes from the leavers what they read; None if there is none to make.

    What nobody reads finds a reader by it, too.
    """
    leaving = leavers(group)
    if not any(member.usable for member in group.members.values()) or not leaving:
        return None
    current, first = group.assignment(), min(leaving)
    wished = {p: current.get(p, first) for p in group.places if not group.gone(p)}
    target = relieved(group, wished)
    rates = {p: group.rates.get(p, BytesPerSecond(0.0)) for p in target}
    why = tuple(f"consumer {slot} was asked to end" for slot in sorted(leaving))
    plan = weigh(rates, group.rules.capacity, current, target, why)
    return plan if isinstance(plan, Plan) else None
