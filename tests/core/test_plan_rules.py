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
from binwright.core.group import (
    Group,
    Held,
    Place,
    Starting,
    Stopping,
    Unassigned,
    place_all,
    stopped,
)
from binwright.core.machine import (
    Deposed,
    Reassign,
    Sentinel,
    transition,
)
from binwright.core.messages import (
    Claim,
    Dead,
    Fence,
    Fenced,
    Planned,
    StartConsuming,
    StopConsuming,
    Stopped,
)
from binwright.core.model import BytesPerSecond, TopicPartition
from binwright.core.moving import stop_command
from binwright.core.packing.capacity import PerSlot

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
        reign.report(A, held=[P, Q])


def test_a_topic_that_was_not_measured_yet_is_not_packed_without() -> None:
    reign = Reign()
    reign.hello(A)
    reign.claim()
    reign.report(A, held=[P, TopicPartition("clicks", 0)])
    reign.measure({P: 500.0, Q: 500.0})
    assert not any(isinstance(a, Pack) for a in reign.tick(5))


def test_a_partition_that_is_gone_is_stopped_and_forgotten() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.measure({P: 50.0})
    (stop,) = told(reign.pack({P: A}), StopConsuming)
    assert stop.partitions == (Q,)
    reign.stopped(stop, A)
    assert reign.group.places.keys() == {P}
    assert reign.phase() == Sentinel


def test_what_a_partition_that_left_owed_is_owed_by_its_namesake() -> None:
    reign = holding({P: 50.0, Q: 40.0}, {P: A, Q: B})
    reign.hear(Dead(slot=B, term=0))
    reign.measure({P: 50.0})
    reign.tick()
    assert Q not in reign.group.places
    reign.measure({P: 50.0, Q: 1.0})
    assert reign.place(Q).owed == {B}


def test_a_rate_that_is_not_known_now_is_the_last_one() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.measure({P: None, Q: 41.0})
    assert reign.group.rates == {P: 50.0, Q: 41.0}


def test_now_and_then_a_smaller_group_is_looked_for() -> None:
    reign = holding({P: 30.0, Q: 30.0}, {P: A, Q: B})
    for _ in range(60):
        assert not any(isinstance(a, Pack) for a in reign.tick())
        reign.report(A, held=[P])
        reign.report(B, held=[Q])
    actions = reign.pack({P: A, Q: A})
    assert Reconcile(frozenset({A, B})) in actions
    (stop,) = told(actions, StopConsuming)
    (start,) = told(reign.stopped(stop, B), StartConsuming)
    assert start.offsets == {Q: 7}
    assert Reconcile(frozenset({A})) in reign.started(start, A)
    assert reign.phase() == Sentinel


def test_a_plan_that_earns_nothing_is_rejected_and_said() -> None:
    reign = holding(RATES, {P: A, Q: A})
    for _ in range(60):
        reign.tick()
        reign.report(A, held=[P, Q])
    actions = reign.pack({P: A, Q: A})
    assert actions == [Say("plan.rejected", {"reason": "nothing would change"})]


def test_a_plan_is_told_with_its_reasons() -> None:
    reign = ruling(RATES, A)
    (plan,) = [m for m in published(reign.pack({P: A, Q: A})) if isinstance(m, Planned)]
    assert plan.reasons[0] == "2 without a reader"
    assert (plan.consumers, plan.targets) == (1, {P: A, Q: A})


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


