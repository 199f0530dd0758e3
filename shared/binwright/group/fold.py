"""Folds records and measurements into what is known of a group.

A controller folds them to lead, and to learn what was before it (its group has no term yet); those
who look at a group fold the same (see `observer`). What follows from a change is the controller's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from immutables import Map

from binwright.group.group import Group, add_partitions
from binwright.group.limits import adopt_limits
from binwright.group.members import Member, Members
from binwright.group.ownership import (
    Released,
    Starting,
    State,
    acknowledge_start,
    acknowledge_stop,
)
from binwright.group.people import ApprovalRefused, PlanApproved, fold_plan
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
from binwright.protocol.orders import (
    AdoptOrder,
    Approved,
    CordonOrder,
    FormerOrders,
    FreezeOrder,
    OperationOrder,
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
class RecordSuperseded:
    """The record is of a process that is not the slot's living one: it changes nothing."""

    slot: Slot
    epoch: int


Change = (
    ConsumerArrived
    | ConsumerDied
    | ConsumerLeft
    | ConsumerReady
    | ConsumerLeaving
    | RecordSuperseded
    | PlanApproved
    | ApprovalRefused
)
Folded = tuple[Group, tuple[Change, ...]]


def fold_record(group: Group, event: RecordRead) -> Folded:
    """Return the group after one record, and what has changed.

    A record whose epoch is not the living one of its slot changes nothing.
    """
    leads, members = group.term is not None, group.members
    changes: tuple[Change, ...]
    match event.message:
        case Claim() | Savings() | FormerOrders() | TableOrder() | OperationOrder():
            return group, ()
        case LimitsMeasured() | CatchingUp() | Held() as message:
            return (group if leads else _of_an_earlier_leader(group, message)), ()
        case Planned() | Proposed() | Approved() | Accepted() | Withdrawn() as message:
            people, changes = fold_plan(group.people, message, event.offset, leads=leads)
            return replace(group, people=people), changes
        case PinOrder() | CordonOrder() | FreezeOrder() | ScaleOrder() | AdoptOrder() as message:
            return replace(group, people=group.people.with_order(message, group.config)), ()
        case Hello() as message:
            members, changes = _hello(members, message, event, leads=leads)
        case Dead() as message:
            members, changes = _dead(members, message, leads=leads)
        case message:
            members, changes = _from_consumer(members, message, event, leads=leads)
    return (group if members is group.members else replace(group, members=members)), changes


def _of_an_earlier_leader(group: Group, message: LimitsMeasured | CatchingUp | Held) -> Group:
    match message:
        case LimitsMeasured():
            return replace(group, config=adopt_limits(group.config, message))
        case Held():
            return replace(group, people=replace(group.people, held=message.reasons))
        case _:
            known = Map(message.needs.items())
            counted = known if group.settings.catch_up_s else Map[TopicPartition, BytesPerSecond]()
            return replace(group, load=replace(group.load, known_catch_up=known, catch_up=counted))


# --- begin and end of a process ----------------------------------------------------------------

MembersFolded = tuple[Members, tuple[Change, ...]]


def _hello(members: Members, message: Hello, event: RecordRead, *, leads: bool) -> MembersFolded:
    slot, before = message.slot, members.get(message.slot)
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
    members = release_owned(members, slot, before.reading, leads=leads).with_member(slot, member)
    return members, (ConsumerArrived(slot, event.offset),)


def _dead(members: Members, message: Dead, *, leads: bool) -> MembersFolded:
    """End the process that is named, even if a controller published it that has stepped down."""
    slot, member = message.slot, members.get(message.slot)
    if message.epoch != member.epoch:
        return members, ()  # published twice, or that process has ended meanwhile
    dead = replace(_without_process(member), dead=member.hello)
    dead = replace(dead, failed_starts=0 if member.ready else member.failed_starts + 1)
    members = release_owned(members, slot, member.reading, leads=leads).with_member(slot, dead)
    return members, (ConsumerDied(slot, message.epoch, member.process_ended),)


