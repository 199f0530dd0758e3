"""Synchronize: from everybody's answers to where every partition is."""

from collections.abc import Mapping
from dataclasses import replace

from binwright.core.approval import stays
from binwright.core.events import Action, Broadcast, Reconcile, Say, Tell
from binwright.core.group import Group, Held, Place, Stopping, Unassigned, debt
from binwright.core.messages import Inbound, Report, StateQuery
from binwright.core.model import Slot, TopicPartition
from binwright.core.moving import stop_command


def ask(group: Group, term: int) -> tuple[Group, tuple[Action, ...]]:
    """Begin the term: ask every slot that has a metadata partition, in the fleet or not (†)."""
    said = Say("term.begun", {"term": term})
    # Who died together with the former leader is started now, not when its silence is proven.
    orders = (Reconcile(living(group) | stays(group)), Broadcast(StateQuery(term=term)))
    return replace(group, term=term, revisions=0), (said, *orders)


def living(group: Group) -> frozenset[Slot]:
    """Return who was a member by its last word, or may be one yet."""
    return frozenset(slot for slot, member in group.members.items() if member.epoch is not None)


def awaited(group: Group) -> list[Slot]:
    """Return who lived before the claim and has neither answered it nor been declared dead."""
    term = group.term or 0
    return sorted(
        slot
        for slot, member in group.members.items()
        if (epoch := member.epoch) is not None and epoch < term and member.answered != term
    )


def collect(
    group: Group, answers: Mapping[Slot, Report], message: Inbound
) -> Mapping[Slot, Report]:
    """Keep the latest answer of every living epoch."""
    if isinstance(message, Report) and message.term == group.term:
        answers = {**answers, message.slot: message}
    return {s: r for s, r in answers.items() if r.epoch == group.member(s).epoch}


def concluded(
    group: Group, answers: Mapping[Slot, Report], now: float
) -> tuple[Group, tuple[Action, ...]]:
    """Say where everything is: what is held stays, and every silence is owed a fence."""
    group = replace(group, doubt=_doubted(group), places={})
    owners: dict[TopicPartition, dict[Slot, int]] = {}
    leaving: set[TopicPartition] = set()
    for slot, report in sorted(answers.items()):
        for partition in (*report.held, *report.opening, *report.closing, *report.ahead):
            owners.setdefault(partition, {})[slot] = report.epoch
        # The word that lets one land what it read ahead may never come (†).
        leaving.update(report.closing, report.ahead)
    group, revision = group.next_revision()
    places = {}
    for partition, holders in sorted(owners.items()):
        owed = debt(group, partition.topic)
        if len(holders) == 1 and partition not in leaving:
            ((slot, epoch),) = holders.items()
            places[partition] = Place(Held(slot, epoch), owed)
        else:
            # Held twice: stopped at both, then placed by resolve, with neither's word.
            at = Stopping(holders, revision, now, twice=len(holders) > 1)
            places[partition] = Place(at, owed)
    unread = {p: Place(Unassigned(), debt(group, p.topic)) for p in group.rates if p not in places}
    group = replace(group, places={**places, **unread})
    return group, (*_stops(group), Say("group.synchronized", {"held": len(places)}))


def _doubted(group: Group) -> frozenset[Slot]:
    """A slot needs no fence only if its claims stand, or it left nothing.

    Whoever lived before our claim has answered it by now. Whoever came after it was told nothing by
    older controllers: that one need not answer, but its claims must stand.
    """
    return frozenset(
        slot
        for slot, member in group.members.items()
        if not (member.left_nothing or member.claimed)
    )


def _stops(group: Group) -> tuple[Action, ...]:
    stopping: dict[Slot, dict[TopicPartition, Place]] = {}
    for partition, place in sorted(group.places.items()):
        if isinstance(place.at, Stopping):
            for slot in place.at.owners:
                stopping.setdefault(slot, {})[partition] = place
    return tuple(
        Tell(slot, stop_command(group, slot, places)) for slot, places in sorted(stopping.items())
    )
