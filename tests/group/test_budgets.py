"""Moves keep within the budgets of an hour and of a moment."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.builders import (
    CONFIG,
    alive,
    changed,
    group,
    owned,
    reconfigured,
    released,
    stopping,
    with_member,
)

from binwright.group.budgets import (
    affordable,
    count_moves,
    movable_now,
    moves_left,
    uncount_moves,
)
from binwright.group.controls import Controls
from binwright.group.group import Group
from binwright.packing.rules import Rules
from binwright.protocol.model import Slot, TopicPartition

P = [TopicPartition("orders", n) for n in range(6)]
A, B, C, D = map(Slot, range(4))
MINUTE_MS, HOUR_MS = 60_000, 3_600_000


def at(*slots: int) -> dict[TopicPartition, Slot]:
    return {p: Slot(slot) for p, slot in zip(P, slots, strict=False)}


def read_by(owners: Mapping[TopicPartition, Slot], rate: float = 40.0, **config: Any) -> Group:
    return group(
        {slot: alive(slot + 1) for slot in range(4)},  # type: ignore[misc]
        {p: owned(slot, slot + 1) for p, slot in owners.items()},
        rates=dict.fromkeys(owners, rate),
        config=reconfigured(CONFIG, **config),
    )


def moves(
    before: Mapping[TopicPartition, Slot], after: Mapping[TopicPartition, Slot]
) -> dict[TopicPartition, tuple[Slot, Slot]]:
    return {p: (before[p], after[p]) for p in before if before[p] != after[p]}


def test_moves_count_for_an_hour() -> None:
    empty = read_by(at(0), moves_per_hour=5)
    assert moves_left(empty) == 5
    assert moves_left(read_by(at(0))) is None
    three = count_moves(replace(empty.people, wall_ms=MINUTE_MS), 3)
    assert (moves_left(replace(empty, people=three)), three.moved) == (2, ((1, 3),))
    later = count_moves(replace(three, wall_ms=2 * MINUTE_MS), 9)
    used = replace(empty, people=later)
    assert moves_left(used) == 0
    assert moves_left(replace(used, people=uncount_moves(later, P))) == 0
    assert uncount_moves(later, [*P, P[0], P[1], P[2], P[3]]).moved == ((1, 2), (2, 0))
    assert moves_left(changed(used, wall_ms=HOUR_MS + 3 * MINUTE_MS)) == 5
    assert moves_left(changed(used, moved=((1_000_000, 9),))) == 5, "not of this hour"


def target_of(
    seen: Group, after: Mapping[TopicPartition, Slot], *, triggered: bool = True
) -> dict[TopicPartition, Slot]:
    return affordable(seen, after, moves(seen.members.assignment(), after), triggered=triggered)


def test_a_plan_within_the_budget_is_left_as_it_is() -> None:
    for limit in (None, 2):
        assert target_of(read_by(at(0, 0), moves_per_hour=limit), at(1, 2)) == at(1, 2)


def test_what_an_order_asks_for_comes_first() -> None:
    seen = read_by(at(0, 0, 1), moves_per_hour=1)
    drained = changed(seen, controls=Controls(Rules(drained=frozenset({B}))))
    assert target_of(drained, at(2, 0, 2)) == at(0, 0, 2)


def test_a_consumer_above_its_limit_is_unloaded_before_others() -> None:
    seen = read_by(at(0, 0, 0, 0, 1, 1), moves_per_hour=1)
    assert target_of(seen, at(2, 0, 0, 0, 1, 3)) == at(2, 0, 0, 0, 1, 1)


def test_what_would_overload_its_new_consumer_without_the_other_moves_is_left_out() -> None:
    seen = read_by(at(0, 0, 0, 0, 1, 1), rate=50.0, moves_per_hour=2)
    assert target_of(seen, at(1, 1, 0, 0, 2, 2)) == at(0, 0, 0, 0, 2, 2)


def test_a_consumer_is_emptied_whole_or_not_at_all() -> None:
    seen = read_by(at(0, 1, 1, 2), rate=20.0, moves_per_hour=1)
    assert target_of(seen, at(0, 0, 0, 0), triggered=False) == at(0, 1, 1, 0)
    fewer = changed(seen, moved=((0, 1),))
    assert target_of(fewer, at(0, 0, 0, 0), triggered=False) == at(0, 1, 1, 2)


def test_other_moves_come_last_and_only_if_the_plan_is_necessary() -> None:
    seen = read_by(at(0, 0, 0), rate=20.0, moves_per_hour=1)
    assert target_of(seen, at(0, 1, 2)) == at(0, 1, 0)
    assert target_of(seen, at(0, 1, 2), triggered=False) == at(0, 0, 0)


def test_so_many_move_at_a_time() -> None:
    assert movable_now(read_by(at(0, 0, 0)), P[:3]) == P[:3]
    seen = read_by(at(0, 0, 0), moves_at_a_time=2)
    assert movable_now(seen, P[:3]) == P[:2]
    moving = changed(seen, partitions=seen.members.partitions.changed({P[0]: stopping(A, 1)}))
    assert movable_now(moving, P[1:3]) == [P[1]]
    unread = changed(moving, partitions=moving.members.partitions.changed({P[1]: released()}))
    assert movable_now(unread, [P[2]]) == []


def test_so_many_bytes_move_at_a_time_and_one_partition_in_any_case() -> None:
    assert movable_now(read_by(at(0, 0, 0), moving_bytes_per_s=80.0), P[:3]) == P[:2]
    assert movable_now(read_by(at(0, 0, 0), moving_bytes_per_s=1.0), P[:3]) == P[:1]


def test_what_a_consumer_reads_that_is_asked_to_end_does_not_wait() -> None:
    seen = read_by(at(0, 1, 1, 1), moves_at_a_time=1)
    leaving = with_member(seen, B, alive(2, leaving=True))
    assert movable_now(leaving, P[:4]) == [P[1], P[2], P[3]]
    gone = changed(seen, partitions=seen.members.partitions.changed({P[0]: released()}))
    assert movable_now(replace(gone, config=CONFIG), P[:2]) == P[:2]
