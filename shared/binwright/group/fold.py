"""Folds records and measurements into what is known of a group.

A controller folds them to lead, and to learn what was before it (its group has no term yet); those
who look at a group fold the same (see `observer`). What follows from a change is the controller's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from immutables import Map

from binwright.group.group import Group, Member, add_partitions
from binwright.group.limits import adopt_limits
from binwright.group.orders import with_order
from binwright.group.ownership import (
    Released,
    Starting,
    State,
    acknowledge_start,
    acknowledge_stop,
)
from binwright.group.proposals import ApprovalRefused, PlanApproved, fold_plan
from binwright.group.zones import with_zones
from binwright.protocol.metadata import (
    Accepted,
    CatchingUp,
    Claim,
    Dead,
    Gap,
    Goodbye,
    Held,
    Hello,
    Inbound,
    LimitsMeasured,
    Planned,
    Proposed,
    Report,
    Started,
    Stopped,
    Withdrawn,
)
from binwright.protocol.metrics import Measurement
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.monitors import accept_measurement
from binwright.protocol.orders import (
    AdoptOrder,
    Approved,
    CordonOrder,
    FormerOrders,
    FreezeOrder,
    OrderRecord,
    PinOrder,
    Savings,
    ScaleOrder,
    TableOrder,
)

StateRecord = Inbound | OrderRecord
"""What a group's state is made of."""


@dataclass(frozen=True, slots=True)
class RecordRead:
    """A record of metadata partition 0 or of the orders topic; this controller's own, too.

    Those of one topic come in the order of their offsets. Of a new leader all orders come first.
    """

    now: float
    offset: int  # in its topic
    message: StateRecord


@dataclass(frozen=True, slots=True)
class Measured:
    """A monitor's measurement of one topic."""

    now: float
    measurement: Measurement


# --- what a record changes, where the record alone does not say it --------------------------------


@dataclass(frozen=True, slots=True)
class ConsumerArrived:
    """A process has begun: the slot's only one from now on."""

    slot: Slot
    epoch: int


@dataclass(frozen=True, slots=True)
class ConsumerDied:
    """The living process of the slot is declared dead."""

    slot: Slot
    epoch: int
    process_ended: bool  # the fleet has reported its end


@dataclass(frozen=True, slots=True)
class ConsumerLeft:
    """The living process of the slot has ended orderly."""

    slot: Slot
    epoch: int


@dataclass(frozen=True, slots=True)
class ConsumerReady:
    """It reports for the first time that it is ready."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class ConsumerLeaving:
    """It reports for the first time that it was asked to end."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Superseded:
    """The record is of a process that is not the slot's living one: it changes nothing."""

    slot: Slot
    epoch: int


Change = (
    ConsumerArrived
    | ConsumerDied
    | ConsumerLeft
    | ConsumerReady
    | ConsumerLeaving
    | Superseded
    | PlanApproved
    | ApprovalRefused
)
Folded = tuple[Group, tuple[Change, ...]]


def fold_record(group: Group, event: RecordRead) -> Folded:
    """Return the group after one record, and what has changed.

    A record whose epoch is not the living one of its slot changes nothing.
    """
    match event.message:
        case Hello() as message:
            return _hello(group, message, event)
        case Dead() as message:
            return _dead(group, message)
        case Claim() | Savings() | FormerOrders() | TableOrder():
            return group, ()
        case LimitsMeasured() | CatchingUp() | Held() as message:
            return (_of_an_earlier_leader(group, message) if group.term is None else group), ()
        case Planned() | Proposed() | Approved() | Accepted() | Withdrawn() as message:
            return fold_plan(group, message, event.offset)
        case PinOrder() | CordonOrder() | FreezeOrder() | ScaleOrder() | AdoptOrder() as message:
            return with_order(group, message), ()
        case message:
            return _from_consumer(group, message, event)


def _of_an_earlier_leader(group: Group, message: LimitsMeasured | CatchingUp | Held) -> Group:
    match message:
        case LimitsMeasured():
            return adopt_limits(group, message)
        case Held():
            return replace(group, held=message.reasons)
        case _:
            known = Map(message.needs.items())
            counted = known if group.config.catch_up_s else Map[TopicPartition, BytesPerSecond]()
            return replace(group, known_catch_up=known, catch_up=counted)


# --- begin and end of a process ----------------------------------------------------------------


def _hello(group: Group, message: Hello, event: RecordRead) -> Folded:
    slot, before = message.slot, group.member(message.slot)
    member = Member(
        hello=event.offset,
        process=message.process,
        sent_ms=message.sent_ms,
        dead=before.dead,
        goodbye=before.goodbye,
        seen_at=event.now,
        arrived_at=event.now,
        failed_starts=before.failed_starts,
        capacity=before.capacity,
    )
    group = release_owned(group, slot, before.reading).with_member(slot, member)
    return group, (ConsumerArrived(slot, event.offset),)


def _dead(group: Group, message: Dead) -> Folded:
    """End the process that is named, even if a controller published it that has stepped down."""
    slot, member = message.slot, group.member(message.slot)
    if message.epoch != member.epoch:
        return group, ()  # published twice, or that process has ended meanwhile
    dead = replace(_without_process(member), dead=member.hello)
    dead = replace(dead, failed_starts=0 if member.ready else member.failed_starts + 1)
    group = release_owned(group, slot, member.reading).with_member(slot, dead)
    return group, (ConsumerDied(slot, message.epoch, member.process_ended),)


