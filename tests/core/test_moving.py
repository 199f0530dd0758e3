"""Which commands go out, and which must not."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from binwright.core.commands import repeat
from binwright.core.events import Action, Tell
from binwright.core.group import Group
from binwright.core.messages import (
    Command,
    StartReading,
    StartWriting,
    StopReading,
    StopWriting,
)
from binwright.core.model import Assignment, Slot, TopicPartition
from binwright.core.moving import advance, arrived, goal, started_elsewhere
from binwright.core.ownership import Starting, State, Stopping

from .builders import (
    NOW,
    S0,
    S1,
    S2,
    TERM,
    C,
    P,
    Q,
    alive,
    dead,
    free,
    group,
    owned,
    starting,
    stopping,
)

BOTH = {S0: alive(1), S1: alive(2)}
REVISION = TERM * 2**20 + 1


def told(actions: Iterable[Action]) -> list[tuple[Slot, Command]]:
    return [(a.slot, a.message) for a in actions if isinstance(a, Tell)]


def starts(actions: Iterable[Action]) -> dict[Slot, Any]:
    return {slot: c.offsets for slot, c in told(actions) if isinstance(c, StartReading)}


def step(known: Group, target: Assignment, now: float) -> tuple[Group, tuple[Action, ...]]:
    known, _, actions = advance(known, goal(known, target), now)
    return known, actions


def is_done(known: Group, target: Assignment) -> bool:
    return arrived(known, goal(known, target))


# --- stops -------------------------------------------------------------------------------------


def test_a_move_begins_with_a_stop() -> None:
    known, actions = step(group(BOTH, {P: owned(S0, 1), Q: owned(S0, 1)}), {P: S0, Q: S1}, NOW)
    stop = StopReading(term=TERM, revision=REVISION, epoch=1, partitions=(Q,))
    assert told(actions) == [(S0, stop)]
    assert known.partitions == {P: owned(S0, 1), Q: Stopping(S0, 1, REVISION, NOW)}


@pytest.mark.parametrize("owner", [alive(2, ready=False), alive(2, leaving=True), dead(9)])
def test_no_stop_goes_out_before_the_new_owner_is_ready(owner: Any) -> None:
    known = group({S0: alive(1), S1: owner}, {P: owned(S0, 1)})
    assert step(known, {P: S1}, NOW) == (known, ())


@pytest.mark.parametrize("at", [owned(S0, 1), starting(S0, 1)])
def test_what_is_gone_is_stopped(at: Any) -> None:
    """A start of it might never be answered, nor the plan ever end."""
    known, actions = step(group(BOTH, {P: at}, counts={"orders": 0}), {}, NOW)
    ((slot, stop),) = told(actions)
    assert isinstance(stop, StopReading)
    assert (slot, stop.epoch, stop.partitions) == (S0, 1, (P,))
    assert known.partitions == {P: Stopping(S0, 1, stop.revision, NOW)}


def test_what_is_gone_is_stopped_once() -> None:
    known = group(BOTH, {P: stopping(S0, 1)}, counts={"orders": 0})
    assert step(known, {}, NOW) == (known, ())


def test_what_is_gone_and_released_is_forgotten() -> None:
    known, actions = step(group(BOTH, {P: free()}, counts={"orders": 0}), {}, NOW)
    assert not known.partitions
    assert actions == ()


def test_what_is_on_its_way_is_left_alone() -> None:
    partitions: dict[TopicPartition, State] = {
        P: stopping(S0, 1),
        Q: starting(S0, 1, 3),
        C: owned(S0, 1),
    }
    known = group(BOTH, partitions)
    assert step(known, {P: S1, Q: S1, C: S0}, NOW) == (known, ())


def test_what_a_plan_does_not_know_stays_where_it_is() -> None:
    known = group(BOTH, {P: owned(S0, 1)})
    assert step(known, {}, NOW) == (known, ())
    assert is_done(known, {})


# --- starts ------------------------------------------------------------------------------------


def test_what_is_released_starts_at_its_offset_or_without_one() -> None:
    known, actions = step(group(BOTH, {P: free(8), Q: free()}), {P: S1, Q: S1}, NOW)
    start = StartReading(term=TERM, revision=REVISION, epoch=2, offsets={P: 8, Q: None})
    assert told(actions) == [(S1, start)]
    assert known.partitions == {
        P: Starting(S1, 2, REVISION, NOW, 8),
        Q: Starting(S1, 2, REVISION, NOW),
    }


def test_while_nobody_is_ready_everything_waits() -> None:
    known = group({S0: alive(1, ready=False)}, {P: free(8)})
    assert step(known, {P: S0}, NOW + 60) == (known, ())


@pytest.mark.parametrize("owner", [dead(9), alive(2, goodbye=2), None, alive(2, leaving=True)])
def test_what_waits_for_nobody_goes_to_who_is_ready_at_once(owner: Any) -> None:
    """B6: its new owner died, left, or is still to be created."""
    members = {S0: alive(1)} if owner is None else {S0: alive(1), S1: owner}
    _, actions = step(group(members, {P: free(8), Q: owned(S0, 1)}), {P: S1, Q: S0}, NOW)
    assert starts(actions) == {S0: {P: 8}}


def test_a_new_owner_that_has_just_said_hello_is_waited_for_a_moment() -> None:
    known = group({S0: alive(1), S1: alive(2, ready=False)}, {P: free(8)})
    assert step(known, {P: S1}, NOW + 10) == (known, ())
    assert starts(step(known, {P: S1}, NOW + 11)[1]) == {S0: {P: 8}}


def test_what_cannot_wait_goes_to_the_least_loaded_that_stays() -> None:
    members = {S0: alive(1), S1: alive(2), S2: alive(3)}
    partitions: dict[TopicPartition, State] = {P: free(8), Q: owned(S0, 1), C: owned(S1, 2)}
    known = group(members, partitions, rates={P: 1.0, Q: 5.0, C: 3.0})
    target = {P: Slot(3), Q: S0, C: S1}
    assert starts(step(known, target, NOW)[1]) == {S1: {P: 8}}, "slot 2 holds nothing: it goes"
    alone = group({S2: alive(3)}, {P: free(8)})
    assert starts(step(alone, target, NOW)[1]) == {S2: {P: 8}}, "nobody that stays is ready"


def test_what_is_new_since_the_plan_does_not_wait_for_the_next() -> None:
    known = group(BOTH, {P: owned(S0, 1), Q: free()}, rates={P: 9.0})
    assert starts(step(known, {P: S0}, NOW)[1]) == {S0: {Q: None}}


# --- sent again --------------------------------------------------------------------------------


def test_an_unanswered_order_is_sent_again_with_its_revision() -> None:
    partitions: dict[TopicPartition, State] = {
        P: stopping(S0, 1),
        Q: starting(S1, 2, 3),
        C: starting(S1, 2),
    }
    writers: dict[str, State] = {
        "orders": stopping(S0, 1, 8),
        "clicks": starting(S1, 2, revision=9),
    }
    known, actions = repeat(group(BOTH, partitions, writers), NOW + 10)
    head: dict[str, Any] = {"term": TERM, "revision": 7}
    assert told(actions) == [
        (S0, StopReading(**head, epoch=1, partitions=(P,))),
        (S1, StartReading(**head, epoch=2, offsets={Q: 3, C: None})),
        (S0, StopWriting(term=TERM, revision=8, epoch=1, tables=("orders",))),
        (S1, StartWriting(term=TERM, revision=9, epoch=2, tables=("clicks",))),
    ]
    assert repeat(known, NOW + 19) == (known, ())
    assert len(repeat(known, NOW + 20)[1]) == 4


@pytest.mark.parametrize("now", [owned(S1, 2), owned(S0, 1), stopping(S1, 2, 9), free()])
def test_what_has_moved_on_since_is_not_sent_again(now: Any) -> None:
    """P was started by the same order as Q, and answered."""
    _, actions = repeat(group(BOTH, {P: now, Q: starting(S1, 2, 4)}), NOW + 10)
    assert starts(actions) == {S1: {Q: 4}}


# --- how far a plan is -------------------------------------------------------------------------


def test_a_plan_is_done_when_everything_is_where_it_should_be() -> None:
    known = group(BOTH, {P: owned(S0, 1), Q: owned(S1, 2)})
    assert is_done(known, {P: S0, Q: S1})
    assert not is_done(known, {P: S0, Q: S0})
    assert not is_done(group(BOTH, {P: stopping(S0, 1)}), {P: S0})
    assert not is_done(group(BOTH, {P: free()}), {P: S0})
    assert not is_done(group(BOTH, {P: owned(S0, 1)}, counts={"orders": 0}), {})


def test_what_was_started_elsewhere_meanwhile_moves_on_once_its_new_owner_is_ready() -> None:
    members = {S0: alive(1), S1: dead(2)}
    known, aim, _ = advance(group(members, {P: free(8)}), goal(group(members), {P: S1}), NOW)
    known = replace(known, partitions=known.partitions.changed({P: owned(S0, 1)}))
    aim = started_elsewhere(known, aim, [P])
    assert not arrived(known, aim)
    assert advance(known, aim, NOW)[1:] == (aim, ())
    ready = replace(known, members=known.members.set(S1, alive(3)))
    after, aim, actions = advance(ready, aim, NOW)
    assert [slot for slot, _ in told(actions)] == [S0]
    assert not aim.misplaced
    assert not arrived(after, aim)


def test_what_was_started_where_it_should_be_changes_no_goal() -> None:
    known = group(BOTH, {P: owned(S0, 1), Q: starting(S1, 2)})
    aim = goal(known, {P: S0, Q: S0})
    assert started_elsewhere(known, aim, [P, Q, C]) is aim
