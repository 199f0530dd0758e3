"""Applies records and measurements to the group, in every state.

Also compares reports with what the controller assumes. Partition 0 orders both, and a report of a
process never overtakes its reply to a command: what the controller assumes of a consumer never runs
ahead of the reports that follow.
"""

from collections.abc import Mapping
from dataclasses import replace

from binwright.controller.decide.approval import apply_plan_record
from binwright.controller.decide.events import (
    Action,
    Destroy,
    Log,
    Measured,
    RecordRead,
    Send,
    Update,
)
from binwright.controller.decide.limits import adopt_limits
from binwright.controller.decide.moves import start_reading, stop_unexpected
from binwright.controller.decide.orders import apply_order
from binwright.group.catch_up import with_backlogs
from binwright.group.group import Group, Member, add_partitions
from binwright.group.ownership import (
    Owned,
    Released,
    Starting,
    State,
    acknowledge_start,
    acknowledge_stop,
)
from binwright.group.zones import with_zones
from binwright.protocol.group_orders import (
    AdoptOrder,
    CordonOrder,
    FormerOrders,
    FreezeOrder,
    Held,
    PinOrder,
    ScaleOrder,
)
from binwright.protocol.messages import (
    Accepted,
    Approved,
    Claim,
    Dead,
    Gap,
    Goodbye,
    Hello,
    Leave,
    LimitsMeasured,
    Planned,
    Proposed,
    Report,
    Started,
    StateRecord,
    Stopped,
    Withdrawn,
)
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.monitors import accept_measurement, drop_silent
from binwright.protocol.savings import Savings
from binwright.protocol.table_orders import TableOrder


def later_claim(group: Group, event: RecordRead) -> int | None:
    """Return the term of another controller's later claim; None if the record is no such claim."""
    message = event.message
    if not isinstance(message, Claim) or message.controller == group.controller:
        return None  # our own is published twice if the acknowledgement of the first was lost
    return event.offset if event.offset > (group.term or 0) else None


def apply_record(group: Group, event: RecordRead) -> Update:
    """Apply one record; return the group and what the shell must do.

    A record whose epoch is not the living one of its slot is dropped. The reply to a report of such
    an epoch is `Leave`: an idle process has no other way to learn that it was replaced.
    """
    match event.message:
        case Hello() as message:
            return _apply_hello(group, message, event)
        case Dead() as message:
            return _apply_dead(group, message)
        case Claim() | Savings() | FormerOrders() | TableOrder():
            return group, ()
        case LimitsMeasured() as message:
            return (adopt_limits(group, message) if group.term is None else group), ()
        case Planned() | Proposed() | Approved() | Accepted() | Withdrawn() as message:
            return apply_plan_record(group, message, event)
        case PinOrder() | CordonOrder() | FreezeOrder() | ScaleOrder() | AdoptOrder() as message:
            return apply_order(group, message)
        case Held() as message:
            return (replace(group, held=message.reasons) if group.term is None else group), ()
        case message:
            return _from_consumer(group, message, event)


# --- begin and end of a process ----------------------------------------------------------------


def _apply_hello(group: Group, message: Hello, event: RecordRead) -> Update:
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
    log = Log("consumer.arrived", {"slot": slot, "epoch": event.offset})
    return release_owned(group, slot, before.reading).with_member(slot, member), (log,)


