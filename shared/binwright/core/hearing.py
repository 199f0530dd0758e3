"""What each record of metadata partition 0 changes, in whatever state the controller is."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from binwright.core.approval import hear_plan
from binwright.core.events import Action, Destroy, Ended, Heard, Publish, Say, Tell
from binwright.core.group import Group, Member
from binwright.core.messages import (
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
from binwright.core.model import Slot, TopicPartition
from binwright.core.ownership import Released, Starting, State, started, stopped
from binwright.core.rules import Rules

Applied = tuple[Group, tuple[Action, ...]]

MOST_DOUBLINGS = 5  # of the patience with a slot's starts


def overtaken(group: Group, event: Heard) -> int | None:
    """Return the term of another controller's later claim, if this is one."""
    message = event.message
    if not isinstance(message, Claim) or message.controller == group.controller:
        return None  # our own may stand there twice, when its confirmation was lost
    return event.offset if event.offset > (group.term or 0) else None


def hear(group: Group, event: Heard) -> Applied:
    """Fold one record into what is known of the group.

    A record of an epoch that is not its slot's living one is dropped. A report of such an epoch is
    answered with `Leave`: an idle process would never learn it otherwise.
    """
    match event.message:
        case Hello() as message:
            return _hello(group, message, event)
        case Dead() as message:
            return _dead(group, message)
        case Claim():
            return group, ()
        case Planned() | Proposed() | Approved() | Accepted() | Withdrawn() as message:
            return hear_plan(group, message, event)
        case message:
            return _from_consumer(group, message, event)


def _known(group: Group, slot: Slot, member: Member) -> Group:
    return replace(group, members=group.members.set(slot, member))


# --- who lives ---------------------------------------------------------------------------------


def _hello(group: Group, message: Hello, event: Heard) -> Applied:
    slot, before = message.slot, group.member(message.slot)
    member = Member(
        hello=event.offset,
        process=message.process,
        sent_ms=message.sent_ms,
        dead=before.dead,
        goodbye=before.goodbye,
        heard_at=event.now,
        arrived_at=event.now,
        failed_starts=before.failed_starts,
    )
    said = Say("consumer.arrived", {"slot": slot, "epoch": event.offset})
    return _known(vacated(group, slot, before.reading), slot, member), (said,)


def _dead(group: Group, message: Dead) -> Applied:
    """End the one process that is named, whoever says so, a controller that stepped down too."""
    slot, member = message.slot, group.member(message.slot)
    if message.epoch != member.epoch:
        return group, ()  # said twice, or of one that has gone meanwhile
    died = replace(_gone(member), dead=member.hello)
    died = replace(died, failed_starts=0 if member.ready else member.failed_starts + 1)
    group = _known(vacated(group, slot, member.reading), slot, died)
    if group.term is None:
        return group, ()
    said = Say("consumer.died", {"slot": slot, "epoch": message.epoch})
    # What has ended needs no end; and the slot may have another process by now.
    return group, (said,) if member.ended else (said, Destroy(slot))


def _gone(member: Member) -> Member:
    return replace(member, ready=False, declared_dead_at=None, reading={}, writing={})


def vacated(group: Group, slot: Slot, known: Mapping[TopicPartition, int | None]) -> Group:
    """Release all that a slot has; its partitions go on at the offsets known of them.

    Those that nobody is known to have are learned so: a controller that synchronizes knows no
    owners yet.
    """
    freed: dict[TopicPartition, State] = {
        p: Released(_resume(group.partitions[p], known.get(p))) for p in group.partitions.of(slot)
    }
    if group.term is not None:
        new = (p for p in known if group.partitions.get(p, Released()) == Released())
        freed |= {p: Released(known[p]) for p in new}
    roles = dict.fromkeys(group.writers.of(slot), Released())
    return replace(
        group,
        partitions=group.partitions.changed(freed),
        writers=group.writers.changed(roles),
    )


def _resume(at: State, known: int | None) -> int | None:
    """Where to go on. A start that is out is news that no report knows of yet: it may go back."""
    return at.offset if isinstance(at, Starting) and at.offset is not None else known


# --- what the living publish -------------------------------------------------------------------


def _from_consumer(
    group: Group, message: Report | Stopped | Started | Gap | Goodbye, event: Heard
) -> Applied:
    slot, member = message.slot, group.member(message.slot)
    if message.epoch != member.epoch:
        if group.term is None or event.offset < group.term or not isinstance(message, Report):
            return group, ()
        return group, (Tell(slot, Leave(term=group.term, epoch=message.epoch)),)
    if isinstance(message, Report):
        return _report(group, member, message, event.now)
    member = replace(member, heard_at=event.now)
    match message:
        case Goodbye():
            group = vacated(group, slot, message.next)
            gone = replace(_gone(member), goodbye=member.hello)
            said = Say("consumer.left", {"slot": slot, "epoch": message.epoch})
            return _known(group, slot, gone), (said,)
        case Stopped():
            return _stopped(group, member, message), ()
        case Started():
            return _started(group, member, message), ()
        case _:
            return _known(group, slot, member), ()


