"""Where a consumer's own word differs from what the controller believes.

Partition 0 is one order for both, and no report overtakes an answer of its process: a belief never
runs ahead of the reports that follow it.
"""

from dataclasses import replace

from binwright.core.commands import Sent, start_reading, stop_unexpected
from binwright.core.events import Action, Say
from binwright.core.group import Group
from binwright.core.messages import Gap, Inbound, Report
from binwright.core.model import Slot, TopicPartition
from binwright.core.ownership import Owned, Released, State


def inconsistency(group: Group, message: Inbound) -> str | None:
    """Return how a report denies what this controller believes of the reporter, if it does."""
    if not isinstance(message, Report) or message.epoch != group.member(message.slot).epoch:
        return None
    unread = group.partitions.of(message.slot).difference(message.reading)
    first = min((p for p in unread if isinstance(group.partitions[p], Owned)), default=None)
    return None if first is None else f"consumer {message.slot} does not read {first}"


def corrected(group: Group, message: Inbound, now: float) -> Sent:
    """Take back what a report shows to be in excess or lost, and have gaps read again."""
    match message:
        case Report(slot=slot, epoch=epoch) if epoch == group.member(slot).epoch:
            group, lost = _roles_lost(group, message)
            group, stops = _unexpected(group, message)
            return group, (*lost, *stops)
        case Gap(slot=slot, epoch=epoch) if epoch == group.member(slot).epoch:
            return _reread(group, message, now)
        case _:
            return group, ()


def _roles_lost(group: Group, report: Report) -> Sent:
    """A writer that lists its table no more lost it to another's claim."""
    lost = sorted(
        topic
        for topic in group.writers.of(report.slot)
        if topic not in report.writing and isinstance(group.writers[topic], Owned)
    )
    if not lost:
        return group, ()
    roles = dict.fromkeys(lost, Released())
    said = (Say("writer.lost", {"slot": report.slot, "topic": topic}) for topic in lost)
    return replace(group, writers=group.writers.changed(roles)), tuple(said)


def _unexpected(group: Group, report: Report) -> Sent:
    """Stop what a consumer reads or writes and should not: another has it, or nobody should."""
    slot = report.slot
    partitions = report.reading.keys() - group.partitions.of(slot)
    tables = report.writing.keys() - group.writers.of(slot)
    if not partitions and not tables:
        return group, ()
    facts = {"slot": slot, "partitions": len(partitions), "tables": len(tables)}
    group, stops = stop_unexpected(group, slot, partitions, tables)
    return group, (Say("consumer.corrected", facts), *stops)


def _reread(group: Group, gap: Gap, now: float) -> Sent:
    """Have read again what never reached a table: by its reader, or by whoever reads it next."""
    writer = Owned(gap.slot, gap.epoch)
    starts: dict[Slot, dict[TopicPartition, int | None]] = {}
    freed: dict[TopicPartition, State] = {}
    for partition, committed in sorted(gap.committed.items()):
        if group.writers.get(partition.topic) != writer:
            continue
        match group.partitions.get(partition):
            case Owned(slot=slot) if _has_passed(group, slot, partition, committed):
                starts.setdefault(slot, {})[partition] = committed
            case Released():
                freed[partition] = Released(committed)
            case _:
                pass  # it is on its way there, or on the move: the writer asks again
    group = replace(group, partitions=group.partitions.changed(freed))
    again = sorted([*freed, *(p for offsets in starts.values() for p in offsets)])
    actions: list[Action] = []
    if again:
        actions.append(Say("gap.reported", {"slot": gap.slot, "partitions": list(map(str, again))}))
    for slot, offsets in sorted(starts.items()):
        group, sent = start_reading(group, slot, offsets, now)
        actions += sent
    return group, tuple(actions)


def _has_passed(group: Group, slot: Slot, partition: TopicPartition, committed: int) -> bool:
    known = group.member(slot).reading.get(partition)
    return known is not None and known > committed