def _without_process(member: Member) -> Member:
    return replace(member, ready=False, declared_dead_at=None, reading={}, writing={}, splits={})


def release_owned(
    group: Group, slot: Slot, next_offsets: Mapping[TopicPartition, int | None]
) -> Group:
    """Release all that a slot owns, its partitions at their last known offsets (`next_offsets`).

    Partitions without a known owner are added: a controller that synchronizes knows no owners yet.
    """
    released: dict[TopicPartition, State] = {
        p: Released(_resume_offset(group.partitions[p], next_offsets.get(p)))
        for p in group.partitions.owned_by(slot)
    }
    if group.term is not None:
        new = (p for p in next_offsets if group.partitions.get(p, Released()) == Released())
        released |= {p: Released(next_offsets[p]) for p in new}
    roles = dict.fromkeys(group.writers.owned_by(slot), Released())
    return replace(
        group,
        partitions=group.partitions.changed(released),
        writers=group.writers.changed(roles),
    )


def _resume_offset(at: State, reported: int | None) -> int | None:
    """Return where to resume: at a pending start's offset, which may precede the report's."""
    return at.offset if isinstance(at, Starting) and at.offset is not None else reported


# --- records of living processes ---------------------------------------------------------------


def _from_consumer(
    group: Group, message: Report | Stopped | Started | Gap | Goodbye, event: RecordRead
) -> Folded:
    slot, member = message.slot, group.member(message.slot)
    if message.epoch != member.epoch:
        return group, (Superseded(slot, message.epoch),)
    if isinstance(message, Report):
        return _report(group, member, message, event.now)
    member = replace(member, seen_at=event.now)
    match message:
        case Goodbye():
            group = release_owned(group, slot, message.next)
            gone = replace(_without_process(member), goodbye=member.hello)
            return group.with_member(slot, gone), (ConsumerLeft(slot, message.epoch),)
        case Stopped():
            return _stopped(group, member, message), ()
        case Started():
            return _started(group, member, message), ()
        case _:
            return group.with_member(slot, member), ()


def _report(group: Group, member: Member, report: Report, now: float) -> Folded:
    changes: list[Change] = []
    if report.ready and not member.ready:
        changes.append(ConsumerReady(report.slot))
    if report.leaving and not member.leaving:
        changes.append(ConsumerLeaving(report.slot))
    member = replace(
        member,
        seen_at=now,
        ready=report.ready or member.ready,
        leaving=report.leaving,
        replied_term=report.term,
        capacity=report.capacity or member.capacity,
        zone=report.zone,
        reading=report.reading,
        writing=report.writing,
        splits={p: tuple(s.slot for s in shares) for p, shares in report.splits.items()},
    )
    return group.with_member(report.slot, member), tuple(changes)


def _stopped(group: Group, member: Member, message: Stopped) -> Group:
    """Apply the reply to a stop; entries that do not match the pending command are dropped."""
    slot, revision = message.slot, message.revision
    released = acknowledge_stop(group.partitions, slot, revision, message.next)
    roles = acknowledge_stop(group.writers, slot, revision, dict.fromkeys(message.tables))
    left = {p: offset for p, offset in member.reading.items() if p not in released}
    return replace(
        group.with_member(slot, replace(member, reading=left)),
        partitions=group.partitions.changed(released),
        writers=group.writers.changed(roles),
    )


def _started(group: Group, member: Member, message: Started) -> Group:
    """Apply the reply to a start; entries that do not match the pending command are dropped."""
    slot, revision = message.slot, message.revision
    begun = acknowledge_start(group.partitions, slot, revision, message.offsets)
    roles = acknowledge_start(group.writers, slot, revision, message.tables)
    reading = {**member.reading, **{p: message.offsets[p] for p in begun}}
    return replace(
        group.with_member(slot, replace(member, reading=reading)),
        partitions=group.partitions.changed(begun),
        writers=group.writers.changed(roles),
    )


# --- measurements -------------------------------------------------------------------------------


def fold_measurement(group: Group, event: Measured) -> tuple[Group, bool]:
    """Return the group after one measurement, and whether that counts (see `accept_measurement`).

    To a controller that leads, a new partition is known at once, even while its rate is unknown.
    """
    measurement = event.measurement
    monitors, accepted, _ = accept_measurement(group.monitors, event.now, measurement)
    if not accepted:
        return replace(group, monitors=monitors), False
    topic, count = measurement.topic, measurement.count
    count_changed = group.term is not None and group.rates.count(topic) != count
    measured = {p.partition: p.rate for p in measurement.partitions if p.rate is not None}
    rates = group.rates.with_topic(topic, count, measured)
    volatility = group.volatility.observe(rates, event.now)
    group = replace(
        group, monitors=monitors, rates=rates, measured_at=event.now, volatility=volatility
    )
    group = with_zones(group, measurement)
    if count_changed:
        group = add_partitions(group, (TopicPartition(topic, number) for number in range(count)))
    return group, True