def _apply_dead(group: Group, message: Dead) -> Update:
    """End the process that is named, even if a controller published it that has stepped down."""
    slot, member = message.slot, group.member(message.slot)
    if message.epoch != member.epoch:
        return group, ()  # published twice, or that process has ended meanwhile
    dead = replace(_without_process(member), dead=member.hello)
    dead = replace(dead, failed_starts=0 if member.ready else member.failed_starts + 1)
    group = release_owned(group, slot, member.reading).with_member(slot, dead)
    if group.term is None:
        return group, ()
    log = Log("consumer.died", {"slot": slot, "epoch": message.epoch})
    # A process that has ended is not killed: the slot may have another one by now.
    return group, (log,) if member.process_ended else (log, Destroy(slot))


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
) -> Update:
    slot, member = message.slot, group.member(message.slot)
    if message.epoch != member.epoch:
        if group.term is None or event.offset < group.term or not isinstance(message, Report):
            return group, ()
        return group, (Send(slot, Leave(term=group.term, epoch=message.epoch)),)
    if isinstance(message, Report):
        return _apply_report(group, member, message, event.now)
    member = replace(member, seen_at=event.now)
    match message:
        case Goodbye():
            group = release_owned(group, slot, message.next)
            gone = replace(_without_process(member), goodbye=member.hello)
            log = Log("consumer.left", {"slot": slot, "epoch": message.epoch})
            return group.with_member(slot, gone), (log,)
        case Stopped():
            return _apply_stopped(group, member, message), ()
        case Started():
            return _apply_started(group, member, message), ()
        case _:
            return group.with_member(slot, member), ()


def _apply_report(group: Group, member: Member, report: Report, now: float) -> Update:
    logs = []
    if report.ready and not member.ready:
        logs.append(Log("consumer.ready", {"slot": report.slot}))
    if report.leaving and not member.leaving:
        logs.append(Log("consumer.leaving", {"slot": report.slot}))
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
    return group.with_member(report.slot, member), tuple(logs)


def _apply_stopped(group: Group, member: Member, message: Stopped) -> Group:
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


def _apply_started(group: Group, member: Member, message: Started) -> Group:
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


def apply_measurement(group: Group, event: Measured) -> Update:
    """Apply one measurement; what follows from it is decided at the next tick.

    A new partition is added at once, even while its rate is unknown.
    """
    measurement = event.measurement
    monitors, accepted, new = accept_measurement(group.monitors, event.now, measurement)
    logs = (Log("monitor.discovered", {"monitor": measurement.monitor}),) if new else ()
    if not accepted:
        return replace(group, monitors=monitors), logs
    topic, count = measurement.topic, measurement.count
    count_changed = group.term is not None and group.rates.count(topic) != count
    measured = {p.partition: p.rate for p in measurement.partitions if p.rate is not None}
    rates = group.rates.with_topic(topic, count, measured)
    volatility = group.volatility.observe(rates, event.now)
    group = replace(
        group, monitors=monitors, rates=rates, measured_at=event.now, volatility=volatility
    )
    group = with_zones(with_backlogs(group, measurement, event.now), measurement)
    if count_changed:
        group = add_partitions(group, (TopicPartition(topic, number) for number in range(count)))
    return group, logs


def drop_silent_monitors(group: Group, now: float) -> Update:
    """Drop the monitors that are silent by now; another one is followed, if there is one."""
    monitors, silent = drop_silent(group.monitors, now)
    if not silent:
        return group, ()
    others = len(monitors.seen)
    logs = (
        Log(
            "monitor.silent",
            {
                "monitor": monitor.monitor,
                "seconds": round(now - monitor.seen_at, 1),
                "others": others,
                "effect": "another is followed" if others else "the assignment stays as it is",
            },
        )
        for monitor in silent
    )
    return replace(group, monitors=monitors), tuple(logs)


# --- where a report differs from what the controller assumes ------------------------------------


def inconsistency(group: Group, message: StateRecord) -> str | None:
    """Return how a report contradicts what this controller assumes of its sender; None: it agrees.

    Only a partition that its owner does not read counts: all else is corrected in place.
    """
    if not isinstance(message, Report) or message.epoch != group.member(message.slot).epoch:
        return None
    unread = group.partitions.owned_by(message.slot).difference(message.reading)
    first = min((p for p in unread if isinstance(group.partitions[p], Owned)), default=None)
    return None if first is None else f"consumer {message.slot} does not read {first}"


def correct(group: Group, message: StateRecord, now: float) -> Update:
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
    written = report.written_topics
    lost = sorted(
        topic
        for topic in group.writers.owned_by(report.slot)
        if topic not in written and isinstance(group.writers[topic], Owned)
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
    tables = report.written_topics - group.writers.owned_by(slot)
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
