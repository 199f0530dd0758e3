"""Synchronize: from everybody's reports to who reads and writes what."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from binwright.core.approval import stays
from binwright.core.commands import Sent, stop_unexpected
from binwright.core.events import Action, Broadcast, Reconcile, Say
from binwright.core.group import Group
from binwright.core.messages import Inbound, Report, StateQuery
from binwright.core.model import Slot, TopicPartition
from binwright.core.ownership import K, Owned, Ownership, Partitions, Released, State


def ask(group: Group, term: int) -> Sent:
    """Begin the term: ask every slot that has a metadata partition, in the fleet or not."""
    said = Say("term.begun", {"term": term})
    # Who died together with the previous leader is started now, not when its silence is proven.
    orders = (Reconcile(group.living() | stays(group)), Broadcast(StateQuery(term=term)))
    return replace(group, term=term, revisions=0), (said, *orders)


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


def concluded(group: Group, answers: Mapping[Slot, Report]) -> Sent:
    """Take what is read and written as the reports say; of two that have the same, stop one.

    What nobody answers for is released at the offset last known of it. A topic that the group reads
    no more counts as deleted: its partitions are given back.
    """
    reports = [report for _, report in sorted(answers.items())]
    free = {p: Released(_last_known(group, p)) for p in _partitions(group)}
    group = replace(
        group,
        partitions=Partitions(_owned(free, ((report, report.reading) for report in reports))),
        writers=Ownership(_owned({}, ((report, report.writing) for report in reports))),
    )
    group, actions = _without_others(group)
    for report in reports:
        partitions = report.reading.keys() - group.partitions.of(report.slot)
        tables = report.writing.keys() - group.writers.of(report.slot)
        group, sent = stop_unexpected(group, report.slot, partitions, tables)
        actions += sent
    owned = sum(at.slot is not None for at in group.partitions.values())
    return group, (*actions, Say("group.synchronized", {"owned": owned}))


def _without_others(group: Group) -> tuple[Group, list[Action]]:
    """Take topics for gone that somebody reads and the group's settings name no more."""
    rates, actions = group.rates, list[Action]()
    for topic in sorted(group.partitions.topics):
        if not group.rules.takes(topic):
            rates = rates.told(topic, 0, {})
            actions.append(Say("topic.left", {"topic": topic, "reason": "it is not selected"}))
    return replace(group, rates=rates), actions


def _partitions(group: Group) -> set[TopicPartition]:
    topics = ((topic, group.rates.count(topic) or 0) for topic in group.rates.names)
    return {*group.partitions, *(TopicPartition(t, n) for t, count in topics for n in range(count))}


def _last_known(group: Group, partition: TopicPartition) -> int | None:
    at = group.partitions.get(partition)
    return at.offset if isinstance(at, Released) else None


def _owned(free: Mapping[K, State], claims: Iterable[tuple[Report, Iterable[K]]]) -> dict[K, State]:
    """Return who has what; of two that say so the lowest slot keeps it."""
    states = dict(free)
    for report, keys in claims:
        for key in keys:
            if states.get(key, Released()).slot is None:
                states[key] = Owned(report.slot, report.epoch)
    return states
