"""From where partitions are to the commands that bring them to their targets."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from binwright.core.commands import start_reading, stop_reading
from binwright.core.events import Action
from binwright.core.group import Group, forget_gone
from binwright.core.model import Assignment, Slot, TopicPartition
from binwright.core.ownership import Owned, Released, Starting, State
from binwright.core.relief import spread


@dataclass(frozen=True, slots=True)
class Goal:
    """Where partitions are to go. Kept up from record to record, each costs by what it names."""

    target: Assignment
    slots: frozenset[Slot]  # of the target
    misplaced: frozenset[TopicPartition]  # read elsewhere, and no order is out


def goal(group: Group, target: Assignment) -> Goal:
    """Return the goal of bringing everything to `target`; costs by all partitions."""
    away = (p for p, at in group.partitions.items() if _is_misplaced(at, target.get(p)))
    return Goal(target, frozenset(target.values()), frozenset(away))


def started_elsewhere(group: Group, aim: Goal, partitions: Iterable[TopicPartition]) -> Goal:
    """Return the goal once these were started: some perhaps only until their new owner is ready."""
    away = _misplaced(group, aim.target, partitions)
    return replace(aim, misplaced=aim.misplaced | away) if away else aim


def _misplaced(
    group: Group, target: Assignment, partitions: Iterable[TopicPartition]
) -> frozenset[TopicPartition]:
    states = ((p, group.partitions.get(p, Released())) for p in partitions)
    return frozenset(p for p, at in states if _is_misplaced(at, target.get(p)))


def _is_misplaced(at: State, wanted: Slot | None) -> bool:
    return isinstance(at, Owned) and wanted is not None and wanted != at.slot


def advance(group: Group, aim: Goal, now: float) -> tuple[Group, Goal, tuple[Action, ...]]:
    """Send every stop and start that may go out now.

    Moves are pipelined partition by partition: nothing here waits for all of anything. What is gone
    is stopped, and forgotten once nobody reads it.
    """
    group = forget_gone(group)
    misplaced = _misplaced(group, aim.target, aim.misplaced)
    stops, starts = _stops(group, aim.target, misplaced), _starts(group, aim.target, now)
    actions: list[Action] = []
    for slot, partitions in sorted(stops.items()):
        group, sent = stop_reading(group, slot, partitions, now)
        misplaced -= frozenset(partitions)
        actions += sent
    for slot, offsets in sorted(starts.items()):
        group, sent = start_reading(group, slot, offsets, now)
        actions += sent
    return group, replace(aim, misplaced=misplaced), tuple(actions)


def _stops(
    group: Group, target: Assignment, misplaced: Iterable[TopicPartition]
) -> dict[Slot, list[TopicPartition]]:
    """Return what moves away: a partition never waits for a pod, so its new owner is ready."""
    ready, gone = frozenset(group.usable()), group.all_gone()
    away = [p for p in misplaced if target[p] in ready and not group.gone(p)]
    stops: dict[Slot, list[TopicPartition]] = {}
    for partition in (*away, *gone):
        at = group.partitions[partition]
        if isinstance(at, Owned | Starting):  # a start of what is gone may never be answered
            stops.setdefault(at.slot, []).append(partition)
    return stops


def _starts(
    group: Group, target: Assignment, now: float
) -> dict[Slot, dict[TopicPartition, int | None]]:
    free = group.unread()
    ready = frozenset(group.usable())
    owners = {p: target[p] for p in free if target.get(p) in ready}
    waiting = [p for p in free if p not in owners and not _soon(group, target.get(p), now)]
    starts: dict[Slot, dict[TopicPartition, int | None]] = {}
    for partition, slot in sorted((owners | _meanwhile(group, target, waiting)).items()):
        at = group.partitions[partition]
        offset = at.offset if isinstance(at, Released) else None
        starts.setdefault(slot, {})[partition] = offset
    return starts


def _soon(group: Group, slot: Slot | None, now: float) -> bool:
    """Whether a new owner is about to be ready: it has said Hello a moment ago."""
    if slot is None or (member := group.member(slot)).epoch is None or member.leaving:
        return False
    return now - member.arrived_at <= group.rules.consumer_timeout_s


def _meanwhile(
    group: Group, target: Assignment, waiting: list[TopicPartition]
) -> dict[TopicPartition, Slot]:
    """Give what would wait for its new owner to who is ready, to move on when that one is.

    If a consumer that stays is ready then to those, else to one that is about to be retired; if
    nobody is, to the first that becomes ready.
    """
    ready = group.usable()
    if not waiting or not ready:
        return {}
    staying = frozenset(target.values())
    placed = spread(group, group.assignment(), waiting, [s for s in ready if s in staying] or ready)
    return {p: placed[p] for p in waiting}


def arrived(group: Group, aim: Goal) -> bool:
    """Whether every partition is where it should be; of what is new no plan says where."""
    waiting = aim.misplaced or group.partitions.ordered or group.partitions.free
    return not waiting and not group.all_gone()
