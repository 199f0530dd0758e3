"""The controller's side of the protocol: when it plans, and how a plan is carried out."""

from dataclasses import replace

import pytest

from binwright.core.errors import IllegalTransition
from binwright.core.events import (
    Heard,
    Pack,
    Packed,
    Reconcile,
    Say,
    Tick,
)
from binwright.core.group import Group
from binwright.core.machine import transition
from binwright.core.messages import Claim, Planned, StartReading, StopReading
from binwright.core.model import BytesPerSecond, TopicPartition
from binwright.core.ownership import Owned, Starting, Stopping
from binwright.core.packing.capacity import PerSlot
from binwright.core.states import Deposed, Manage, Reassign, Sentinel

from .reign import RULES, A, B, P, Q, Reign, holding, published, ruling, told

RATES = {P: 50.0, Q: 40.0}


# --- Sentinel and Reassign ---------------------------------------------------------------------


def test_a_load_above_the_limit_forces_a_plan() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.measure({P: 90.0, Q: 40.0})
    assert any(isinstance(a, Pack) for a in reign.tick())
    assert isinstance(reign.state, Reassign)
    assert reign.state.forced_by == ("consumer 0 carries 130 B/s, limit 120",)


def test_a_slot_has_its_own_limit_and_is_packed_to_the_same_share_of_it() -> None:
    reign = holding(RATES, {P: A, Q: A})
    large = replace(RULES, limits={A: BytesPerSecond(240.0)})
    reign.state = replace(reign.state, group=replace(reign.group, rules=large))
    reign.measure({P: 190.0, Q: 40.0})
    assert not any(isinstance(a, Pack) for a in reign.tick())

    reign.measure({P: 300.0, Q: 40.0})
    [request] = [a for a in reign.tick() if isinstance(a, Pack)]
    assert isinstance(reign.state, Reassign)
    assert reign.state.forced_by == ("consumer 0 carries 340 B/s, limit 240",)
    assert request.capacity == PerSlot(BytesPerSecond(100.0), {A: BytesPerSecond(200.0)})
    assert request.rates == {P: 240.0, Q: 40.0}  # no more than any consumer sustains


def test_one_partition_above_the_limit_forces_nothing() -> None:
    reign = holding({P: 50.0}, {P: A})
    reign.measure({P: 500.0})
    assert not any(isinstance(a, Pack) for a in reign.tick(5))


def test_without_fresh_measurements_the_last_assignment_is_held() -> None:
    reign = holding(RATES, {P: A, Q: A})
    impatient = replace(reign.group, rules=replace(RULES, stale_s=30.0))
    reign.state = replace(reign.state, group=impatient)
    for _ in range(100):
        assert not any(isinstance(a, Pack) for a in reign.tick())
        reign.report(A, reading=[P, Q])


def test_a_topic_that_was_not_measured_yet_is_not_packed_without() -> None:
    reign = Reign()
    reign.hello(A)
    reign.claim()
    reign.report(A, reading=[P, TopicPartition("clicks", 0)])
    reign.measure({P: 500.0, Q: 500.0})
    assert not any(isinstance(a, Pack) for a in reign.tick(5))


def test_a_partition_that_is_gone_is_stopped_and_forgotten() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.measure({P: 50.0})
    (stop,) = told(reign.pack({P: A}), StopReading)
    assert stop.partitions == (Q,)
    reign.stopped(stop, A)
    assert reign.group.partitions.keys() == {P}
    assert reign.phase() == Sentinel


def test_a_rate_that_is_not_known_now_is_the_last_one() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.measure({P: None, Q: 41.0})
    assert reign.group.rates == {P: 50.0, Q: 41.0}


def test_now_and_then_a_smaller_group_is_looked_for() -> None:
    reign = holding({P: 30.0, Q: 30.0}, {P: A, Q: B})
    for _ in range(60):
        assert not any(isinstance(a, Pack) for a in reign.tick())
        reign.report(A, reading=[P])
        reign.report(B, reading=[Q])
    actions = reign.pack({P: A, Q: A})
    assert Reconcile(frozenset({A, B})) in actions
    (stop,) = told(actions, StopReading)
    (start,) = told(reign.stopped(stop, B), StartReading)
    assert start.offsets == {Q: 7}
    assert Reconcile(frozenset({A})) in reign.started(start, A)
    assert reign.phase() == Sentinel


def test_a_plan_that_earns_nothing_is_rejected_and_said() -> None:
    reign = holding(RATES, {P: A, Q: A})
    for _ in range(60):
        reign.tick()
        reign.report(A, reading=[P, Q])
    actions = reign.pack({P: A, Q: A})
    assert actions == [Say("plan.rejected", {"reason": "nothing would change"})]


