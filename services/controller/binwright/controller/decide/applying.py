"""Applies records of metadata partition 0 to the group, in every state of the controller."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from binwright.controller.decide.config import ControllerConfig
from binwright.controller.decide.events import (
    Action,
    Destroy,
    Log,
    ProcessEnded,
    Publish,
    RecordRead,
    Send,
)
from binwright.controller.decide.group import Group, Member, Update
from binwright.controller.decide.ownership import (
    Released,
    Starting,
    State,
    acknowledge_start,
    acknowledge_stop,
)
from binwright.controller.decide.plans.approval import apply_plan_record
from binwright.protocol.messages import (
    Accepted,
    Approved,
    Claim,
    Dead,
    Gap,
    Goodbye,
    Hello,
    Leave,
    Planned,
    Proposed,
    Report,
    Started,
    Stopped,
    Withdrawn,
)
from binwright.protocol.model import Slot, TopicPartition

MAX_DOUBLINGS = 5  # of the time that a slot's process has to become ready


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
        case Claim():
            return group, ()
        case Planned() | Proposed() | Approved() | Accepted() | Withdrawn() as message:
            return apply_plan_record(group, message, event)
        case message:
            return _from_consumer(group, message, event)


def _with_member(group: Group, slot: Slot, member: Member) -> Group:
    return replace(group, members=group.members.set(slot, member))


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
    )
    log = Log("consumer.arrived", {"slot": slot, "epoch": event.offset})
    return _with_member(release_owned(group, slot, before.reading), slot, member), (log,)


def _apply_dead(group: Group, message: Dead) -> Update:
    """End the process that is named, even if a controller published it that has stepped down."""
    slot, member = message.slot, group.member(message.slot)
    if message.epoch != member.epoch:
        return group, ()  # published twice, or that process has ended meanwhile
    dead = replace(_without_process(member), dead=member.hello)
    dead = replace(dead, failed_starts=0 if member.ready else member.failed_starts + 1)
    group = _with_member(release_owned(group, slot, member.reading), slot, dead)
    if group.term is None:
        return group, ()
    log = Log("consumer.died", {"slot": slot, "epoch": message.epoch})
    # A process that has ended is not killed: the slot may have another one by now.
    return group, (log,) if member.process_ended else (log, Destroy(slot))


def _without_process(member: Member) -> Member:
    return replace(member, ready=False, declared_dead_at=None, reading={}, writing={})


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
            return _with_member(group, slot, gone), (log,)
        case Stopped():
            return _apply_stopped(group, member, message), ()
        case Started():
            return _apply_started(group, member, message), ()
        case _:
            return _with_member(group, slot, member), ()


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
        reading=report.reading,
        writing=report.writing,
    )
    return _with_member(group, report.slot, member), tuple(logs)


def _apply_stopped(group: Group, member: Member, message: Stopped) -> Group:
    """Apply the reply to a stop; entries that do not match the pending command are dropped."""
    slot, revision = message.slot, message.revision
    released = acknowledge_stop(group.partitions, slot, revision, message.next)
    roles = acknowledge_stop(group.writers, slot, revision, dict.fromkeys(message.tables))
    left = {p: offset for p, offset in member.reading.items() if p not in released}
    return replace(
        _with_member(group, slot, replace(member, reading=left)),
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
        _with_member(group, slot, replace(member, reading=reading)),
        partitions=group.partitions.changed(begun),
        writers=group.writers.changed(roles),
    )


# --- declaring dead ----------------------------------------------------------------------------


def was_paused(group: Group, now: float) -> bool:
    """Whether this controller itself was paused: then silent consumers may be alive."""
    return now - group.ticked_at > group.config.consumer_timeout_s / 2


def overdue(config: ControllerConfig, member: Member, now: float) -> bool:
    """Whether a living process has been silent for too long, or takes too long to become ready.

    A process that reports but is not ready starts slowly or hangs. Replacing it makes a slow
    machine slower, so it has `start_timeout_s`, and its replacement twice as long.
    """
    timeout_s = config.start_timeout_s * 2 ** min(member.failed_starts, MAX_DOUBLINGS)
    late = not member.ready and now - member.arrived_at > timeout_s
    return late or now - member.seen_at > config.consumer_timeout_s


def declare_dead(group: Group, now: float, slots: Iterable[Slot] | None = None) -> Update:
    """Declare dead the processes that are overdue (or those of `slots`); effective once read back.

    After a pause of this controller every process looks silent: then all of them get more time.
    """
    paused = was_paused(group, now)
    group = replace(group, ticked_at=now)
    if paused and slots is None:
        refreshed = {s: replace(m, seen_at=now, arrived_at=now) for s, m in group.members.items()}
        return replace(group, members=group.members.update(refreshed)), ()
    if group.term is None:
        return group, ()
    named = None if slots is None else frozenset(slots)
    actions: list[Action] = []
    for slot, member in sorted(group.members.items()):
        if (epoch := member.epoch) is None or not _may_publish_dead(group.config, member, now):
            continue
        if overdue(group.config, member, now) if named is None else slot in named:
            group = _with_member(group, slot, replace(member, declared_dead_at=now))
            actions.append(Publish(Dead(slot=slot, epoch=epoch, term=group.term or 0)))
    return group, tuple(actions)


def process_ended(group: Group, event: ProcessEnded) -> Update:
    """Declare dead a process whose end the fleet reports, without waiting for its timeout."""
    member = group.member(event.slot)
    if (term := group.term) is None or (epoch := member.epoch) is None:
        return group, ()
    if member.process != event.process or not _may_publish_dead(group.config, member, event.now):
        return group, ()  # its replacement has sent its Hello, or its Dead is pending
    group = _with_member(
        group, event.slot, replace(member, declared_dead_at=event.now, process_ended=True)
    )
    return group, (Publish(Dead(slot=event.slot, epoch=epoch, term=term)),)


def _may_publish_dead(config: ControllerConfig, member: Member, now: float) -> bool:
    """Whether no Dead of it is pending; one that is not read back in time is published again."""
    at = member.declared_dead_at
    return at is None or now - at > config.repeat_s
