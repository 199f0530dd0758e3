"""The controller's side of the protocol: when it plans, and how it carries out a plan."""

from dataclasses import replace

import pytest
from tests.builders import LIMIT
from tests.controller.decide.driver import (
    CONFIG,
    A,
    B,
    ControllerDriver,
    P,
    Q,
    assigned,
    leading,
    published,
    sent_commands,
)

from binwright.controller.decide.carry_out import PLAN_REJECTED
from binwright.controller.decide.events import Packed, Reconcile, Tick
from binwright.controller.decide.machine import transition
from binwright.controller.decide.states import Manage, Reassign, Sentinel, SteppedDown
from binwright.group.fold import RecordRead
from binwright.group.group import Group
from binwright.group.ownership import Owned, Stopping
from binwright.group.plans import Pack
from binwright.packing.inputs import SlotCapacities
from binwright.protocol.commands import StartReading, StopReading
from binwright.protocol.errors import IllegalTransition
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Claim, Planned
from binwright.protocol.model import BytesPerSecond, PerSlot, TopicPartition

RATES = {P: 50.0, Q: 40.0}


# --- Sentinel and Reassign ---------------------------------------------------------------------


def test_a_load_above_the_limit_triggers_a_plan() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    driver.measure({P: 90.0, Q: 40.0})
    assert any(isinstance(a, Pack) for a in driver.tick())
    assert isinstance(driver.state, Reassign)
    assert driver.state.triggered_by == ("consumer 0 carries 108.3% of its limit",)


def test_a_slot_has_its_own_limit_and_is_packed_to_the_same_share_of_it() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    with_larger_slot = replace(
        CONFIG, limits=PerSlot(CONFIG.limits.default, {A: BytesPerSecond(240.0)})
    )
    driver.state = replace(driver.state, group=replace(driver.group, config=with_larger_slot))
    driver.measure({P: 190.0, Q: 40.0})
    assert not any(isinstance(a, Pack) for a in driver.tick())

    driver.measure({P: 300.0, Q: 40.0})
    [request] = [a for a in driver.tick() if isinstance(a, Pack)]
    assert isinstance(driver.state, Reassign)
    assert driver.state.triggered_by == ("consumer 0 carries 141.7% of its limit",)
    assert request.load.capacity == SlotCapacities(
        BytesPerSecond(100.0), {A: BytesPerSecond(200.0)}
    )
    assert request.load.rates == {P: 240.0, Q: 40.0}  # no more than any consumer sustains


def test_a_single_partition_above_the_limit_triggers_no_plan() -> None:
    driver = assigned({P: 50.0}, {P: A})
    driver.measure({P: 500.0})
    assert not any(isinstance(a, Pack) for a in driver.tick(5))


def test_no_packing_is_requested_before_every_topic_is_measured() -> None:
    driver = ControllerDriver()
    driver.hello(A)
    driver.claim()
    driver.report(A, reading=[P, TopicPartition("clicks", 0)])
    driver.measure({P: 500.0, Q: 500.0})
    assert not any(isinstance(a, Pack) for a in driver.tick(5))


def test_a_partition_that_is_gone_is_stopped_and_forgotten() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    driver.measure({P: 50.0})
    (stop,) = sent_commands(driver.pack({P: A}), StopReading)
    assert stop.partitions == (Q,)
    driver.stopped(stop, A)
    assert driver.group.members.partitions.keys() == {P}
    assert driver.phase() == Sentinel


def test_an_unknown_rate_counts_as_the_last_known_one() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    driver.measure({P: None, Q: 41.0})
    assert driver.group.load.rates == {P: 50.0, Q: 41.0}


def test_a_smaller_group_is_looked_for_periodically() -> None:
    driver = assigned({P: 30.0, Q: 30.0}, {P: A, Q: B})
    for _ in range(60):
        assert not any(isinstance(a, Pack) for a in driver.tick())
        driver.report(A, reading=[P])
        driver.report(B, reading=[Q])
    actions = driver.pack({P: A, Q: A})
    assert Reconcile(frozenset({A, B})) in actions
    (stop,) = sent_commands(actions, StopReading)
    (start,) = sent_commands(driver.stopped(stop, B), StartReading)
    assert start.offsets == {Q: 7}
    assert Reconcile(frozenset({A})) in driver.started(start, A)
    assert driver.phase() == Sentinel


def test_a_plan_that_changes_nothing_is_rejected_and_logged() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    for _ in range(60):
        driver.tick()
        driver.report(A, reading=[P, Q])
    actions = driver.pack({P: A, Q: A})
    assert actions == [Log(PLAN_REJECTED, {"reason": "nothing would change"})]


def test_a_plan_is_published_with_its_reasons() -> None:
    driver = leading(RATES, A)
    (plan,) = [m for m in published(driver.pack({P: A, Q: A})) if isinstance(m, Planned)]
    assert plan.reasons[0] == "2 partitions without a reader"
    assert (plan.consumers, plan.targets) == (1, {P: A, Q: A})


def test_fewer_consumers_than_min_slots_trigger_a_plan_that_has_them() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    driver.state = replace(
        driver.state, group=replace(driver.state.group, config=CONFIG.with_settings(min_slots=2))
    )
    (plan,) = [m for m in published(driver.pack({P: A, Q: A})) if isinstance(m, Planned)]
    assert plan.reasons[0] == "1 of at least 2 consumers read"
    assert set(plan.targets.values()) == {A, B}