def moving() -> tuple[Reign, StopConsuming]:
    reign = holding({P: 70.0, Q: 60.0}, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    (stop,) = told(reign.pack({P: A, Q: B}), StopConsuming)
    return reign, stop


def test_no_stop_goes_out_before_the_heir_is_ready() -> None:
    reign = holding({P: 70.0, Q: 60.0}, {P: A, Q: A})
    assert told(reign.pack({P: A, Q: B}), StopConsuming) == []
    reign.hello(B)
    assert told(reign.report(B, ready=False), StopConsuming) == []
    (stop,) = told(reign.report(B), StopConsuming)
    assert stop.partitions == (Q,)


def test_a_partition_on_the_move_counts_where_it_is() -> None:
    reign, stop = moving()
    assert reign.group.assignment() == {P: A, Q: A}
    reign.stopped(stop, A)
    assert reign.group.assignment() == {P: A, Q: B}


def test_a_settled_partition_starts_where_its_owner_ended() -> None:
    reign, stop = moving()
    (start,) = told(reign.stopped(stop, A, 42), StartConsuming)
    assert (start.offsets, start.fences) == ({Q: 42}, ())
    reign.started(start, B)
    assert reign.phase() == Sentinel
    assert isinstance(reign.place(Q).at, Held)


def test_a_partition_that_was_not_held_is_resolved() -> None:
    reign, stop = moving()
    (start,) = told(reign.stopped(stop, A, None), StartConsuming)
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
    assert isinstance(reign.place(Q).at, Stopping)


def test_an_answer_to_a_start_that_is_not_out_is_dropped() -> None:
    reign, stop = moving()
    (start,) = told(reign.stopped(stop, A), StartConsuming)
    reign.started(replace(start, revision=start.revision + 9), B)
    reign.started(replace(start, offsets={TopicPartition("none", 0): 1}), B)
    reign.started(replace(start, epoch=1), B)
    assert isinstance(reign.place(Q).at, Starting)


def test_an_unanswered_command_is_said_again_with_the_same_revision() -> None:
    reign, stop = moving()
    again = []
    for _ in range(11):
        again += told(reign.tick(), StopConsuming)
        reign.report(A, held=[P], closing=[Q])
        reign.report(B)
    assert again == [stop]
    (start,) = told(reign.stopped(stop, A), StartConsuming)
    again_start = []
    for _ in range(11):
        again_start += told(reign.tick(), StartConsuming)
        reign.report(A, held=[P])
        reign.report(B, opening=[Q])
    assert again_start == [start]


def test_if_the_heir_dies_its_successor_raises_its_fence_too() -> None:
    """†"""
    reign, stop = moving()
    reign.stopped(stop, A, 42)
    reign.hear(Dead(slot=B, term=0))
    number = reign.offset
    assert reign.place(Q) == Place(Unassigned(), frozenset({B}))
    reign.hello(B)
    (start,) = told(reign.report(B), StartConsuming)
    assert start.offsets == {Q: None}
    assert start.fences == (), "its own newcomer's claim stands"
    assert number


def test_a_confirmed_fence_is_recorded_and_pays_for_its_table() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    reign.hear(Dead(slot=A, term=0))
    number = reign.offset
    (start,) = told(reign.pack({P: B, Q: B}), StartConsuming)
    assert start.fences == (Fence(slot=A, number=number),)
    assert published(reign.started(start, B)) == [Fenced(slot=A, number=number, topic="orders")]
    assert reign.place(P) == Place(Held(B, start.epoch))


def test_a_fence_does_not_pay_for_a_later_death() -> None:
    """The slot lived and died once more while the start was on its way."""
    reign = holding(RATES, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    reign.hear(Dead(slot=A, term=0))
    (start,) = told(reign.pack({P: B, Q: B}), StartConsuming)
    reign.hello(A)
    reign.hear(Dead(slot=A, term=0))
    reign.started(start, B)
    assert reign.place(P) == Place(Held(B, start.epoch), frozenset({A}))


def test_a_start_that_is_said_again_leaves_out_what_was_answered() -> None:
    """†"""
    reign = ruling(RATES, A)
    (start,) = told(reign.pack({P: A, Q: A}), StartConsuming)
    reign.started(replace(start, offsets={P: None}), A)
    again = []
    for _ in range(11):
        again += told(reign.tick(), StartConsuming)
        reign.report(A, held=[P], opening=[Q])
    assert [command.offsets for command in again] == [{Q: None}]


def test_what_is_starting_and_gone_is_stopped() -> None:
    reign = ruling(RATES, A)
    reign.pack({P: A, Q: A})
    reign.measure({P: 50.0})
    (stop,) = told(reign.tick(), StopConsuming)
    assert stop.partitions == (Q,)


def test_a_full_group_that_cannot_be_relieved_stays_as_it_is() -> None:
    reign = ruling({P: 110.0, Q: 100.0}, A)
    reign.state = replace(
        reign.state, group=replace(reign.group, rules=replace(RULES, max_slots=1))
    )
    for start in told(reign.pack({P: A, Q: A}), StartConsuming):
        reign.started(start, A)
    actions = reign.pack({P: A, Q: B})
    assert Say("plan.rejected", {"reason": "all 1 consumers are full"}) in actions


def test_who_was_made_for_a_plan_that_came_to_nothing_is_retired() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.hello(B)
    for _ in range(60):
        reign.tick()
        reign.report(A, held=[P, Q])
        reign.report(B)
    assert Reconcile(frozenset({A})) in reign.pack({P: A, Q: A})


def test_answers_that_lay_unread_while_the_controller_slept_still_count() -> None:
    reign = Reign()
    reign.hello(A)
    reign.claim()
    reign.now += 60
    assert published(reign.feed(Tick(reign.now))) == []
    reign.report(A, held=[P])
    assert reign.phase() == Sentinel


def test_an_overdue_plan_returns_to_the_sentinel() -> None:
    reign = holding({P: 70.0, Q: 60.0}, {P: A, Q: A})
    reign.pack({P: A, Q: B})
    for _ in range(121):
        reign.tick()
        reign.report(A, held=[P, Q])
    assert reign.phase() == Sentinel
    assert any(isinstance(a, Say) and a.event == "plan.overdue" for a in reign.actions)


# --- our own faults ----------------------------------------------------------------------------


def test_without_a_term_nothing_is_commanded() -> None:
    with pytest.raises(ValueError, match="without a term"):
        Group(rules=RULES, controller="me").next_revision()


def test_only_what_is_stopping_can_be_stopped() -> None:
    group = Group(rules=RULES, controller="me", term=1)
    with pytest.raises(TypeError, match="only what is stopping"):
        stop_command(group, A, {P: Place(Unassigned())})


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


def test_places_without_a_match_stay() -> None:
    group = Group(rules=RULES, controller="me", term=1)
    group = place_all(group, {P: Place(Held(A, 1))})
    answer = Stopped(slot=A, epoch=1, revision=1, next={P: 3}, quit_ms=0)
    assert stopped(group, answer) == group