def test_a_plan_is_told_with_its_reasons() -> None:
    reign = ruling(RATES, A)
    (plan,) = [m for m in published(reign.pack({P: A, Q: A})) if isinstance(m, Planned)]
    assert plan.reasons[0] == "2 without a reader"
    assert (plan.consumers, plan.targets) == (1, {P: A, Q: A})


def test_fewer_consumers_than_wanted_force_a_plan_that_has_them() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.state = replace(
        reign.state, group=replace(reign.state.group, rules=replace(RULES, min_slots=2))
    )
    (plan,) = [m for m in published(reign.pack({P: A, Q: A})) if isinstance(m, Planned)]
    assert plan.reasons[0] == "1 of at least 2 consumers read"
    assert set(plan.targets.values()) == {A, B}


def test_no_more_consumers_than_allowed() -> None:
    reign = Reign(rules=replace(RULES, max_slots=1))
    reign.claim()
    reign.measure(dict(RATES))
    actions = reign.pack({P: A, Q: B})
    assert Reconcile(frozenset({A})) in actions


def test_a_packing_that_never_answers_is_given_up() -> None:
    reign = ruling(RATES)
    reign.tick()
    assert reign.phase() == Reassign
    reign.tick(121)
    assert reign.phase() in {Sentinel, Reassign}
    assert any(isinstance(a, Say) and a.event == "packing.overdue" for a in reign.actions)


def test_a_packing_that_comes_too_late_means_nothing() -> None:
    reign = holding(RATES, {P: A, Q: A})
    assert reign.feed(Packed(reign.now, {P: B, Q: B})) == []


# --- Group Management --------------------------------------------------------------------------


