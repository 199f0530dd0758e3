"""Which commands are sent, and which must not be."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.builders import (
    NOW,
    S0,
    S1,
    S2,
    TERM,
    C,
    P,
    Q,
    alive,
    changed,
    dead,
    group,
    owned,
    released,
    starting,
    stopping,
    with_member,
)
from tests.controller.decide.driver import sent

from binwright.controller.decide.events import Action
from binwright.controller.decide.moves import add_misplaced, advance, goal_for, goal_reached, resend
from binwright.group.group import Group
from binwright.group.ownership import Starting, State, Stopping
from binwright.protocol.commands import StartReading, StartWriting, StopReading, StopWriting
from binwright.protocol.model import Assignment, Slot, TopicPartition

BOTH = {S0: alive(1), S1: alive(2)}
REVISION = TERM * 2**20 + 1


def starts(actions: Iterable[Action]) -> dict[Slot, Any]:
    return {slot: c.offsets for slot, c in sent(actions) if isinstance(c, StartReading)}


def step(known: Group, target: Assignment, now: float) -> tuple[Group, tuple[Action, ...]]:
    known, _, actions = advance(known, goal_for(known, target), now)
    return known, actions


def is_done(known: Group, target: Assignment) -> bool:
    return goal_reached(known, goal_for(known, target))


# --- stops -------------------------------------------------------------------------------------


def test_a_move_begins_with_a_stop() -> None:
    known, actions = step(group(BOTH, {P: owned(S0, 1), Q: owned(S0, 1)}), {P: S0, Q: S1}, NOW)
    stop = StopReading(term=TERM, revision=REVISION, epoch=1, partitions=(Q,))
    assert sent(actions) == [(S0, stop)]
    assert known.members.partitions == {P: owned(S0, 1), Q: Stopping(S0, 1, REVISION, NOW)}


@pytest.mark.parametrize("owner", [alive(2, ready=False), alive(2, leaving=True), dead(9)])
def test_no_stop_is_sent_before_the_new_owner_is_ready(owner: Any) -> None:
    known = group({S0: alive(1), S1: owner}, {P: owned(S0, 1)})
    assert step(known, {P: S1}, NOW) == (known, ())


def test_a_gone_partition_is_stopped_once() -> None:
    known = group(BOTH, {P: stopping(S0, 1)}, counts={"orders": 0})
    assert step(known, {}, NOW) == (known, ())


def test_a_gone_partition_without_an_owner_is_forgotten() -> None:
    known, actions = step(group(BOTH, {P: released()}, counts={"orders": 0}), {}, NOW)
    assert not known.members.partitions
    assert actions == ()


def test_a_moving_partition_gets_no_other_command() -> None:
    partitions: dict[TopicPartition, State] = {
        P: stopping(S0, 1),
        Q: starting(S0, 1, 3),
        C: owned(S0, 1),
    }
    known = group(BOTH, partitions)
    assert step(known, {P: S1, Q: S1, C: S0}, NOW) == (known, ())


def test_a_partition_without_a_target_stays_with_its_owner() -> None:
    known = group(BOTH, {P: owned(S0, 1)})
    assert step(known, {}, NOW) == (known, ())
    assert is_done(known, {})


# --- starts ------------------------------------------------------------------------------------


def test_a_released_partition_starts_at_its_offset_or_without_one() -> None:
    known, actions = step(group(BOTH, {P: released(8), Q: released()}), {P: S1, Q: S1}, NOW)
    start = StartReading(term=TERM, revision=REVISION, epoch=2, offsets={P: 8, Q: None})
    assert sent(actions) == [(S1, start)]
    assert known.members.partitions == {
        P: Starting(S1, 2, REVISION, NOW, 8),
        Q: Starting(S1, 2, REVISION, NOW),
    }


def test_with_no_ready_consumer_everything_waits() -> None:
    known = group({S0: alive(1, ready=False)}, {P: released(8)})
    assert step(known, {P: S0}, NOW + 60) == (known, ())


@pytest.mark.parametrize("owner", [dead(9), alive(2, goodbye=2), None, alive(2, leaving=True)])
def test_a_partition_whose_new_owner_does_not_run_goes_to_a_ready_consumer(owner: Any) -> None:
    """B6: its new owner died, left, or is still to be created."""
    members = {S0: alive(1)} if owner is None else {S0: alive(1), S1: owner}
    _, actions = step(group(members, {P: released(8), Q: owned(S0, 1)}), {P: S1, Q: S0}, NOW)
    assert starts(actions) == {S0: {P: 8}}


def test_a_partition_waits_a_moment_for_a_new_owner_that_has_just_sent_hello() -> None:
    known = group({S0: alive(1), S1: alive(2, ready=False)}, {P: released(8)})
    assert step(known, {P: S1}, NOW + 10) == (known, ())
    assert starts(step(known, {P: S1}, NOW + 11)[1]) == {S0: {P: 8}}


def test_an_interim_owner_is_the_least_loaded_slot_of_the_target() -> None:
    members = {S0: alive(1), S1: alive(2), S2: alive(3)}
    partitions: dict[TopicPartition, State] = {P: released(8), Q: owned(S0, 1), C: owned(S1, 2)}
    known = group(members, partitions, rates={P: 1.0, Q: 5.0, C: 3.0})
    target = {P: Slot(3), Q: S0, C: S1}
    assert starts(step(known, target, NOW)[1]) == {S1: {P: 8}}, "slot 2 owns nothing and is retired"
    alone = group({S2: alive(3)}, {P: released(8)})
    assert starts(step(alone, target, NOW)[1]) == {S2: {P: 8}}, "no slot of the target is ready"


def test_a_partition_newer_than_the_plan_is_assigned_at_once() -> None:
    known = group(BOTH, {P: owned(S0, 1), Q: released()}, rates={P: 9.0})
    assert starts(step(known, {P: S0}, NOW)[1]) == {S0: {Q: None}}


# --- sent again --------------------------------------------------------------------------------


def test_an_unacknowledged_command_is_sent_again_with_its_revision() -> None:
    partitions: dict[TopicPartition, State] = {
        P: stopping(S0, 1),
        Q: starting(S1, 2, 3),
        C: starting(S1, 2),
    }
    writers: dict[str, State] = {
        "orders": stopping(S0, 1, 8),
        "clicks": starting(S1, 2, revision=9),
    }
    known, actions = resend(group(BOTH, partitions, writers), NOW + 10)
    head: dict[str, Any] = {"term": TERM, "revision": 7}
    assert sent(actions) == [
        (S0, StopReading(**head, epoch=1, partitions=(P,))),
        (S1, StartReading(**head, epoch=2, offsets={Q: 3, C: None})),
        (S0, StopWriting(term=TERM, revision=8, epoch=1, tables=("orders",))),
        (S1, StartWriting(term=TERM, revision=9, epoch=2, tables=("clicks",))),
    ]
    assert resend(known, NOW + 19) == (known, ())
    assert len(resend(known, NOW + 20)[1]) == 4


@pytest.mark.parametrize("now", [owned(S1, 2), owned(S0, 1), stopping(S1, 2, 9), released()])
def test_a_repeated_command_omits_acknowledged_partitions(now: Any) -> None:
    """† P was started by the same command as Q, and acknowledged."""
    _, actions = resend(group(BOTH, {P: now, Q: starting(S1, 2, 4)}), NOW + 10)
    assert starts(actions) == {S1: {Q: 4}}


# --- goals -------------------------------------------------------------------------------------


def test_a_goal_is_reached_when_every_partition_is_at_its_target() -> None:
    known = group(BOTH, {P: owned(S0, 1), Q: owned(S1, 2)})
    assert is_done(known, {P: S0, Q: S1})
    assert not is_done(known, {P: S0, Q: S0})
    assert not is_done(group(BOTH, {P: stopping(S0, 1)}), {P: S0})
    assert not is_done(group(BOTH, {P: released()}), {P: S0})
    assert not is_done(group(BOTH, {P: owned(S0, 1)}, counts={"orders": 0}), {})


def test_a_partition_moves_from_its_interim_owner_once_the_new_one_is_ready() -> None:
    members = {S0: alive(1), S1: dead(2)}
    known, goal, _ = advance(
        group(members, {P: released(8)}), goal_for(group(members), {P: S1}), NOW
    )
    known = changed(known, partitions=known.members.partitions.changed({P: owned(S0, 1)}))
    goal = add_misplaced(known, goal, [P])
    assert not goal_reached(known, goal)
    assert advance(known, goal, NOW)[1:] == (goal, ())
    ready = with_member(known, S1, alive(3))
    after, goal, actions = advance(ready, goal, NOW)
    assert [slot for slot, _ in sent(actions)] == [S0]
    assert not goal.misplaced
    assert not goal_reached(after, goal)


def test_a_start_at_the_target_does_not_change_the_goal() -> None:
    known = group(BOTH, {P: owned(S0, 1), Q: starting(S1, 2)})
    goal = goal_for(known, {P: S0, Q: S0})
    assert add_misplaced(known, goal, [P, Q, C]) is goal
