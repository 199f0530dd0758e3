"""Assigns the partitions of draining consumers, and partitions without a reader.

A consumer drains from when it is asked to end until it owns nothing more.
"""

from collections.abc import Container
from itertools import count

from binwright.controller.decide.events import Action, Send
from binwright.controller.decide.moves import find_readers
from binwright.group.group import Group
from binwright.group.plans import Plan, counted, evaluate
from binwright.protocol.commands import StateQuery
from binwright.protocol.model import Assignment, Slot, TopicPartition


def draining_slots(group: Group) -> frozenset[Slot]:
    """Return the consumers that were asked to end and still read or write something."""
    members = group.members
    leaving = (s for s, m in members.by_slot.items() if m.leaving and m.epoch is not None)
    return frozenset(s for s in leaving if members.reads(s) or members.writers.owned_by(s))


def keep_alive(group: Group) -> tuple[Action, ...]:
    """Query draining consumers while another can take over, or soon will: else they stop sooner.

    One soon will if a process lives that is not ready yet, or a slot restarts that was draining.
    """
    has_successor = any((m.epoch is not None) != m.leaving for m in group.members.by_slot.values())
    if group.term is None or not has_successor:
        return ()
    return tuple(Send(slot, StateQuery(term=group.term)) for slot in sorted(draining_slots(group)))


def drained(group: Group, target: Assignment) -> Assignment:
    """Return `target` with the partitions reassigned that would wait for a draining slot.

    The largest goes first, each to the least loaded ready consumer, which may exceed its limit
    until the slot's new process is ready. Partitions that another consumer still reads wait for
    that process, and so does everything while no consumer is ready. What a draining slot reads does
    not wait for a new owner whose process has not begun.
    """
    leaving = {slot for slot, member in group.members.by_slot.items() if member.leaving}
    ready = group.members.usable()
    if not leaving or not ready:
        return target
    stranded = {
        p for p, slot in target.items() if slot in leaving and _is_stranded(group, p, leaving)
    }
    read = {p for slot in leaving for p in group.members.partitions.owned_by(slot)}
    stranded |= {p for p in read & target.keys() if group.members.get(target[p]).epoch is None}
    if not stranded:
        return target
    staying = {p: slot for p, slot in target.items() if p not in stranded}
    return find_readers(group, staying, stranded, ready)


def _is_stranded(group: Group, partition: TopicPartition, leaving: Container[Slot]) -> bool:
    at = group.members.partitions.get(partition)
    return at is None or at.slot is None or at.slot in leaving


def drain_plan(group: Group) -> Plan | None:
    """Return the plan that moves all partitions off draining consumers; None if nothing would move.

    It assigns the partitions without a reader, too.
    """
    leaving = draining_slots(group)
    if not leaving or not group.members.usable():
        return None
    current, first = group.members.assignment(), min(leaving)
    wanted = {p: current.get(p, first) for p in group.existing()}
    reasons = tuple(_end_reason(group, slot) for slot in sorted(leaving))
    return forced_plan(group, drained(group, wanted), reasons)


def _end_reason(group: Group, slot: Slot) -> str:
    disruption = group.fleet.disruptions.get(slot)
    asked = f"consumer {slot} was asked to end"
    return asked if disruption is None else f"{asked}: {disruption.reason}"


def reader_plan(group: Group) -> Plan | None:
    """Return the plan that assigns partitions without a reader by their last known rates, if any.

    They go to ready consumers; else to living ones that are not draining; else to the slots of the
    last plan, or slot 0, so that one is started. All other partitions stay with their readers.
    """
    unread = group.unread()
    if not unread:
        return None
    members = group.members
    staying = {s for s, m in members.by_slot.items() if m.epoch is not None and not m.leaving}
    new_owners = members.usable() or sorted(staying or last_slots(group) or {_first_open(group)})
    target = find_readers(group, group.owners(), unread, new_owners)
    reason = f"{counted(len(unread), 'partition')} without a reader, not measured lately"
    return forced_plan(group, target, (reason,))


def _first_open(group: Group) -> Slot:
    return next(slot for slot in map(Slot, count()) if group.people.controls.rules.is_open(slot))


def last_slots(group: Group) -> frozenset[Slot]:
    """Return the slots of the last plan below `max_slots` that are not drained."""
    drained, most = group.people.controls.rules.drained, group.settings.max_slots
    return frozenset(s for s in group.people.last_plan.values() if s < most and s not in drained)


def forced_plan(group: Group, target: Assignment, reasons: tuple[str, ...]) -> Plan | None:
    """Return the plan that leads to `target`, whatever it costs; None if nothing would change."""
    plan = evaluate(group, target, reasons)
    return plan if isinstance(plan, Plan) else None
