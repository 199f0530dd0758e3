"""Where partitions go whose consumer was asked to end, or which nobody reads."""

from collections.abc import Collection, Container, Iterable
from heapq import heapify, heapreplace

from binwright.core.events import Action, Tell
from binwright.core.group import Group
from binwright.core.messages import StateQuery
from binwright.core.model import Assignment, BytesPerSecond, Slot, TopicPartition
from binwright.core.ownership import Owned, Starting
from binwright.core.plan import Plan, weigh


def leavers(group: Group) -> frozenset[Slot]:
    """Return the consumers that were asked to end, and still read or write something."""
    leaving = (s for s, m in group.members.items() if m.leaving and m.epoch is not None)
    return frozenset(slot for slot in leaving if _has_work(group, slot))


def _has_work(group: Group, slot: Slot) -> bool:
    states = (group.partitions[p] for p in group.partitions.of(slot))
    return any(isinstance(at, Owned | Starting) for at in states) or bool(group.writers.of(slot))


def comfort(group: Group) -> tuple[Action, ...]:
    """Let leavers know that somebody is there for them, or will be: else they stop sooner.

    Will be: a process that lives and is not ready yet, or a slot that left as they do and has not
    come back yet.
    """
    hope = any((m.epoch is not None) != m.leaving for m in group.members.values())
    if group.term is None or not hope:
        return ()
    return tuple(Tell(slot, StateQuery(term=group.term)) for slot in sorted(leavers(group)))


def relieved(group: Group, target: Assignment) -> Assignment:
    """Return `target`, or it with what would wait for a leaver's slot given to who is there.

    The largest first, each to the least loaded: they may be above their limit until the slot's
    newcomer is there. What another consumer still reads can wait for that; and so must everything
    while nobody is there.
    """
    leaving = {slot for slot, member in group.members.items() if member.leaving}
    there = group.usable()
    if not leaving or not there:
        return target
    stranded = [p for p, heir in target.items() if heir in leaving and _waits(group, p, leaving)]
    if not stranded:
        return target
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
    at = group.partitions.get(partition)
    return at is None or at.slot is None or at.slot in leaving


def relief(group: Group) -> Plan | None:
    """Return the plan that takes from the leavers what they read; None if there is none to make.

    What nobody reads finds a reader by it, too.
    """
    leaving = leavers(group)
    if not leaving or not group.usable():
        return None
    current, first = group.assignment(), min(leaving)
    wished = {p: current.get(p, first) for p in group.partitions if not group.gone(p)}
    why = tuple(f"consumer {slot} was asked to end" for slot in sorted(leaving))
    return weighed(group, relieved(group, wished), why)


def reader_plan(group: Group) -> Plan | None:
    """Return the plan that gives what nobody reads to who is there, by the last known rates.

    To ready consumers; else to those that will be; else to the slots of the last plan, or slot 0,
    so that one is started. Whoever reads something keeps it.
    """
    unread = group.unread()
    if not unread:
        return None
    current = {p: slot for p, slot in group.assignment().items() if not group.gone(p)}
    staying = {s for s, m in group.members.items() if m.epoch is not None and not m.leaving}
    heirs = group.usable() or sorted(staying or last_slots(group) or {Slot(0)})
    target = spread(group, current, unread, heirs)
    return weighed(group, target, (f"{len(unread)} without a reader, not measured lately",))


def last_slots(group: Group) -> frozenset[Slot]:
    """Return the consumers that the last plan wanted, as far as they are allowed still."""
    return frozenset(s for s in group.last_plan.values() if s < group.rules.max_slots)


def weighed(group: Group, target: Assignment, why: tuple[str, ...]) -> Plan | None:
    """Return a forced plan that leads to `target`; None if nothing would change."""
    rates = {p: group.rates.get(p, BytesPerSecond(0.0)) for p in target}
    plan = weigh(rates, group.rules.capacity, group.assignment(), target, why)
    return plan if isinstance(plan, Plan) else None
