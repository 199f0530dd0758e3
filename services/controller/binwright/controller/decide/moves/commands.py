"""Commands to consumers, and the ownership states that change with each command sent."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from binwright.controller.decide.events import Action, Send
from binwright.controller.decide.group import Group, Update
from binwright.controller.decide.ownership import (
    K,
    PendingCommand,
    Starting,
    Stopping,
    unacknowledged,
)
from binwright.protocol.messages import StartReading, StartWriting, StopReading, StopWriting
from binwright.protocol.model import Slot, TopicPartition


def stop_reading(
    group: Group, slot: Slot, partitions: Iterable[TopicPartition], now: float
) -> Update:
    """Command a slot to stop reading these."""
    group, at = _stopping(group, slot, now)
    return _send_reading(group, dict.fromkeys(partitions, at))


def start_reading(
    group: Group, slot: Slot, offsets: Mapping[TopicPartition, int | None], now: float
) -> Update:
    """Command a slot to read these from these offsets; partitions it already reads seek."""
    group, at = _starting(group, slot, now)
    pending = {p: replace(at, offset=offset) for p, offset in offsets.items()}
    return _send_reading(group, pending)


def stop_writing(group: Group, slot: Slot, topics: Iterable[str], now: float) -> Update:
    """Command a slot to stop writing these topics' tables."""
    group, at = _stopping(group, slot, now)
    return _send_writing(group, dict.fromkeys(topics, at))


def start_writing(group: Group, slot: Slot, topics: Iterable[str], now: float) -> Update:
    """Command a slot to become the writer of these topics' tables."""
    group, at = _starting(group, slot, now)
    return _send_writing(group, dict.fromkeys(topics, at))


def stop_unexpected(
    group: Group, slot: Slot, partitions: Iterable[TopicPartition], topics: Iterable[str]
) -> Update:
    """Command a slot to stop what it does not own: ownership states stay as they are."""
    actions: list[Action] = []
    if found := sorted(partitions):
        group, at = _stopping(group, slot, 0.0)
        actions.append(Send(slot, _reading_message(group, dict.fromkeys(found, at))))
    if tables := sorted(topics):
        group, at = _stopping(group, slot, 0.0)
        actions.append(Send(slot, _writing_message(group, dict.fromkeys(tables, at))))
    return group, tuple(actions)


def resend(group: Group, now: float) -> Update:
    """Send commands again, with the same revision, whose replies are overdue.

    A repeated command names only the keys that still await a reply. Consumers reply to it again and
    change nothing, so this is safe at any time.
    """
    sent_before = now - group.config.repeat_s
    actions: list[Action] = []
    for _, partitions in sorted(unacknowledged(group.partitions, sent_before).items()):
        group, again = _send_reading(group, _renewed(partitions, now))
        actions += again
    for _, tables in sorted(unacknowledged(group.writers, sent_before).items()):
        group, again = _send_writing(group, _renewed(tables, now))
        actions += again
    return group, tuple(actions)


def _renewed(pending: Mapping[K, PendingCommand], now: float) -> dict[K, PendingCommand]:
    return {key: replace(at, sent_at=now) for key, at in pending.items()}


def _stopping(group: Group, slot: Slot, now: float) -> tuple[Group, Stopping]:
    group, revision = group.next_revision()
    return group, Stopping(slot, group.member(slot).epoch or 0, revision, now)


def _starting(group: Group, slot: Slot, now: float) -> tuple[Group, Starting]:
    group, revision = group.next_revision()
    return group, Starting(slot, group.member(slot).epoch or 0, revision, now)


def _send_reading(group: Group, pending: Mapping[TopicPartition, PendingCommand]) -> Update:
    """Record and send the commands of one slot and revision."""
    command = Send(next(iter(pending.values())).slot, _reading_message(group, pending))
    return replace(group, partitions=group.partitions.changed(pending)), (command,)


def _send_writing(group: Group, pending: Mapping[str, PendingCommand]) -> Update:
    command = Send(next(iter(pending.values())).slot, _writing_message(group, pending))
    return replace(group, writers=group.writers.changed(pending)), (command,)


def _reading_message(
    group: Group, pending: Mapping[TopicPartition, PendingCommand]
) -> StopReading | StartReading:
    at, term = next(iter(pending.values())), group.term or 0
    if isinstance(at, Stopping):
        partitions = tuple(sorted(pending))
        return StopReading(term=term, revision=at.revision, epoch=at.epoch, partitions=partitions)
    offsets = {p: o.offset for p, o in sorted(pending.items()) if isinstance(o, Starting)}
    return StartReading(term=term, revision=at.revision, epoch=at.epoch, offsets=offsets)


def _writing_message(
    group: Group, pending: Mapping[str, PendingCommand]
) -> StopWriting | StartWriting:
    at, tables = next(iter(pending.values())), tuple(sorted(pending))
    kind = StopWriting if isinstance(at, Stopping) else StartWriting
    return kind(term=group.term or 0, revision=at.revision, epoch=at.epoch, tables=tables)
