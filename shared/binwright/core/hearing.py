"""What each record of metadata partition 0 changes, in whatever state the controller is."""

from collections.abc import Iterable
from dataclasses import replace

from binwright.core.approval import hear_plan
from binwright.core.events import Action, Destroy, Heard, Publish, Say, Tell
from binwright.core.group import (
    Group,
    Held,
    Member,
    Place,
    Starting,
    landed,
    let_go,
    lose,
    pay,
    readers_ahead,
    started,
    stopped,
)
from binwright.core.messages import (
    Accepted,
    Approved,
    Claim,
    Dead,
    Fenced,
    Goodbye,
    Hello,
    Inbound,
    Landed,
    Leave,
    Planned,
    Proposed,
    Report,
    Started,
    Stopped,
    Withdrawn,
)
from binwright.core.model import Slot, TopicPartition
from binwright.core.moving import recall, release
from binwright.core.rules import Rules

Heeded = tuple[Group, tuple[Action, ...]]

MOST_DOUBLINGS = 5  # of the patience with a slot's newcomers


def overtaken(group: Group, event: Heard) -> int | None:
    """Return the term of somebody else's later claim, if this is one."""
    message = event.message
    if not isinstance(message, Claim) or message.controller == group.controller:
        return None  # our own may stand there twice, when its confirmation was lost
    return event.offset if event.offset > (group.term or 0) else None


def hear(group: Group, event: Heard) -> Heeded:
    """Fold one record into what is known of the slots.

    Words of an epoch that is not its slot's latest Hello, or is voided, are dropped and answered
    with `Leave` (†): an idle process would never learn it otherwise.
    """
    match event.message:
        case Hello(slot=slot):
            return _hello(group, slot, event)
        case Dead(slot=slot):
            return _dead(group, slot, event)
        case Fenced(slot=slot, number=number, topic=topic):
            known = max(number, group.fenced.get((slot, topic), -1))
            return replace(group, fenced={**group.fenced, (slot, topic): known}), ()
        case Claim():
            return group, ()
        case Planned() | Proposed() | Approved() | Accepted() | Withdrawn() as message:
            return hear_plan(group, message, event)
        case message:
            return _word(group, message, event)


def _known(group: Group, slot: Slot, member: Member) -> Group:
    return replace(group, members={**group.members, slot: member})


def _hello(group: Group, slot: Slot, event: Heard) -> Heeded:
    member = replace(
        group.member(slot),
        hello=event.offset,
        ready=False,
        leaving=False,
        answered=None,
        heard_at=event.now,
        arrived_at=event.now,
        condemned_at=None,
    )
    said = Say("consumer.arrived", {"slot": slot, "epoch": event.offset})
    group, recalled = _lost(group, slot, event.now)
    return _known(group, slot, member), (said, *recalled)


def _dead(group: Group, slot: Slot, event: Heard) -> Heeded:
    """Void what spoke before, whoever says so, a deposed controller too."""
    member = group.member(slot)
    lived = member.epoch is not None
    died = replace(member, dead=event.offset, ready=False, condemned_at=None)
    if not lived:
        return _known(group, slot, died), ()
    died = replace(died, vain=0 if member.ready else member.vain + 1)
    group, recalled = _lost(group, slot, event.now)
    said = Say("consumer.died", {"slot": slot, "epoch": member.hello, "number": event.offset})
    destroyed = () if group.term is None else (said, Destroy(slot))
    return _known(group, slot, died), (*destroyed, *recalled)


def _lost(group: Group, slot: Slot, now: float) -> Heeded:
    """Take everything from a slot; who read ahead of its last write must begin anew."""
    group, recalled = recall(group, readers_ahead(group, slot), now)
    return lose(group, slot), recalled


def _word(
    group: Group, message: Report | Stopped | Landed | Started | Goodbye, event: Heard
) -> Heeded:
    slot, member = message.slot, group.member(message.slot)
    if message.epoch != member.epoch:
        if group.term is None or event.offset < group.term or not isinstance(message, Report):
            return group, ()
        return group, (Tell(slot, Leave(term=group.term, epoch=message.epoch)),)
    member = replace(member, heard_at=event.now)
    match message:
        case Goodbye() if member.ready:  # before its claims stand nobody may leave in good order
            group = _known(group, slot, replace(member, goodbye=member.hello, ready=False))
            return group, (Say("consumer.left", {"slot": slot, "epoch": message.epoch}),)
        case Report():
            return _report(group, member, message)
        case _:
            return _known(group, slot, member), ()


def _report(group: Group, member: Member, report: Report) -> Heeded:
    newly_ready = report.ready and not member.ready
    newly_leaving = report.leaving and not member.leaving
    member = replace(
        member,
        ready=report.ready or member.ready,
        leaving=report.leaving,
        answered=report.term,
    )
    group = _known(group, report.slot, member)
    said = [Say("consumer.leaving", {"slot": report.slot})] if newly_leaving else []
    if not newly_ready:
        return group, tuple(said)
    # Its claims stand above all that older epochs may still write: no fence is needed any more.
    return pay(group, report.slot), (Say("consumer.ready", {"slot": report.slot}), *said)


