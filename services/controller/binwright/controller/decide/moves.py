"""Moves by stop, acknowledge, start: of partitions to their targets, and of tables to writers.

Decides which commands bring the group from the present owners to the wanted ones, and in which
order. The reasons of a plan do not matter here.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from binwright.controller.decide.events import Action, Send, Update
from binwright.controller.decide.shared_tables import together
from binwright.group.budgets import movable_now
from binwright.group.group import Group, forget_gone
from binwright.group.ownership import (
    K,
    Owned,
    PendingCommand,
    Released,
    Starting,
    State,
    Stopping,
    unacknowledged,
)
from binwright.packing.adjust import spread
from binwright.protocol.commands import StartReading, StartWriting, StopReading, StopWriting
from binwright.protocol.model import Assignment, Slot, TopicPartition

# --- partitions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Goal:
    """The target of a plan; updated by each record in O(partitions that the record names)."""

    target: Assignment
    slots: frozenset[Slot]  # all slots of the target
    misplaced: frozenset[
        TopicPartition
    ]  # owned by another slot than the target's, no command pending


def goal_for(group: Group, target: Assignment) -> Goal:
    """Return the goal of bringing everything to `target`; O(all partitions)."""
    states = group.members.partitions.items()
    misplaced = (p for p, at in states if _is_misplaced(at, target.get(p)))
    return Goal(target, frozenset(target.values()), frozenset(misplaced))


def add_misplaced(group: Group, goal: Goal, partitions: Iterable[TopicPartition]) -> Goal:
    """Return the goal after these started: some at interim owners, until the new one is ready."""
    added = _misplaced(group, goal.target, partitions)
    return replace(goal, misplaced=goal.misplaced | added) if added else goal


def _misplaced(
    group: Group, target: Assignment, partitions: Iterable[TopicPartition]
) -> frozenset[TopicPartition]:
    states = ((p, group.members.partitions.get(p, Released())) for p in partitions)
    return frozenset(p for p, at in states if _is_misplaced(at, target.get(p)))


def _is_misplaced(at: State, wanted: Slot | None) -> bool:
    return isinstance(at, Owned) and wanted is not None and wanted != at.slot


def advance(group: Group, goal: Goal, now: float) -> tuple[Group, Goal, tuple[Action, ...]]:
    """Send every stop and start that may be sent now.

    Each partition moves by itself: none waits for another. Partitions that are gone are stopped,
    and forgotten once they have no reader.
    """
    group = forget_gone(group)
    misplaced = _misplaced(group, goal.target, goal.misplaced)
    stops, starts = _stops(group, goal.target, misplaced), _starts(group, goal.target, now)
    actions: list[Action] = []
    for slot, partitions in sorted(stops.items()):
        group, sent = stop_reading(group, slot, partitions, now)
        misplaced -= frozenset(partitions)
        actions += sent
    for slot, offsets in sorted(starts.items()):
        group, sent = start_reading(group, slot, offsets, now)
        actions += sent
    return group, replace(goal, misplaced=misplaced), tuple(actions)


def _stops(
    group: Group, target: Assignment, misplaced: Iterable[TopicPartition]
) -> dict[Slot, list[TopicPartition]]:
    """Return what to stop: gone partitions, and those whose new owner is ready to start them."""
    ready, gone = frozenset(group.members.usable()), group.gone_partitions()
    may_start = (p for p in misplaced if target[p] in ready and not group.load.is_gone(p))
    moving = movable_now(group, may_start)
    stops: dict[Slot, list[TopicPartition]] = {}
    for partition in (*moving, *gone):
        at = group.members.partitions[partition]
        if isinstance(
            at, Owned | Starting
        ):  # a start of a gone partition may never be acknowledged
            stops.setdefault(at.slot, []).append(partition)
    return stops


def _starts(
    group: Group, target: Assignment, now: float
) -> dict[Slot, dict[TopicPartition, int | None]]:
    unread = group.unread()
    ready = frozenset(group.members.usable())
    owners = {p: target[p] for p in unread if target.get(p) in ready}
    waiting = [p for p in unread if p not in owners and not _soon_ready(group, target.get(p), now)]
    starts: dict[Slot, dict[TopicPartition, int | None]] = {}
    for partition, slot in sorted((owners | _interim_owners(group, target, waiting)).items()):
        at = group.members.partitions[partition]
        offset = at.offset if isinstance(at, Released) else None
        starts.setdefault(slot, {})[partition] = offset
    return starts


def _soon_ready(group: Group, slot: Slot | None, now: float) -> bool:
    """Whether a new owner will probably be ready soon: its Hello is recent."""
    if slot is None or (member := group.members.get(slot)).epoch is None or member.leaving:
        return False
    return now - member.arrived_at <= group.settings.consumer_timeout_s


def _interim_owners(
    group: Group, target: Assignment, waiting: list[TopicPartition]
) -> dict[TopicPartition, Slot]:
    """Give partitions whose new owner is not ready to consumers that are, for the meantime.

    Ready consumers of the target come first, then those about to be retired; with none, the
    partitions wait for the first that becomes ready.
    """
    ready = group.members.usable()
    if not waiting or not ready:
        return {}
    staying = frozenset(target.values())
    owners = [slot for slot in ready if slot in staying] or ready
    assigned = find_readers(group, group.members.assignment(), waiting, owners)
    return {p: assigned[p] for p in waiting}


def find_readers(
    group: Group,
    target: Assignment,
    unassigned: Iterable[TopicPartition],
    new_owners: Collection[Slot],
) -> dict[TopicPartition, Slot]:
    """Return `target` with these partitions added, at some of these slots, without delay.

    Each goes to the consumer that it is pinned to, else to the least loaded that is open; to a
    cordoned one, or even a drained one, or one whose node goes, only while there is no other.
    """
    rules, ending = group.people.controls.rules, group.fleet.ending()
    new_owners = [slot for slot in new_owners if slot not in ending] or new_owners
    if not rules:
        return spread(group.load.rates, target, unassigned, new_owners)
    pinned = {p: pin for p in unassigned if (pin := rules.pin(p)) in new_owners and pin is not None}
    others = [p for p in unassigned if p not in pinned]
    owners = (
        [slot for slot in new_owners if rules.is_open(slot)]
        or [slot for slot in new_owners if slot not in rules.drained]
        or new_owners
    )
    return spread(group.load.rates, {**target, **pinned}, others, owners)


def goal_reached(group: Group, goal: Goal) -> bool:
    """Whether every partition is at its target; partitions newer than the plan have none."""
    partitions = group.members.partitions
    waiting = goal.misplaced or partitions.pending or partitions.released
    return not waiting and not group.gone_partitions()


# --- writer roles: cheap, so not part of a plan; they follow the readers ------------------------


Unit = tuple[str, ...]
"""Topics that share tables: one role."""
SETTLED_S = 60.0
"""After a consumer became ready its group still starts: it reads what came meanwhile."""


def may_write(group: Group, staying: Collection[Slot] | None = None) -> list[Slot]:
    """Return the consumers that keep what they write, sorted: ready ones that do not leave.

    Args:
        group: The group.
        staying: The slots that the plan keeps; other ones are about to be retired. None: no plan.
    """
    ready, rules = group.members.usable(), group.people.controls.rules
    closed = rules.drained | group.fleet.ending()
    usable = [slot for slot in ready if slot not in closed] or ready
    return usable if staying is None else [s for s in usable if s in staying] or usable


def candidates(group: Group, staying: Collection[Slot] | None = None) -> list[Slot]:
    """Return the consumers that may be given tables: of `may_write` those that read, else all."""
    stay = may_write(group, staying)
    return [slot for slot in stay if group.members.reads(slot)] or stay


def anything_starts(group: Group, now: float, staying: Collection[Slot] | None = None) -> bool:
    """Whether partitions move, or a consumer starts, or did so a moment ago.

    One that is not ready `start_timeout_s` after it was asked for is not waited for: its platform
    may have no room for it.
    """
    partitions, fleet = group.members.partitions, group.fleet
    if partitions.pending or partitions.released:
        return True
    for slot in fleet.desired.union(staying or (), group.members.living()):
        member = group.members.get(slot)
        if member.ready:
            since, for_s = member.ready_at, SETTLED_S
        else:
            begun = fleet.asked_at.get(slot, now)  # a plan that begins now asks for it
            since = begun if member.epoch is None else member.arrived_at
            for_s = group.settings.start_timeout_s
        if now - since < for_s:
            return True
    return False


def wanted_writers(
    group: Group, now: float, staying: Collection[Slot] | None = None
) -> dict[str, Slot]:
    """Return the wanted writer of each topic's tables, topic -> slot; empty while none is ready.

    Topics that share a table have one writer (†: two would take it from each other without end). A
    role stays with its consumer until that leaves, or reads nothing once nothing starts. Roles
    without a consumer go to the candidate with the fewest; between equals, to the lowest slot.
    """
    slots = candidates(group, staying)
    if not slots:
        return {}
    starts = anything_starts(group, now, staying)
    keeping = frozenset(may_write(group, staying) if starts else slots)
    units = together(sorted(group.members.partitions.topics), group.config.tables_of)
    holders = {unit: _holder(group, unit) for unit in units}
    wanted = {unit: slot for unit, slot in holders.items() if slot is not None and slot in keeping}
    receivers = [slot for slot in slots if group.is_open(slot)] or slots
    if len(wanted) < len(units):
        count = Counter(wanted.values())
        fewest = [(count[slot], slot) for slot in receivers]
        heapify(fewest)
        for unit in units:
            if unit not in wanted:
                tables, wanted[unit] = heappop(fewest)
                heappush(fewest, (tables + 1, wanted[unit]))
    elif not starts:
        wanted |= _evened(group, wanted, slots, receivers)
    return {topic: slot for unit, slot in wanted.items() for topic in unit}


def _evened(
    group: Group, writers: Mapping[Unit, Slot], slots: Sequence[Slot], receivers: Sequence[Slot]
) -> dict[Unit, Slot]:
    """Return the role that moves now from the consumer that has most, and its next writer.

    None while every consumer has an even share at most, or a claim is under way: one table moves at
    a time. A topic whose rows are late stays, unless all are late that its consumer writes: that
    one does not keep up.
    """
    count, share = Counter(writers.values()), -(-len(writers) // len(slots))
    most = min(slots, key=lambda slot: (-count[slot], slot))
    fewest = min(receivers, key=lambda slot: (count[slot], slot))
    if count[most] <= share or count[fewest] >= share:
        return {}
    late: dict[str, bool] = {}
    for slot in count:
        owned = group.members.writers.owned_by(slot)
        for name, table in group.members.get(slot).writing.items():
            if table.state == "claiming" and not table.fault:
                return {}
            for topic in owned.intersection(table.topics_of(name)):
                late[topic] = late.get(topic, False) or table.age_s > group.config.on_time_s
    if any(topic not in late for unit in writers for topic in unit):
        return {}  # the report that lists it is on its way
    held = [unit for unit, slot in writers.items() if slot == most]
    on_time = [unit for unit in held if not any(late[topic] for topic in unit)]
    return {(on_time or held)[-1]: fewest}


def _holder(group: Group, topics: Iterable[str]) -> Slot | None:
    """Return the slot that writes most of these topics, the lowest one of several."""
    states = (group.members.writers.get(topic) for topic in topics)
    held = Counter(at.slot for at in states if isinstance(at, Owned | Starting))
    return min(held, key=lambda slot: (-held[slot], slot), default=None)


def move_writers(group: Group, now: float, staying: Collection[Slot] | None = None) -> Update:
    """Send every stop and start that brings the tables to their wanted writers."""
    wanted = wanted_writers(group, now, staying)
    stops: dict[Slot, list[str]] = {}
    for topic, at in sorted(group.members.writers.items()):
        if isinstance(at, Owned) and _must_stop(group, topic, at.slot, wanted):
            stops.setdefault(at.slot, []).append(topic)
    starts: dict[Slot, list[str]] = {}
    for topic, slot in sorted(wanted.items()):
        if isinstance(group.members.writers.get(topic, Released()), Released):
            starts.setdefault(slot, []).append(topic)
    actions: list[Action] = []
    for slot, topics in sorted(stops.items()):
        group, sent = stop_writing(group, slot, topics, now)
        actions += sent
    for slot, topics in sorted(starts.items()):
        group, sent = start_writing(group, slot, topics, now)
        actions += sent
    return _forget_gone_topics(group), tuple(actions)


def _must_stop(group: Group, topic: str, slot: Slot, wanted: dict[str, Slot]) -> bool:
    """Whether another slot should write it, or its topic is gone and all staged data has landed.

    During a freeze a table keeps its writer, unless that is asked to end, or its node goes.
    """
    if topic in wanted:
        return wanted[topic] != slot and (not group.people.controls.frozen or group.departs(slot))
    member = group.members.get(slot)
    tables = member.tables_of(topic)
    gone = topic not in group.members.partitions.topics
    landed = bool(tables) and not any(table.pending_bytes for table in tables)
    return gone and (member.leaving or landed)


def _forget_gone_topics(group: Group) -> Group:
    """Drop the tables of topics without partitions, once they have no writer."""
    members = group.members
    gone = [topic for topic in members.writers.released if topic not in members.partitions.topics]
    if not gone:
        return group
    return replace(group, members=replace(members, writers=members.writers.without(gone)))


# --- commands, and the ownership states that change with each command sent ----------------------


def stop_reading(
    group: Group, slot: Slot, partitions: Iterable[TopicPartition], now: float
) -> Update:
    """Command a slot to stop reading these."""
    group, at = _stopping(group, slot, now)
    return _send_reading(group, dict.fromkeys(partitions, at))


def start_reading(
    group: Group, slot: Slot, offsets: Mapping[TopicPartition, int | None], now: float
) -> Update:
    """Command a slot to read these from these offsets; partitions it already reads seek."""
    group, at = _starting(group, slot, now)
    pending = {p: replace(at, offset=offset) for p, offset in offsets.items()}
    return _send_reading(group, pending)


def stop_writing(group: Group, slot: Slot, topics: Iterable[str], now: float) -> Update:
    """Command a slot to stop writing these topics' tables."""
    group, at = _stopping(group, slot, now)
    return _send_writing(group, dict.fromkeys(topics, at))


