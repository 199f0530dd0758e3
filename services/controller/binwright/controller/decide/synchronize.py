"""Synchronize: the owners of partitions and tables, from the reports of all consumers."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from binwright.controller.decide.apply import apply_record, later_claim
from binwright.controller.decide.approval import approved_slots, inherit_approved
from binwright.controller.decide.deaths import declare_dead, was_paused
from binwright.controller.decide.events import Action, Broadcast, Reconcile, StepDown, Tick, Update
from binwright.controller.decide.moves import stop_unexpected
from binwright.controller.decide.states import Sentinel, Step, SteppedDown, Synchronize
from binwright.group.fold import RecordRead, StateRecord
from binwright.group.group import Group
from binwright.group.ownership import (
    K,
    Owned,
    Ownership,
    PartitionOwnership,
    Released,
    State,
)
from binwright.protocol.commands import StateQuery
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.metadata import Claim, Report
from binwright.protocol.model import Slot, TopicPartition

TERM_BEGUN = LogEvent.info(
    "term.begun", "The controller read its own Claim and asks all consumers for their state."
)
GROUP_SYNCHRONIZED = LogEvent.info(
    "group.synchronized", "A new controller knows who reads and writes what."
)
TOPIC_DESELECTED = LogEvent.info(
    "topic.deselected",
    "A topic is not selected any more; its partitions are stopped and its table stays.",
)


def on_record(state: Synchronize, event: RecordRead) -> Step:
    """Apply the record; the own claim begins the term, the last awaited reply ends the state."""
    if state.group.term is None:
        if isinstance(event.message, Claim) and event.message.controller == state.group.controller:
            group, actions = begin_term(state.group, event.offset)
            return _conclude(replace(state, group=group, since=event.now), event.now, actions)
        group, _ = apply_record(state.group, event)  # history: sends nothing
        return replace(state, group=group), ()
    if (other := later_claim(state.group, event)) is not None:
        return SteppedDown(state.group, event.now), (StepDown(other),)
    group, actions = apply_record(state.group, event)
    replies = collect_replies(group, state.replies, event.message)
    return _conclude(replace(state, group=group, replies=replies), event.now, actions)


def _conclude(state: Synchronize, now: float, actions: tuple[Action, ...]) -> Step:
    if state.group.term is None or awaiting_reply(state.group):
        return state, actions
    group, more = adopt_reports(state.group, state.replies)
    group, running, accepted = inherit_approved(group, group.members.living())
    return Sentinel(group, now), (*actions, Reconcile(running), *more, *accepted)


def on_tick(state: Synchronize, event: Tick) -> Step:
    """Declare dead the consumers that did not reply in time."""
    if was_paused(state.group, event.now):
        state = replace(state, since=event.now)  # replies may be in partition 0, not read yet
    group, actions = declare_dead(state.group, event.now)
    if group.term is not None and event.now - state.since > group.settings.consumer_timeout_s:
        group, more = declare_dead(group, event.now, awaiting_reply(group))
        actions = (*actions, *more)
    return replace(state, group=group), actions


def begin_term(group: Group, term: int) -> Update:
    """Begin the term: query every slot that has a partition of commands, whether or not it runs."""
    log = Log(TERM_BEGUN, {"term": term})
    # Consumers that died together with the previous leader restart now, not after their timeout.
    running = group.members.living() | approved_slots(group)
    actions = (Reconcile(running), Broadcast(StateQuery(term=term)))
    # All plans before the claim were read: an approval of none of them is of a topic that is gone.
    people = replace(group.people, early_approval=None)
    return replace(group, term=term, revisions=0, people=people), (log, *actions)


def awaiting_reply(group: Group) -> list[Slot]:
    """Return the slots that must still reply: alive before the claim and not declared dead."""
    term = group.term or 0
    return sorted(
        slot
        for slot, member in group.members.by_slot.items()
        if (epoch := member.epoch) is not None and epoch < term and member.replied_term != term
    )


def collect_replies(
    group: Group, replies: Mapping[Slot, Report], message: StateRecord
) -> Mapping[Slot, Report]:
    """Return the latest reply of every living epoch."""
    if isinstance(message, Report) and message.term == group.term:
        replies = {**replies, message.slot: message}
    return {s: r for s, r in replies.items() if r.epoch == group.members.get(s).epoch}


def adopt_reports(group: Group, replies: Mapping[Slot, Report]) -> Update:
    """Take the owners from the reports; where two slots report the same, stop the higher one.

    What no report lists is released at its last known offset. A topic that is not selected any more
    counts as deleted: its partitions are stopped and forgotten.
    """
    reports = [report for _, report in sorted(replies.items())]
    released = {p: Released(_last_known(group, p)) for p in _known_partitions(group)}
    readers = _owners(released, ((report, report.reading) for report in reports))
    writers = _owners({}, ((report, sorted(report.written_topics)) for report in reports))
    members = replace(
        group.members, partitions=PartitionOwnership(readers), writers=Ownership(writers)
    )
    group = replace(group, members=members)
    group, actions = _deselect_topics(group)
    for report in reports:
        partitions = report.reading.keys() - group.members.partitions.owned_by(report.slot)
        tables = report.written_topics - group.members.writers.owned_by(report.slot)
        group, sent = stop_unexpected(group, report.slot, partitions, tables)
        actions += sent
    owned = sum(at.slot is not None for at in group.members.partitions.values())
    return group, (*actions, Log(GROUP_SYNCHRONIZED, {"owned": owned}))


def _deselect_topics(group: Group) -> tuple[Group, list[Action]]:
    """Treat topics as deleted that have readers but are not selected any more."""
    rates, actions = group.load.rates, list[Action]()
    for topic in sorted(group.members.partitions.topics):
        if not group.config.includes(topic):
            rates = rates.with_topic(topic, 0, {})
            actions.append(Log(TOPIC_DESELECTED, {"topic": topic, "reason": "it is not selected"}))
    return replace(group, load=replace(group.load, rates=rates)), actions


def _known_partitions(group: Group) -> set[TopicPartition]:
    rates = group.load.rates
    measured = ((topic, rates.count(topic) or 0) for topic in rates.names)
    numbered = (TopicPartition(t, n) for t, count in measured for n in range(count))
    return {*group.members.partitions, *numbered}


def _last_known(group: Group, partition: TopicPartition) -> int | None:
    at = group.members.partitions.get(partition)
    return at.offset if isinstance(at, Released) else None


def _owners(
    released: Mapping[K, State], claims: Iterable[tuple[Report, Iterable[K]]]
) -> dict[K, State]:
    """Return the owners; the first of several reports that list a key wins."""
    states = dict(released)
    for report, keys in claims:
        for key in keys:
            if states.get(key, Released()).slot is None:
                states[key] = Owned(report.slot, report.epoch)
    return states
