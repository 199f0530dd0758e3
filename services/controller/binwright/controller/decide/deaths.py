"""Declares processes dead: silent ones, those that never become ready, and those that ended."""

from collections.abc import Iterable
from dataclasses import replace

from binwright.controller.decide.events import Action, ProcessEnded, Publish, Update
from binwright.group.config import ControllerSettings
from binwright.group.group import Group
from binwright.group.members import Member
from binwright.protocol.metadata import Dead
from binwright.protocol.model import Slot

MAX_DOUBLINGS = 5  # of the time that a slot's process has to become ready


def was_paused(group: Group, now: float) -> bool:
    """Whether this controller itself was paused: then silent consumers may be alive."""
    return now - group.ticked_at > group.settings.consumer_timeout_s / 2


def overdue(settings: ControllerSettings, member: Member, now: float) -> bool:
    """Whether a living process has been silent for too long, or takes too long to become ready.

    A process that reports but is not ready starts slowly or hangs. Replacing it makes a slow
    machine slower, so it has `start_timeout_s`, and its replacement twice as long.
    """
    timeout_s = settings.start_timeout_s * 2 ** min(member.failed_starts, MAX_DOUBLINGS)
    late = not member.ready and now - member.arrived_at > timeout_s
    return late or now - member.seen_at > settings.consumer_timeout_s


def declare_dead(group: Group, now: float, slots: Iterable[Slot] | None = None) -> Update:
    """Declare dead the processes that are overdue (or those of `slots`); effective once read back.

    After a pause of this controller every process looks silent: then all of them get more time.
    """
    paused, members = was_paused(group, now), group.members
    group = replace(group, ticked_at=now)
    if paused and slots is None:
        known = members.by_slot.items()
        refreshed = {slot: replace(m, seen_at=now, arrived_at=now) for slot, m in known}
        members = replace(members, by_slot=members.by_slot.update(refreshed))
        return replace(group, members=members), ()
    if group.term is None:
        return group, ()
    named = None if slots is None else frozenset(slots)
    actions: list[Action] = []
    for slot, member in sorted(members.by_slot.items()):
        if (epoch := member.epoch) is None or not _may_publish_dead(group.settings, member, now):
            continue
        if overdue(group.settings, member, now) if named is None else slot in named:
            members = members.with_member(slot, replace(member, declared_dead_at=now))
            actions.append(Publish(Dead(slot=slot, epoch=epoch, term=group.term)))
    return replace(group, members=members), tuple(actions)


def process_ended(group: Group, event: ProcessEnded) -> Update:
    """Declare dead a process whose end the fleet reports, without waiting for its timeout."""
    member = group.members.get(event.slot)
    if (term := group.term) is None or (epoch := member.epoch) is None:
        return group, ()
    if member.process != event.process or not _may_publish_dead(group.settings, member, event.now):
        return group, ()  # its replacement has sent its Hello, or its Dead is pending
    pending = replace(member, declared_dead_at=event.now, process_ended=True)
    members = group.members.with_member(event.slot, pending)
    return replace(group, members=members), (
        Publish(Dead(slot=event.slot, epoch=epoch, term=term)),
    )


def _may_publish_dead(settings: ControllerSettings, member: Member, now: float) -> bool:
    """Whether no Dead of it is pending; one that is not read back in time is published again."""
    at = member.declared_dead_at
    return at is None or now - at > settings.command_retry_s
