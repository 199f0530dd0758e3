"""Where a consumer's report differs from what the controller assumes.

Partition 0 orders both, and a process's report never overtakes its reply to a command: what the
controller assumes of a consumer never runs ahead of the reports that follow.
"""

from dataclasses import replace

from binwright.controller.decide.events import Action, Log
from binwright.controller.decide.group import Group, Update
from binwright.controller.decide.moves.commands import start_reading, stop_unexpected
from binwright.controller.decide.ownership import Owned, Released, State
from binwright.protocol.messages import Gap, Inbound, Report
from binwright.protocol.model import Slot, TopicPartition


def inconsistency(group: Group, message: Inbound) -> str | None:
    """Return how a report contradicts what this controller assumes of its sender; None: it agrees.

    Only a partition that its owner does not read counts: all else is corrected in place.
    """
    if not isinstance(message, Report) or message.epoch != group.member(message.slot).epoch:
        return None
    unread = group.partitions.owned_by(message.slot).difference(message.reading)
    first = min((p for p in unread if isinstance(group.partitions[p], Owned)), default=None)
    return None if first is None else f"consumer {message.slot} does not read {first}"


def correct(group: Group, message: Inbound, now: float) -> Update:
    """Stop what a report lists in excess, release lost writer roles, have gaps read again."""
    match message:
        case Report(slot=slot, epoch=epoch) if epoch == group.member(slot).epoch:
            group, logs = _release_lost_roles(group, message)
            group, stops = _stop_excess(group, message)
            return group, (*logs, *stops)
        case Gap(slot=slot, epoch=epoch) if epoch == group.member(slot).epoch:
            return _read_again(group, message, now)
        case _:
            return group, ()


def _release_lost_roles(group: Group, report: Report) -> Update:
    """Release the tables that their writer lists no more: another process's claim took them."""
    lost = sorted(
        topic
        for topic in group.writers.owned_by(report.slot)
        if topic not in report.writing and isinstance(group.writers[topic], Owned)
    )
    if not lost:
        return group, ()
    roles = dict.fromkeys(lost, Released())
    logs = (Log("writer.lost", {"slot": report.slot, "topic": topic}) for topic in lost)
    return replace(group, writers=group.writers.changed(roles)), tuple(logs)


def _stop_excess(group: Group, report: Report) -> Update:
    """Stop what a consumer reads or writes without being its owner."""
    slot = report.slot
    partitions = report.reading.keys() - group.partitions.owned_by(slot)
    tables = report.writing.keys() - group.writers.owned_by(slot)
    if not partitions and not tables:
        return group, ()
    facts = {"slot": slot, "partitions": len(partitions), "tables": len(tables)}
    group, stops = stop_unexpected(group, slot, partitions, tables)
    return group, (Log("consumer.corrected", facts), *stops)


def _read_again(group: Group, gap: Gap, now: float) -> Update:
    """Have the offsets read again that never reached a table: by the present or the next reader."""
    writer = Owned(gap.slot, gap.epoch)
    starts: dict[Slot, dict[TopicPartition, int | None]] = {}
    released: dict[TopicPartition, State] = {}
    for partition, committed in sorted(gap.committed.items()):
        if group.writers.get(partition.topic) != writer:
            continue
        match group.partitions.get(partition):
            case Owned(slot=slot) if _has_passed(group, slot, partition, committed):
                starts.setdefault(slot, {})[partition] = committed
            case Released():
                released[partition] = Released(committed)
            case _:
                pass  # it will get there, or is being moved: the writer asks again
    group = replace(group, partitions=group.partitions.changed(released))
    again = sorted([*released, *(p for offsets in starts.values() for p in offsets)])
    actions: list[Action] = []
    if again:
        actions.append(Log("gap.reported", {"slot": gap.slot, "partitions": list(map(str, again))}))
    for slot, offsets in sorted(starts.items()):
        group, sent = start_reading(group, slot, offsets, now)
        actions += sent
    return group, tuple(actions)


def _has_passed(group: Group, slot: Slot, partition: TopicPartition, committed: int) -> bool:
    next_offset = group.member(slot).reading.get(partition)
    return next_offset is not None and next_offset > committed
