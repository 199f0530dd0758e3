"""A group as those see it who send it no commands: a controller that never claims.

They fold the same records and measurements, and take the owners from what consumers report.
Commands are in another topic: while one is under way, the group here is as its consumers last said.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from immutables import Map

from binwright.group.config import GroupConfig
from binwright.group.fold import Folded, Measured, RecordRead, fold_measurement, fold_record
from binwright.group.group import Group, add_partitions, forget_gone
from binwright.group.limits import adopt_limits
from binwright.group.members import Members
from binwright.group.ownership import K, Owned, Ownership, Released, State
from binwright.protocol.metadata import Claim, LimitsMeasured, Report, Started, Stopped
from binwright.protocol.model import PerSlot, Slot, TopicPartition

Splits = Map[TopicPartition, tuple[Slot, ...]]


def observe_record(group: Group, event: RecordRead) -> Folded:
    """Return the group after one record, and what has changed."""
    before = group.members.partitions
    group, changes = fold_record(group, event)
    members = group.members
    match event.message:
        case Claim() as claim:
            group = replace(group, config=_led(group.config, claim, members.limits_measured))
        case LimitsMeasured() as measured:
            group = replace(group, members=replace(members, limits_measured=measured))
        case Report() | Stopped() | Started() as message:
            group = _reported(group, message)
    if group.members.partitions is not before and group.config.topics is not None:
        group = _without_deselected(group)
    return group, changes


def _reported(group: Group, message: Report | Stopped | Started) -> Group:
    """Return the group with the owners that a record says, if it is of a living process."""
    members = group.members
    if message.epoch != members.get(message.slot).epoch:
        return group
    members = _as_reported(members, message)
    return group if members is group.members else forget_gone(replace(group, members=members))


def observe_measurement(group: Group, event: Measured) -> tuple[Group, bool]:
    """Return the group after one measurement, and whether that counts.

    The metrics topic may have other groups' topics, too. Where it is not known which ones a group
    reads, those count of which it has partitions.
    """
    topics, topic = group.config.topics, event.measurement.topic
    if topics is not None and not topics.includes(topic):
        return group, False
    group, counts = fold_measurement(group, event)
    if not counts:
        return group, False
    group = replace(group, load=group.load.with_zones(event.measurement))
    if topics is not None or topic in group.members.partitions.topics:
        numbers = range(event.measurement.count)
        group = add_partitions(group, (TopicPartition(topic, number) for number in numbers))
    return forget_gone(group), True


def _without_deselected(group: Group) -> Group:
    """Drop what nobody reads any more of topics that are not selected."""
    partitions = group.members.partitions
    others = {topic for topic in partitions.topics if not group.config.includes(topic)}
    if not others:
        return group
    left = partitions.without(p for p in partitions.released if p.topic in others)
    return replace(group, members=replace(group.members, partitions=left))


def _led(config: GroupConfig, claim: Claim, measured: LimitsMeasured | None) -> GroupConfig:
    """Return the configuration with what its new controller takes for the limits."""
    limits = PerSlot(claim.limit, dict(claim.slot_limits))
    config = replace(config.with_limits(limits), start_limits=limits if claim.measured else None)
    return config if measured is None else adopt_limits(config, measured)


def _as_reported(members: Members, message: Report | Stopped | Started) -> Members:
    """Return the members with the owners that a record says."""
    slot, member = message.slot, members.get(message.slot)
    partitions, writers, splits = members.partitions, members.writers, members.splits
    match message:
        case Report():
            reading = message.reading.keys()
            partitions = partitions.changed(_owning(partitions, slot, message.epoch, reading))
            written = message.written_topics
            writers = writers.changed(_owning(writers, slot, message.epoch, written))
            splits = _split(members, slot, partitions.owned_by(slot))
        case Started():
            at = Owned(slot, message.epoch)
            partitions = partitions.changed(dict.fromkeys(message.offsets, at))
            writers = writers.changed(dict.fromkeys(message.tables, at))
            member = replace(member, reading={**member.reading, **message.offsets})
        case _:
            left = {p: offset for p, offset in message.next.items() if offset is not None}
            partitions = partitions.changed(_released(partitions, slot, left))
            writers = writers.changed(_released(writers, slot, message.tables))
            rest = {p: offset for p, offset in member.reading.items() if p not in left}
            member = replace(member, reading=rest)
    same = partitions is members.partitions and writers is members.writers
    if isinstance(message, Report) and same and splits is members.splits:
        return members  # as most reports say
    members = members.with_member(slot, member)
    return replace(members, partitions=partitions, writers=writers, splits=splits)


def _split(members: Members, slot: Slot, owned: Collection[TopicPartition]) -> Splits:
    """Return the split partitions after their owner, this slot, has said which it has."""
    reported, known = members.get(slot).splits, members.splits
    if not reported and not known:
        return known
    own = {p: slots[1:] for p, slots in reported.items() if slots[:1] == (slot,)}
    before = {p: helpers for p, helpers in known.items() if p in owned}
    if own == before:
        return known
    others = ((p, helpers) for p, helpers in known.items() if p not in before)
    return Map([*others, *own.items()])


def _owning(known: Ownership[K], slot: Slot, epoch: int, keys: Collection[K]) -> Mapping[K, State]:
    """Return the states that change when a consumer says all that it owns.

    What another one owns stays with that one.
    """
    before = known.owned_by(slot)
    if before == keys:
        return {}
    new = [key for key in keys if key not in before and known.get(key, Released()).slot is None]
    owned: dict[K, State] = dict.fromkeys(new, Owned(slot, epoch))
    return owned | dict.fromkeys(before.difference(keys), Released())


def _released(known: Ownership[K], slot: Slot, keys: Iterable[K]) -> dict[K, State]:
    own = known.owned_by(slot)
    return {key: Released() for key in keys if key in own}