def _report(group: Group, member: Member, report: Report, now: float) -> Applied:
    said = []
    if report.ready and not member.ready:
        said.append(Say("consumer.ready", {"slot": report.slot}))
    if report.leaving and not member.leaving:
        said.append(Say("consumer.leaving", {"slot": report.slot}))
    member = replace(
        member,
        heard_at=now,
        ready=report.ready or member.ready,
        leaving=report.leaving,
        answered=report.term,
        reading=report.reading,
        writing=report.writing,
    )
    return _known(group, report.slot, member), tuple(said)


def _stopped(group: Group, member: Member, message: Stopped) -> Group:
    """Take the answer to a stop; what does not match the command that is out is dropped."""
    slot, revision = message.slot, message.revision
    freed = stopped(group.partitions, slot, revision, message.next)
    roles = stopped(group.writers, slot, revision, dict.fromkeys(message.tables))
    left = {p: offset for p, offset in member.reading.items() if p not in freed}
    return replace(
        _known(group, slot, replace(member, reading=left)),
        partitions=group.partitions.changed(freed),
        writers=group.writers.changed(roles),
    )


def _started(group: Group, member: Member, message: Started) -> Group:
    """Take the answer to a start; what does not match the command that is out is dropped."""
    slot, revision = message.slot, message.revision
    begun = started(group.partitions, slot, revision, message.offsets)
    roles = started(group.writers, slot, revision, message.tables)
    reading = {**member.reading, **{p: message.offsets[p] for p in begun}}
    return replace(
        _known(group, slot, replace(member, reading=reading)),
        partitions=group.partitions.changed(begun),
        writers=group.writers.changed(roles),
    )


# --- declaring dead ----------------------------------------------------------------------------


def slept(group: Group, now: float) -> bool:
    """Whether this controller itself was asleep: then the silence of others proves nothing."""
    return now - group.ticked_at > group.rules.consumer_timeout_s / 2


def overdue(rules: Rules, member: Member, now: float) -> bool:
    """Whether a living process has been silent for too long, or not become ready.

    One that reports but is not ready starts slowly, or never will. To replace it makes a slow
    machine slower: it gets minutes, and its successor twice as many.
    """
    patience_s = rules.start_timeout_s * 2 ** min(member.failed_starts, MOST_DOUBLINGS)
    late = not member.ready and now - member.arrived_at > patience_s
    return late or now - member.heard_at > rules.consumer_timeout_s


def declare_dead(group: Group, now: float, slots: Iterable[Slot] | None = None) -> Applied:
    """Declare dead who is overdue (or `slots`); it counts once read back.

    When this controller itself was asleep everybody looks silent: then they get time to speak.
    """
    overslept = slept(group, now)
    group = replace(group, ticked_at=now)
    if overslept and slots is None:
        awake = {s: replace(m, heard_at=now, arrived_at=now) for s, m in group.members.items()}
        return replace(group, members=group.members.update(awake)), ()
    if group.term is None:
        return group, ()
    named = None if slots is None else frozenset(slots)
    actions: list[Action] = []
    for slot, member in sorted(group.members.items()):
        if (epoch := member.epoch) is None or not _may_declare(group.rules, member, now):
            continue
        if overdue(group.rules, member, now) if named is None else slot in named:
            group = _known(group, slot, replace(member, declared_dead_at=now))
            actions.append(Publish(Dead(slot=slot, epoch=epoch, term=group.term or 0)))
    return group, tuple(actions)


def ended(group: Group, event: Ended) -> Applied:
    """Declare dead the process that the fleet saw end, without waiting for its silence to tell."""
    member = group.member(event.slot)
    if (term := group.term) is None or (epoch := member.epoch) is None:
        return group, ()
    if member.process != event.process or not _may_declare(group.rules, member, event.now):
        return group, ()  # its successor has said Hello, or it is known
    group = _known(group, event.slot, replace(member, declared_dead_at=event.now, ended=True))
    return group, (Publish(Dead(slot=event.slot, epoch=epoch, term=term)),)


def _may_declare(rules: Rules, member: Member, now: float) -> bool:
    """Whether no Dead of it is on its way; one that is not read back in time is written again."""
    at = member.declared_dead_at
    return at is None or now - at > rules.repeat_s
