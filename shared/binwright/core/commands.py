"""Orders to consumers, and the state of what they are about: both change in one step."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from binwright.core.events import Action, Tell
from binwright.core.group import Group
from binwright.core.messages import StartReading, StartWriting, StopReading, StopWriting
from binwright.core.model import Slot, TopicPartition
from binwright.core.ownership import K, Order, Starting, Stopping, unanswered

Sent = tuple[Group, tuple[Action, ...]]


def stop_reading(
    group: Group, slot: Slot, partitions: Iterable[TopicPartition], now: float
) -> Sent:
    """Ask a slot to read these no more."""
    group, at = _stopping(group, slot, now)
    return _send_reading(group, dict.fromkeys(partitions, at))


def start_reading(
    group: Group, slot: Slot, offsets: Mapping[TopicPartition, int | None], now: float
) -> Sent:
    """Ask a slot to read these, from these offsets on; what it reads already goes there."""
    group, at = _starting(group, slot, now)
    orders = {p: replace(at, offset=offset) for p, offset in offsets.items()}
    return _send_reading(group, orders)


def stop_writing(group: Group, slot: Slot, topics: Iterable[str], now: float) -> Sent:
    """Ask a slot to give up writing these tables."""
    group, at = _stopping(group, slot, now)
    return _send_writing(group, dict.fromkeys(topics, at))


def start_writing(group: Group, slot: Slot, topics: Iterable[str], now: float) -> Sent:
    """Ask a slot to be the writer of these tables."""
    group, at = _starting(group, slot, now)
    return _send_writing(group, dict.fromkeys(topics, at))


def stop_unexpected(
    group: Group, slot: Slot, partitions: Iterable[TopicPartition], topics: Iterable[str]
) -> Sent:
    """Ask a slot to give up what is not its own: the state of that stays as it is."""
    actions: list[Action] = []
    if found := sorted(partitions):
        group, at = _stopping(group, slot, 0.0)
        actions.append(Tell(slot, _reading(group, dict.fromkeys(found, at))))
    if tables := sorted(topics):
        group, at = _stopping(group, slot, 0.0)
        actions.append(Tell(slot, _writing(group, dict.fromkeys(tables, at))))
    return group, tuple(actions)


def repeat(group: Group, now: float) -> Sent:
    """Send again, with the same revision, what has not been answered for too long.

    Only what is still awaited: the rest of a command may have moved on since. A repeated command
    is answered again and changes nothing, so this is safe at any time.
    """
    sent_before = now - group.rules.repeat_s
    actions: list[Action] = []
    for _, partitions in sorted(unanswered(group.partitions, sent_before).items()):
        group, again = _send_reading(group, _renewed(partitions, now))
        actions += again
    for _, tables in sorted(unanswered(group.writers, sent_before).items()):
        group, again = _send_writing(group, _renewed(tables, now))
        actions += again
    return group, tuple(actions)


def _renewed(orders: Mapping[K, Order], now: float) -> dict[K, Order]:
    return {key: replace(at, sent_at=now) for key, at in orders.items()}


def _stopping(group: Group, slot: Slot, now: float) -> tuple[Group, Stopping]:
    group, revision = group.next_revision()
    return group, Stopping(slot, group.member(slot).epoch or 0, revision, now)


def _starting(group: Group, slot: Slot, now: float) -> tuple[Group, Starting]:
    group, revision = group.next_revision()
    return group, Starting(slot, group.member(slot).epoch or 0, revision, now)


def _send_reading(group: Group, orders: Mapping[TopicPartition, Order]) -> Sent:
    """Note and send orders of one slot and revision."""
    told = Tell(next(iter(orders.values())).slot, _reading(group, orders))
    return replace(group, partitions=group.partitions.changed(orders)), (told,)


def _send_writing(group: Group, orders: Mapping[str, Order]) -> Sent:
    told = Tell(next(iter(orders.values())).slot, _writing(group, orders))
    return replace(group, writers=group.writers.changed(orders)), (told,)


def _reading(group: Group, orders: Mapping[TopicPartition, Order]) -> StopReading | StartReading:
    at, term = next(iter(orders.values())), group.term or 0
    if isinstance(at, Stopping):
        partitions = tuple(sorted(orders))
        return StopReading(term=term, revision=at.revision, epoch=at.epoch, partitions=partitions)
    offsets = {p: o.offset for p, o in sorted(orders.items()) if isinstance(o, Starting)}
    return StartReading(term=term, revision=at.revision, epoch=at.epoch, offsets=offsets)


def _writing(group: Group, orders: Mapping[str, Order]) -> StopWriting | StartWriting:
    at, tables = next(iter(orders.values())), tuple(sorted(orders))
    kind = StopWriting if isinstance(at, Stopping) else StartWriting
    return kind(term=group.term or 0, revision=at.revision, epoch=at.epoch, tables=tables)