def start_writing(group: Group, slot: Slot, topics: Iterable[str], now: float) -> Update:
    """Command a slot to become the writer of these topics' tables."""
    group, at = _starting(group, slot, now)
    return _send_writing(group, dict.fromkeys(topics, at))


def stop_unexpected(
    group: Group, slot: Slot, partitions: Iterable[TopicPartition], topics: Iterable[str]
) -> Update:
    """Command a slot to stop what it does not own: ownership states stay as they are."""
    actions: list[Action] = []
    if unexpected := sorted(partitions):
        group, at = _stopping(group, slot, 0.0)
        actions.append(Send(slot, _reading_message(group, dict.fromkeys(unexpected, at))))
    if tables := sorted(topics):
        group, at = _stopping(group, slot, 0.0)
        actions.append(Send(slot, _writing_message(group, dict.fromkeys(tables, at))))
    return group, tuple(actions)


def resend(group: Group, now: float) -> Update:
    """Send commands again, with the same revision, whose replies are overdue.

    A repeated command names only the keys that still await a reply. Consumers reply to it again and
    change nothing, so this is safe at any time.
    """
    sent_before = now - group.settings.command_retry_s
    actions: list[Action] = []
    for _, partitions in sorted(unacknowledged(group.members.partitions, sent_before).items()):
        group, again = _send_reading(group, _renewed(partitions, now))
        actions += again
    for _, tables in sorted(unacknowledged(group.members.writers, sent_before).items()):
        group, again = _send_writing(group, _renewed(tables, now))
        actions += again
    return group, tuple(actions)