def moving() -> tuple[Reign, StopReading]:
    reign = holding({P: 70.0, Q: 60.0}, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    (stop,) = told(reign.pack({P: A, Q: B}), StopReading)
    return reign, stop


def test_no_stop_goes_out_before_the_heir_is_ready() -> None:
    reign = holding({P: 70.0, Q: 60.0}, {P: A, Q: A})
    assert told(reign.pack({P: A, Q: B}), StopReading) == []
    reign.hello(B)
    assert told(reign.report(B, ready=False), StopReading) == []
    (stop,) = told(reign.report(B), StopReading)
    assert stop.partitions == (Q,)


def test_a_partition_on_the_move_counts_where_it_is() -> None:
    reign, stop = moving()
    assert reign.group.assignment() == {P: A, Q: A}
    reign.stopped(stop, A)
    assert reign.group.assignment() == {P: A, Q: B}


def test_a_settled_partition_starts_where_its_owner_ended() -> None:
    reign, stop = moving()
    (start,) = told(reign.stopped(stop, A, 42), StartReading)
    assert start.offsets == {Q: 42}
    reign.started(start, B)
    assert reign.phase() == Sentinel
    assert isinstance(reign.place(Q), Owned)


def test_a_partition_that_was_not_held_is_resolved() -> None:
    reign, stop = moving()
    (start,) = told(reign.stopped(stop, A, None), StartReading)
    assert start.offsets == {Q: None}


def test_an_answer_that_does_not_match_is_dropped() -> None:
    """† old_epoch_acks: by slot, current epoch, revision and partition."""
    reign, stop = moving()
    for wrong in (
        replace(stop, revision=stop.revision + 9),
        replace(stop, epoch=stop.epoch + 9),
        replace(stop, partitions=(P,)),
        replace(stop, partitions=(TopicPartition("none", 0),)),
    ):
        assert reign.stopped(wrong, A) == []
    reign.stopped(stop, B)
    assert isinstance(reign.place(Q), Stopping)


def test_an_answer_to_a_start_that_is_not_out_is_dropped() -> None:
    reign, stop = moving()
    (start,) = told(reign.stopped(stop, A), StartReading)
    reign.started(replace(start, revision=start.revision + 9), B)
    reign.started(replace(start, offsets={TopicPartition("none", 0): 1}), B)
    reign.started(replace(start, epoch=1), B)
    assert isinstance(reign.place(Q), Starting)


def test_an_unanswered_command_is_said_again_with_the_same_revision() -> None:
    reign, stop = moving()
    again = []
    for _ in range(11):
        again += told(reign.tick(), StopReading)
        reign.report(A, reading=[P])
        reign.report(B)
    assert again == [stop]
    (start,) = told(reign.stopped(stop, A), StartReading)
    again_start = []
    for _ in range(11):
        again_start += told(reign.tick(), StartReading)
        reign.report(A, reading=[P])
        reign.report(B, reading={Q: None})
    assert again_start == [start]


def test_if_the_new_owner_dies_its_partitions_go_on_at_once_with_who_is_there() -> None:
    """B6: not after plan_timeout_s; and to the newcomer once that is ready."""
    reign, stop = moving()
    reign.stopped(stop, A, 42)
    (start,) = told(reign.dead(B), StartReading)
    assert (start.epoch, start.offsets) == (stop.epoch, {Q: 42})
    reign.started(start, A)
    assert reign.phase() == Manage
    reign.hello(B)
    (again,) = told(reign.report(B), StopReading)
    assert again.partitions == (Q,)


def test_if_nobody_is_ready_a_partition_waits_for_the_first_that_is() -> None:
    reign, stop = moving()
    reign.stopped(stop, A, 42)
    reign.dead(A)
    assert told(reign.dead(B), StartReading) == []
    reign.hello(A)
    (start,) = told(reign.report(A), StartReading)
    assert start.offsets == {P: 7, Q: 42}


def test_a_newcomer_is_waited_for_a_moment_and_no_longer() -> None:
    reign, stop = moving()
    reign.stopped(stop, A, 42)
    reign.report(A, reading=[P])
    reign.dead(B)
    (start,) = told(reign.actions, StartReading)[-1:]
    assert start.offsets == {Q: 42}
    reign = ruling({P: 70.0, Q: 60.0}, A)
    reign.hello(B)
    for first in told(reign.pack({P: A, Q: B}), StartReading):
        assert first.offsets == {P: None}
        reign.started(first, A)
    while reign.now < RULES.consumer_timeout_s:
        assert not told(reign.tick(), StartReading)
        reign.report(A, reading=[P])
        reign.report(B, ready=False)
    (late,) = told(reign.tick(), StartReading)
    assert (late.epoch, late.offsets) == (reign.group.member(A).epoch, {Q: None})


def test_what_is_found_while_a_plan_is_carried_out_does_not_wait_for_its_end() -> None:
    reign, _ = moving()
    new = TopicPartition("orders", 2)
    reign.measure({P: 70.0, Q: 60.0, new: 1.0})
    (start,) = told(reign.tick(), StartReading)
    assert start.offsets == {new: None}


def test_a_start_that_is_said_again_leaves_out_what_was_answered() -> None:
    """†"""
    reign = ruling(RATES, A)
    (start,) = told(reign.pack({P: A, Q: A}), StartReading)
    reign.started(replace(start, offsets={P: None}), A)
    again = []
    for _ in range(11):
        again += told(reign.tick(), StartReading)
        reign.report(A, reading={P: 7, Q: None})
    assert [command.offsets for command in again] == [{Q: None}]


def test_what_is_starting_and_gone_is_stopped() -> None:
    reign = ruling(RATES, A)
    reign.pack({P: A, Q: A})
    reign.measure({P: 50.0})
    (stop,) = told(reign.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_a_full_group_that_cannot_be_relieved_stays_as_it_is() -> None:
    reign = ruling({P: 110.0, Q: 100.0}, A)
    reign.state = replace(
        reign.state, group=replace(reign.group, rules=replace(RULES, max_slots=1))
    )
    for start in told(reign.pack({P: A, Q: A}), StartReading):
        reign.started(start, A)
    actions = reign.pack({P: A, Q: B})
    assert Say("plan.rejected", {"reason": "all 1 consumers are full"}) in actions


def test_who_was_made_for_a_plan_that_came_to_nothing_is_retired() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.hello(B)
    for _ in range(60):
        reign.tick()
        reign.report(A, reading=[P, Q])
        reign.report(B)
    assert Reconcile(frozenset({A})) in reign.pack({P: A, Q: A})


def test_answers_that_lay_unread_while_the_controller_slept_still_count() -> None:
    reign = Reign()
    reign.hello(A)
    reign.claim()
    reign.now += 60
    assert published(reign.feed(Tick(reign.now))) == []
    reign.report(A, reading=[P])
    assert reign.phase() == Sentinel


def test_an_overdue_plan_returns_to_the_sentinel() -> None:
    reign = holding({P: 70.0, Q: 60.0}, {P: A, Q: A})
    reign.pack({P: A, Q: B})
    for _ in range(121):
        reign.tick()
        reign.report(A, reading=[P, Q])
    assert reign.phase() == Sentinel
    assert any(isinstance(a, Say) and a.event == "plan.overdue" for a in reign.actions)


# --- our own faults ----------------------------------------------------------------------------


def test_a_state_that_the_table_does_not_allow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reign = ruling(RATES)
    wrong = Deposed(reign.group, 0.0)
    table = {(Sentinel, Tick): (lambda *_: (wrong, ()), ())}
    monkeypatch.setattr("binwright.core.machine.TRANSITIONS", table)
    with pytest.raises(IllegalTransition, match="Tick"):
        transition(reign.state, Tick(1.0))


def test_a_deposed_controller_does_nothing() -> None:
    state = Deposed(Group(rules=RULES, controller="me"), 0.0)
    assert transition(state, Heard(0.0, 1, Claim(controller="x"))) == (state, ())
