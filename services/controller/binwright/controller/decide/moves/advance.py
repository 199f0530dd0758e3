"""The commands that bring partitions from their present owners to their targets."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from binwright.controller.decide.events import Action
from binwright.controller.decide.group import Group, forget_gone
from binwright.controller.decide.moves.commands import start_reading, stop_reading
from binwright.controller.decide.ownership import Owned, Released, Starting, State
from binwright.packing.spread import spread
from binwright.protocol.model import Assignment, Slot, TopicPartition


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
    misplaced = (p for p, at in group.partitions.items() if _is_misplaced(at, target.get(p)))
    return Goal(target, frozenset(target.values()), frozenset(misplaced))


def add_misplaced(group: Group, goal: Goal, partitions: Iterable[TopicPartition]) -> Goal:
    """Return the goal after these started: some at interim owners, until the new one is ready."""
    added = _misplaced(group, goal.target, partitions)
    return replace(goal, misplaced=goal.misplaced | added) if added else goal


def _misplaced(
    group: Group, target: Assignment, partitions: Iterable[TopicPartition]
) -> frozenset[TopicPartition]:
    states = ((p, group.partitions.get(p, Released())) for p in partitions)
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
    ready, gone = frozenset(group.usable()), group.gone_partitions()
    moving = [p for p in misplaced if target[p] in ready and not group.gone(p)]
    stops: dict[Slot, list[TopicPartition]] = {}
    for partition in (*moving, *gone):
        at = group.partitions[partition]
        if isinstance(
            at, Owned | Starting
        ):  # a start of a gone partition may never be acknowledged
            stops.setdefault(at.slot, []).append(partition)
    return stops


def _starts(
    group: Group, target: Assignment, now: float
) -> dict[Slot, dict[TopicPartition, int | None]]:
    unread = group.unread()
    ready = frozenset(group.usable())
    owners = {p: target[p] for p in unread if target.get(p) in ready}
    waiting = [p for p in unread if p not in owners and not _soon_ready(group, target.get(p), now)]
    starts: dict[Slot, dict[TopicPartition, int | None]] = {}
    for partition, slot in sorted((owners | _interim_owners(group, target, waiting)).items()):
        at = group.partitions[partition]
        offset = at.offset if isinstance(at, Released) else None
        starts.setdefault(slot, {})[partition] = offset
    return starts


def _soon_ready(group: Group, slot: Slot | None, now: float) -> bool:
    """Whether a new owner will probably be ready soon: its Hello is recent."""
    if slot is None or (member := group.member(slot)).epoch is None or member.leaving:
        return False
    return now - member.arrived_at <= group.config.consumer_timeout_s


def _interim_owners(
    group: Group, target: Assignment, waiting: list[TopicPartition]
) -> dict[TopicPartition, Slot]:
    """Give partitions whose new owner is not ready to consumers that are, for the meantime.

    Ready consumers of the target come first, then those about to be retired; with none, the
    partitions wait for the first that becomes ready.
    """
    ready = group.usable()
    if not waiting or not ready:
        return {}
    staying = frozenset(target.values())
    owners = [slot for slot in ready if slot in staying] or ready
    assigned = spread(group.rates, group.assignment(), waiting, owners)
    return {p: assigned[p] for p in waiting}


def goal_reached(group: Group, goal: Goal) -> bool:
    """Whether every partition is at its target; partitions newer than the plan have none."""
    waiting = goal.misplaced or group.partitions.pending or group.partitions.released
    return not waiting and not group.gone_partitions()