def _without_process(member: Member) -> Member:
    return replace(member, ready=False, declared_dead_at=None, reading={}, writing={}, splits={})


def release_owned(
    members: Members,
    slot: Slot,
    next_offsets: Mapping[TopicPartition, int | None],
    *,
    leads: bool,
) -> Members:
    """Release all that a slot owns, its partitions at their last known offsets (`next_offsets`).

    Partitions without a known owner are added for the controller that leads: one that synchronizes
    knows no owners yet.
    """
    released: dict[TopicPartition, State] = {
        p: Released(_resume_offset(members.partitions[p], next_offsets.get(p)))
        for p in members.partitions.owned_by(slot)
    }
    if leads:
        new = (p for p in next_offsets if members.partitions.get(p, Released()) == Released())
        released |= {p: Released(next_offsets[p]) for p in new}
    return members.with_owners(released, dict.fromkeys(members.writers.owned_by(slot), Released()))


def _resume_offset(at: State, reported: int | None) -> int | None:
    """Return where to resume: at a pending start's offset, which may precede the report's."""
    return at.offset if isinstance(at, Starting) and at.offset is not None else reported


# --- records of living processes ---------------------------------------------------------------


def _from_consumer(
    members: Members,
    message: Report | Stopped | Started | Gap | Goodbye,
    event: RecordRead,
    *,
    leads: bool,
) -> MembersFolded:
    slot, member = message.slot, members.get(message.slot)
    if message.epoch != member.epoch:
        return members, (RecordSuperseded(slot, message.epoch),)
    if isinstance(message, Report):
        return _report(members, member, message, event.now)
    member = replace(member, seen_at=event.now)
    match message:
        case Goodbye():
            members = release_owned(members, slot, message.next, leads=leads)
            gone = replace(_without_process(member), goodbye=member.hello)
            return members.with_member(slot, gone), (ConsumerLeft(slot, message.epoch),)
        case Stopped():
            return _stopped(members, member, message), ()
        case Started():
            return _started(members, member, message), ()
        case _:
            return members.with_member(slot, member), ()


def _report(members: Members, member: Member, report: Report, now: float) -> MembersFolded:
    changes: list[Change] = []
    if report.ready and not member.ready:
        member = replace(member, ready_at=now)
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
    return members.with_member(report.slot, member), tuple(changes)


def _stopped(members: Members, member: Member, message: Stopped) -> Members:
    """Apply the reply to a stop; entries that do not match the pending command are dropped."""
    slot, revision = message.slot, message.revision
    released = acknowledge_stop(members.partitions, slot, revision, message.next)
    roles = acknowledge_stop(members.writers, slot, revision, dict.fromkeys(message.tables))
    left = {p: offset for p, offset in member.reading.items() if p not in released}
    members = members.with_member(slot, replace(member, reading=left))
    return members.with_owners(released, roles)


def _started(members: Members, member: Member, message: Started) -> Members:
    """Apply the reply to a start; entries that do not match the pending command are dropped."""
    slot, revision = message.slot, message.revision
    begun = acknowledge_start(members.partitions, slot, revision, message.offsets)
    roles = acknowledge_start(members.writers, slot, revision, message.tables)
    reading = {**member.reading, **{p: message.offsets[p] for p in begun}}
    members = members.with_member(slot, replace(member, reading=reading))
    return members.with_owners(begun, roles)


# --- measurements -------------------------------------------------------------------------------


def fold_measurement(group: Group, event: Measured) -> tuple[Group, bool]:
    """Return the group after one measurement, and whether that counts (see `accept_measurement`).

    To a controller that leads, a new partition is known at once, even while its rate is unknown.
    """
    measurement, before = event.measurement, group.load
    load, counts = before.with_measurement(measurement, event.now)
    if counts and group.settings.zone_price:
        load = load.with_zones(measurement)
    group = replace(group, load=load)
    topic, count = measurement.topic, measurement.count
    if counts and group.term is not None and before.rates.count(topic) != count:
        group = add_partitions(group, (TopicPartition(topic, number) for number in range(count)))
    return group, counts