def take_answer(group: Group, message: Inbound, now: float) -> Heeded:
    """Let an answer change where partitions are; one that does not match is dropped (†)."""
    match message:
        case Stopped(slot=slot, epoch=epoch) if epoch == group.member(slot).epoch:
            return stopped(group, message), ()
        case Landed(slot=slot, epoch=epoch) if epoch == group.member(slot).epoch:
            group, heirs = landed(group, message)
            return release(group, heirs, now)
        case Started(slot=slot, epoch=epoch) if epoch == group.member(slot).epoch:
            return _started(group, message)
        case Goodbye(slot=slot, epoch=epoch) if _just_left(group.member(slot), epoch):
            return let_go(group, slot, message.landed), ()
        case _:
            return group, ()


def _just_left(member: Member, epoch: int) -> bool:
    """Whether this is that slot's last word; said again after a newcomer's Hello, it is not (†)."""
    return epoch == member.goodbye == member.hello


def _started(group: Group, message: Started) -> Heeded:
    group, matched = started(group, message.slot, message.revision, sorted(message.offsets))
    actions: list[Action] = []
    for topic in sorted({partition.topic for partition in matched}):
        for fence in message.fences:
            member = group.member(fence.slot)
            # The slot may have lived, or died, once more since: that is not paid for.
            if fence.number >= max(member.dead or 0, (member.hello or 0) - 1):
                group = pay(group, fence.slot, topic)
            confirmed = Fenced(slot=fence.slot, number=fence.number, topic=topic)
            actions.append(Publish(confirmed))
    return group, tuple(actions)


def contradiction(group: Group, message: Inbound) -> str | None:
    """Return how a consumer's report denies what this controller believes, if it does.

    Partition 0 is one order for both, so a belief never runs ahead of the reports that follow it.
    """
    if not isinstance(message, Report) or message.epoch != group.member(message.slot).epoch:
        return None
    for partition, place in sorted(group.places.items()):
        if _unheard(message, partition, place):
            # No report overtakes its process's answers: that word will not come any more.
            return f"consumer {message.slot} has landed {partition}, and its Landed was never heard"
        if isinstance(place.at, Held | Starting) and (why := _denied(message, partition, place)):
            return why
    return None


def _unheard(report: Report, partition: TopicPartition, place: Place) -> bool:
    """Whether a `Landed` is awaited of a process that has said it already (†).

    So it is for a controller that slept until partition 0 was compacted: one `Landed` of each slot
    is kept. Its heir would read ahead for ever.
    """
    awaited = any((t.slot, t.epoch) == (report.slot, report.epoch) for t in place.tails)
    return awaited and partition not in report.closing


def _denied(report: Report, partition: TopicPartition, place: Place) -> str | None:
    lands = partition in report.held or partition in report.opening
    closes = partition in report.closing
    if place.slot != report.slot:
        tail = any((t.slot, t.epoch) == (report.slot, report.epoch) for t in place.tails)
        if lands or partition in report.ahead or (closes and not tail):
            return f"consumer {report.slot} holds {partition}, and so does {place.slot}"
    elif isinstance(place.at, Held):
        if not (lands or closes or partition in report.ahead):
            return f"consumer {report.slot} does not hold {partition}"
        if (partition in report.ahead) != bool(place.tails):
            return f"consumer {report.slot} and the controller differ on who lands {partition}"
    return None


def slept(group: Group, now: float) -> bool:
    """Whether this controller itself was asleep: then the silence of others proves nothing."""
    return now - group.ticked_at > group.rules.consumer_timeout_s / 2


def overdue(rules: Rules, member: Member, now: float) -> bool:
    """Whether a living process has been silent for too long, or not become ready.

    Who speaks but is not ready claims slowly, or never will. To replace it makes a slow machine
    slower: it gets minutes, and its successor twice as many.
    """
    patience_s = rules.start_timeout_s * 2 ** min(member.vain, MOST_DOUBLINGS)
    late = not member.ready and now - member.arrived_at > patience_s
    return late or now - member.heard_at > rules.consumer_timeout_s


def condemn(group: Group, now: float, slots: Iterable[Slot] | None = None) -> Heeded:
    """Declare dead who is overdue (or `slots`); it counts once read back.

    When this controller itself was asleep everybody looks silent: then they get time to speak.
    """
    overslept = slept(group, now)
    group = replace(group, ticked_at=now)
    if overslept and slots is None:
        awake = {s: replace(m, heard_at=now, arrived_at=now) for s, m in group.members.items()}
        return replace(group, members=awake), ()
    if group.term is None:
        return group, ()
    doomed = [
        slot
        for slot, m in sorted(group.members.items())
        if m.epoch is not None
        and (m.condemned_at is None or now - m.condemned_at > group.rules.repeat_s)
        and (slot in slots if slots is not None else overdue(group.rules, m, now))
    ]
    marked = {s: replace(group.members[s], condemned_at=now) for s in doomed}
    group = replace(group, members={**group.members, **marked})
    return group, tuple(Publish(Dead(slot=s, term=group.term or 0)) for s in doomed)