def _renewed(pending: Mapping[K, PendingCommand], now: float) -> dict[K, PendingCommand]:
    return {key: replace(at, sent_at=now) for key, at in pending.items()}


def _stopping(group: Group, slot: Slot, now: float) -> tuple[Group, Stopping]:
    group, revision = group.next_revision()
    return group, Stopping(slot, group.members.get(slot).epoch or 0, revision, now)


def _starting(group: Group, slot: Slot, now: float) -> tuple[Group, Starting]:
    group, revision = group.next_revision()
    return group, Starting(slot, group.members.get(slot).epoch or 0, revision, now)


def _send_reading(group: Group, pending: Mapping[TopicPartition, PendingCommand]) -> Update:
    """Record and send the commands of one slot and revision."""
    command = Send(next(iter(pending.values())).slot, _reading_message(group, pending))
    return replace(group, members=group.members.with_owners(pending)), (command,)


def _send_writing(group: Group, pending: Mapping[str, PendingCommand]) -> Update:
    command = Send(next(iter(pending.values())).slot, _writing_message(group, pending))
    return replace(group, members=group.members.with_owners(writers=pending)), (command,)


def _reading_message(
    group: Group, pending: Mapping[TopicPartition, PendingCommand]
) -> StopReading | StartReading:
    at, term = next(iter(pending.values())), group.term or 0
    if isinstance(at, Stopping):
        partitions = tuple(sorted(pending))
        return StopReading(term=term, revision=at.revision, epoch=at.epoch, partitions=partitions)
    offsets = {p: o.offset for p, o in sorted(pending.items()) if isinstance(o, Starting)}
    return StartReading(term=term, revision=at.revision, epoch=at.epoch, offsets=offsets)


def _writing_message(
    group: Group, pending: Mapping[str, PendingCommand]
) -> StopWriting | StartWriting:
    at, tables = next(iter(pending.values())), tuple(sorted(pending))
    kind = StopWriting if isinstance(at, Stopping) else StartWriting
    return kind(term=group.term or 0, revision=at.revision, epoch=at.epoch, tables=tables)
