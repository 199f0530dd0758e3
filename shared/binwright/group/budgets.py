"""Keeps moves within the budgets of the settings: per hour, and at a time.

Only moves between living consumers count: a partition without a reader gets one at once. What a
consumer reads that is asked to end, or whose node goes, moves at once, too, and counts.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import fsum

from binwright.group.group import Group
from binwright.group.people import People, Proposal
from binwright.group.zones import near_moves, zones
from binwright.protocol.model import Assignment, Slot, TopicPartition

MINUTE_MS, HOUR_MIN = 60_000, 60

Moves = Mapping[TopicPartition, tuple[Slot, Slot]]
"""Partition -> from, to."""


# --- per hour ------------------------------------------------------------------------------------


def count_moves(people: People, number: int) -> People:
    """Count the moves of a plan."""
    minute, counts = people.wall_ms // MINUTE_MS, dict(_recent(people))
    counts[minute] = counts.get(minute, 0) + number
    return replace(people, moved=tuple(sorted(counts.items())))


def uncount_moves(people: People, given_up: Collection[TopicPartition]) -> People:
    """Count no more what the last plans were to move, and was given up before it began."""
    left, counts = len(given_up), dict(people.moved)
    for minute in sorted(counts, reverse=True):
        taken = min(left, counts[minute])
        counts[minute] -= taken
        left -= taken
    return replace(people, moved=tuple(sorted(counts.items())))


def moves_left(group: Group) -> int | None:
    """Return how many more moves a plan may have; None: any number."""
    if (most := group.settings.moves_per_hour) is None:
        return None
    return max(0, most - sum(moves for _, moves in _recent(group.people)))


def affords(group: Group, proposal: Proposal) -> bool:
    """Whether a proposed plan is within the budget of the hour."""
    left = moves_left(group)
    return left is None or len(proposal.plan.moves) <= left


def _recent(people: People) -> list[tuple[int, int]]:
    """Return the counts of the last hour; clocks of controllers may differ by as much."""
    minute = people.wall_ms // MINUTE_MS
    return [(at, moves) for at, moves in people.moved if abs(minute - at) < HOUR_MIN]


def affordable(
    group: Group, target: Assignment, moves: Moves, *, triggered: bool
) -> dict[TopicPartition, Slot]:
    """Return `target` with the moves left out that the budget of an hour does not allow.

    Those that orders ask for come first, then those that unload consumers above their limit, then
    consumers that the target empties, each of them whole: else its moves would save nothing; then
    those after which a partition no longer crosses zones. All others come last, if something makes
    the plan necessary.
    """
    left = moves_left(group)
    if left is None or len(moves) <= left:
        return dict(target)
    accepted = _Accepted(group, moves, left)
    rules = group.people.controls.rules
    by_source: defaultdict[Slot, list[TopicPartition]] = defaultdict(list)
    for partition, (old, _) in sorted(moves.items(), key=lambda m: (-group.need(m[0]), m[0])):
        if not rules.allow(partition, old, old):
            accepted.take((partition,), whatever=True)
        else:
            by_source[old].append(partition)
    for slot, partitions in sorted(by_source.items()):
        for partition in partitions:
            if accepted.loads.get(slot, 0.0) > group.config.limits.for_slot(slot):
                accepted.take((partition,))
    staying = set(target.values())
    emptied = [(len(own), slot) for slot, own in by_source.items() if slot not in staying]
    for _, slot in sorted(emptied):
        accepted.take(by_source[slot])
    near = sorted(near_moves(zones(group), moves), key=group.need, reverse=True)
    for partition in (*near, *(sorted(moves) if triggered else ())):
        accepted.take((partition,))
    left_out = {p: old for p, (old, _) in moves.items() if p not in accepted.chosen}
    return {**target, **left_out}


class _Accepted:
    """The moves that are accepted so far, and the loads that they lead to."""

    def __init__(self, group: Group, moves: Moves, left: int) -> None:
        self.group, self.moves, self.left = group, moves, left
        self.loads: dict[Slot, float] = dict(group.loads())
        self.chosen: set[TopicPartition] = set()

    def take(self, partitions: Iterable[TopicPartition], *, whatever: bool = False) -> None:
        """Accept these moves together, if the budget and the new owners have room for all."""
        wanted = [p for p in partitions if p not in self.chosen]
        loads = dict(self.loads)
        for partition in wanted:
            old, new = self.moves[partition]
            need = self.group.need(partition)
            loads[old] = loads.get(old, 0.0) - need
            loads[new] = loads.get(new, 0.0) + need
        fits = all(
            loads[new] <= self.group.config.limits.for_slot(new)
            for new in {self.moves[p][1] for p in wanted}
        )
        if len(wanted) <= self.left and (fits or whatever):
            self.loads, self.left = loads, self.left - len(wanted)
            self.chosen.update(wanted)


# --- at a time -----------------------------------------------------------------------------------


def movable_now(group: Group, misplaced: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return which of these may begin to move now, beside those that are on their way.

    One may move in any case, however large it is, and so may what a consumer reads that is to end.
    """
    most, most_bytes = group.settings.moves_at_a_time, group.settings.moving_bytes_per_s
    ordered = sorted(misplaced)
    if most is None and most_bytes is None:
        return ordered
    urgent = [p for p in ordered if _reader_departs(group, p)]
    moving = [*group.members.partitions.pending, *group.unread(), *urgent]
    number, rate = len(moving), fsum(map(group.need, moving))
    begun = list(urgent)
    for partition in sorted(set(ordered).difference(urgent)):
        rate += group.need(partition)
        number += 1
        too_many = most is not None and number > most
        if too_many or (most_bytes is not None and rate > most_bytes and number > 1):
            break
        begun.append(partition)
    return begun


def _reader_departs(group: Group, partition: TopicPartition) -> bool:
    slot = group.members.partitions[partition].slot
    return slot is not None and group.departs(slot)
