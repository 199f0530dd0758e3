"""Group Management's hands: from places to the commands that bring them to their targets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from binwright.core.events import Action, Tell
from binwright.core.group import (
    Group,
    Held,
    Parked,
    Place,
    Starting,
    Stopping,
    fences,
    forget,
    place_all,
)
from binwright.core.messages import Fence, StartConsuming, StopConsuming
from binwright.core.model import Assignment, Slot, TopicPartition


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one round of commands will say."""

    stops: Mapping[Slot, list[TopicPartition]]
    starts: Mapping["_Kind", dict[TopicPartition, int | None]]


class _Kind(NamedTuple):
    """What one start can carry together."""

    heir: Slot
    fences: tuple[Fence, ...] = ()
    ahead: bool = False


def _wanted(group: Group, target: Assignment) -> _Wanted:
    stops: dict[Slot, list[TopicPartition]] = {}
    starts: dict[_Kind, dict[TopicPartition, int | None]] = {}
    for partition, place in sorted(group.places.items()):
        heir = target.get(partition)
        # A partition never waits for a pod, nor for a cold session: no stop before the heir is
        # ready. What has no heir has left the group.
        if heir is not None and not group.member(heir).usable:
            continue
        match place.at:
            case Held(slot=slot) if slot != heir and not place.tails:
                stops.setdefault(slot, []).append(partition)
            case Starting(slot=slot) if heir is None:  # of what is gone: it may never be answered
                stops.setdefault(slot, []).append(partition)
            case _ if place.free and heir is not None:
                raised = fences(group, place.owed)
                if _may_start(place, heir, raised):
                    known = place.at.offset if isinstance(place.at, Parked) and not raised else None
                    kind = _Kind(heir, raised, bool(place.tails))
                    starts.setdefault(kind, {})[partition] = known
            case _:
                pass
    return _Wanted(stops, starts)


def _may_start(place: Place, heir: Slot, raised: tuple[Fence, ...]) -> bool:
    """Whether an heir can do anything before the last owner's write is settled: read ahead of it.

    Only from where that write ends; and who is to resolve must wait until it is in the table.
    """
    if not place.tails:
        return True
    writers = {tail.slot for tail in place.tails}
    return isinstance(place.at, Parked) and not raised and heir not in writers


def _stop(
    group: Group, slot: Slot, partitions: list[TopicPartition], now: float
) -> tuple[Group, Action]:
    group, revision = group.next_revision()
    epoch = group.member(slot).epoch
    changed = {
        p: replace(group.places[p], at=Stopping({slot: epoch or 0}, revision, now))
        for p in partitions
    }
    group = place_all(group, changed)
    return group, Tell(slot, stop_command(group, slot, changed))


def stop_command(group: Group, slot: Slot, places: Mapping[TopicPartition, Place]) -> StopConsuming:
    """Return the stop that asks `slot` for these stopping partitions of one revision."""
    at = next(iter(places.values())).at
    if not isinstance(at, Stopping) or group.term is None:
        raise TypeError("only what is stopping can be stopped")
    return StopConsuming(
        term=group.term,
        revision=at.revision,
        epoch=at.owners[slot],
        partitions=tuple(sorted(places)),
    )


def _start(
    group: Group, kind: _Kind, offsets: Mapping[TopicPartition, int | None], now: float
) -> tuple[Group, Action]:
    group, revision = group.next_revision()
    epoch = group.member(kind.heir).epoch or 0
    command = StartConsuming(
        term=group.term or 0,
        revision=revision,
        epoch=epoch,
        offsets=offsets,
        fences=kind.fences,
        ahead=kind.ahead,
    )
    at = Starting(kind.heir, epoch, command, now)
    changed = {p: replace(group.places[p], at=at) for p in offsets}
    return place_all(group, changed), Tell(kind.heir, command)


def release(
    group: Group, heirs: Mapping[Slot, Mapping[TopicPartition, int]], now: float
) -> tuple[Group, tuple[Action, ...]]:
    """Tell those who read ahead that they may land."""
    actions: list[Action] = []
    for heir, offsets in heirs.items():
        group, action = _start(group, _Kind(heir), offsets, now)
        actions.append(action)
    return group, tuple(actions)


def recall(
    group: Group, readers: Mapping[Slot, list[TopicPartition]], now: float
) -> tuple[Group, tuple[Action, ...]]:
    """Stop those who read ahead of a write that nobody will vouch for any more."""
    actions: list[Action] = []
    for slot, partitions in readers.items():
        group, action = _stop(group, slot, partitions, now)
        actions.append(action)
    return group, tuple(actions)


def advance(group: Group, target: Assignment, now: float) -> tuple[Group, tuple[Action, ...]]:
    """Send every stop and start that may go out now.

    Moves are pipelined partition by partition: nothing here waits for all of anything. What left
    the group (no target) and is settled is forgotten.
    """
    away = [p for p, at in group.places.items() if at.idle and p not in target]
    group = forget(group, away)
    wanted = _wanted(group, target)
    actions: list[Action] = []
    for slot, partitions in wanted.stops.items():
        group, action = _stop(group, slot, partitions, now)
        actions.append(action)
    for kind, offsets in wanted.starts.items():
        group, action = _start(group, kind, offsets, now)
        actions.append(action)
    return group, tuple(actions)


def repeat(group: Group, now: float) -> tuple[Group, tuple[Action, ...]]:
    """Say again, with the same revision, what has not been answered for too long.

    A repeated command is answered again and changes nothing, so this is safe at any time.
    """
    changed: dict[TopicPartition, Place] = {}
    starting: dict[tuple[Slot, int], StartConsuming] = {}
    stopping: dict[tuple[Slot, int], dict[TopicPartition, Place]] = {}
    for partition, place in sorted(group.places.items()):
        at = place.at
        if not isinstance(at, Stopping | Starting) or now - at.sent_at < group.rules.repeat_s:
            continue
        changed[partition] = replace(place, at=replace(at, sent_at=now))
        if isinstance(at, Starting):
            # Only what is still awaited: the others may have moved on since.
            said = starting.get((at.slot, at.command.revision), replace(at.command, offsets={}))
            offsets = {**said.offsets, partition: at.command.offsets[partition]}
            starting[at.slot, at.command.revision] = replace(said, offsets=offsets)
        else:
            for slot in at.owners:
                stopping.setdefault((slot, at.revision), {})[partition] = place
    again = {key: Tell(key[0], command) for key, command in starting.items()}
    for (slot, revision), places in stopping.items():
        again[slot, revision] = Tell(slot, stop_command(group, slot, places))
    return place_all(group, changed), tuple(again[key] for key in sorted(again))


def arrived(group: Group, target: Assignment) -> bool:
    """Whether every partition is where it should be, and nothing else is anywhere."""
    return group.places.keys() == target.keys() and all(
        isinstance(place.at, Held) and place.at.slot == target[p] and not place.tails
        for p, place in group.places.items()
    )