def test_no_more_than_max_slots_consumers_are_started() -> None:
    driver = ControllerDriver(config=CONFIG.with_settings(max_slots=1))
    driver.claim()
    driver.measure(dict(RATES))
    actions = driver.pack({P: A, Q: B})
    assert Reconcile(frozenset({A})) in actions


def test_a_packing_without_a_result_is_given_up() -> None:
    driver = leading(RATES)
    driver.tick()
    assert driver.phase() == Reassign
    driver.tick(121)
    assert driver.phase() in {Sentinel, Reassign}
    assert any(isinstance(a, Log) and a.event == "packing.overdue" for a in driver.actions)


def test_an_overdue_packing_result_is_ignored() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    assert driver.feed(Packed(driver.now, {P: B, Q: B})) == []


# --- Group Management --------------------------------------------------------------------------


def moving() -> tuple[ControllerDriver, StopReading]:
    driver = assigned({P: 70.0, Q: 60.0}, {P: A, Q: A})
    driver.hello(B)
    driver.report(B)
    (stop,) = sent_commands(driver.pack({P: A, Q: B}), StopReading)
    return driver, stop


def test_no_stop_is_sent_before_the_new_owner_is_ready() -> None:
    driver = assigned({P: 70.0, Q: 60.0}, {P: A, Q: A})
    assert sent_commands(driver.pack({P: A, Q: B}), StopReading) == []
    driver.hello(B)
    assert sent_commands(driver.report(B, ready=False), StopReading) == []
    (stop,) = sent_commands(driver.report(B), StopReading)
    assert stop.partitions == (Q,)


def test_a_stopped_partition_starts_where_its_previous_owner_ended() -> None:
    driver, stop = moving()
    (start,) = sent_commands(driver.stopped(stop, A, 42), StartReading)
    assert start.offsets == {Q: 42}
    driver.started(start, B)
    assert driver.phase() == Sentinel
    assert isinstance(driver.partition_state(Q), Owned)


def test_a_stopped_that_does_not_match_the_command_is_dropped() -> None:
    """† old_epoch_acks: by slot, current epoch, revision and partition."""
    driver, stop = moving()
    for wrong in (
        replace(stop, revision=stop.revision + 9),
        replace(stop, epoch=stop.epoch + 9),
        replace(stop, partitions=(P,)),
        replace(stop, partitions=(TopicPartition("none", 0),)),
    ):
        assert driver.stopped(wrong, A) == []
    driver.stopped(stop, B)
    assert isinstance(driver.partition_state(Q), Stopping)


def test_an_unacknowledged_command_is_repeated_with_the_same_revision() -> None:
    driver, stop = moving()
    again = []
    for _ in range(11):
        again += sent_commands(driver.tick(), StopReading)
        driver.report(A, reading=[P])
        driver.report(B)
    assert again == [stop]
    (start,) = sent_commands(driver.stopped(stop, A), StartReading)
    again_start = []
    for _ in range(11):
        again_start += sent_commands(driver.tick(), StartReading)
        driver.report(A, reading=[P])
        driver.report(B, reading={Q: None})
    assert again_start == [start]


def test_if_the_new_owner_dies_its_partitions_start_at_once_at_a_ready_consumer() -> None:
    """B6: not only after plan_timeout_s; and they move to the new process once it is ready."""
    driver, stop = moving()
    driver.stopped(stop, A, 42)
    (start,) = sent_commands(driver.dead(B), StartReading)
    assert (start.epoch, start.offsets) == (stop.epoch, {Q: 42})
    driver.started(start, A)
    assert driver.phase() == Manage
    driver.hello(B)
    (again,) = sent_commands(driver.report(B), StopReading)
    assert again.partitions == (Q,)


def test_a_partition_found_during_a_plan_does_not_wait_for_its_end() -> None:
    driver, _ = moving()
    new = TopicPartition("orders", 2)
    driver.measure({P: 70.0, Q: 60.0, new: 1.0})
    (start,) = sent_commands(driver.tick(), StartReading)
    assert start.offsets == {new: None}


def test_replies_that_arrived_during_a_pause_of_the_controller_are_accepted() -> None:
    driver = ControllerDriver()
    driver.hello(A)
    driver.claim()
    driver.now += 60
    assert published(driver.feed(Tick(driver.now))) == []
    driver.report(A, reading=[P])
    assert driver.phase() == Sentinel


def test_an_overdue_plan_returns_to_sentinel() -> None:
    driver = assigned({P: 70.0, Q: 60.0}, {P: A, Q: A})
    driver.pack({P: A, Q: B})
    for _ in range(121):
        driver.tick()
        driver.report(A, reading=[P, Q])
    assert driver.phase() == Sentinel
    assert any(isinstance(a, Log) and a.event == "plan.overdue" for a in driver.actions)


# --- bugs --------------------------------------------------------------------------------------


def test_a_state_that_the_table_does_not_allow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = leading(RATES)
    wrong = SteppedDown(driver.group, 0.0)
    table = {(Sentinel, Tick): (lambda *_: (wrong, ()), ())}
    monkeypatch.setattr("binwright.controller.decide.machine.TRANSITIONS", table)
    with pytest.raises(IllegalTransition, match="Tick"):
        transition(driver.state, Tick(1.0))


def test_a_controller_that_stepped_down_does_nothing() -> None:
    state = SteppedDown(Group(config=CONFIG, controller="me"), 0.0)
    assert transition(state, RecordRead(0.0, 1, Claim(controller="x", limit=LIMIT))) == (state, ())
