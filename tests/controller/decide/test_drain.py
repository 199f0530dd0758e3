"""A consumer that is asked to end drains first: its partitions and tables move."""

from dataclasses import replace

import pytest
from tests.builders import S0, S1, S2, TERM, alive, changed, dead, group, owned, released, stopping
from tests.controller.decide.driver import (
    A,
    B,
    ControllerDriver,
    P,
    Q,
    assigned,
    published,
    sent_commands,
)

from binwright.controller.decide.apply import CONSUMER_LEAVING, CONSUMER_READY
from binwright.controller.decide.drain import (
    drain_plan,
    drained,
    draining_slots,
    keep_alive,
    reader_plan,
)
from binwright.controller.decide.events import Action, Packed, Reconcile, Send
from binwright.controller.decide.states import Manage, Reassign, Sentinel, Synchronize
from binwright.group.members import Member
from binwright.group.ownership import Owned, State
from binwright.group.plans import Pack
from binwright.protocol.commands import StartReading, StateQuery, StopReading
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Goodbye, Planned
from binwright.protocol.model import Slot, TopicPartition

R = TopicPartition("orders", 2)
RATES = {P: 55.0, Q: 40.0, R: 30.0}
BOTH = {P: A, Q: B, R: A}


# --- new owners --------------------------------------------------------------------------------

THREE = {S0: alive(1, leaving=True), S1: alive(2), S2: alive(3)}


def test_the_largest_goes_first_and_to_the_least_loaded() -> None:
    partitions: dict[TopicPartition, State] = {P: owned(S0, 1), Q: owned(S1, 2), R: owned(S0, 1)}
    known = group(THREE, partitions, rates=RATES)
    assert drained(known, {P: S0, Q: S1, R: S0}) == {P: S2, Q: S1, R: S1}


def test_without_rates_partitions_are_counted() -> None:
    known = group(THREE, {P: owned(S0, 1), Q: owned(S0, 1)})
    assert drained(known, {P: S0, Q: S0}) == {P: S1, Q: S2}


def test_a_partition_with_another_reader_waits_for_the_restarted_slot() -> None:
    known = group(THREE, {P: owned(S1, 2)})
    assert drained(known, {P: S0}) == {P: S0}


def test_a_partition_without_a_reader_does_not_wait() -> None:
    known = group(THREE, {P: released(), Q: released(4)})
    assert drained(known, {P: S0, Q: S0, R: S0}) == {P: S1, Q: S2, R: S1}


def test_with_no_other_ready_consumer_everything_waits() -> None:
    known = group({S0: THREE[S0], S1: alive(2, ready=False)}, {P: owned(S0, 1)})
    assert drained(known, {P: S0}) == {P: S0}
    assert draining_slots(known) == {S0}
    assert drain_plan(known) is None


def test_a_consumer_that_owns_nothing_more_is_not_draining() -> None:
    assert draining_slots(group(THREE, {P: stopping(S0, 1), Q: owned(S1, 2)})) == frozenset()
    assert drain_plan(group(THREE, {P: owned(S1, 2)})) is None
    assert draining_slots(group(THREE, None, {"orders": owned(S0, 1)})) == {S0}, "it writes a table"
    assert draining_slots(group({S1: alive(2)}, {P: owned(S1, 2)})) == frozenset()


@pytest.mark.parametrize(
    "other", [alive(2), alive(2, ready=False), alive(2, goodbye=2, leaving=True)]
)
def test_a_draining_consumer_is_kept_alive_while_another_runs_or_will(other: Member) -> None:
    known = group({S0: THREE[S0], S1: other}, {P: owned(S0, 1)})
    assert keep_alive(known) == (Send(S0, StateQuery(term=TERM)),)
    assert keep_alive(replace(known, term=None)) == ()


@pytest.mark.parametrize("other", [alive(2, goodbye=2), alive(2, leaving=True)])
def test_a_draining_consumer_without_successor_is_not_kept_alive(other: Member) -> None:
    assert keep_alive(group({S0: THREE[S0], S1: other}, {P: owned(S0, 1)})) == ()


def test_a_drain_plan_assigns_partitions_without_a_reader_too() -> None:
    known = group(THREE, {P: owned(S0, 1), Q: released()}, rates=RATES)
    plan = drain_plan(known)
    assert plan is not None
    assert plan.target == {P: S1, Q: S2}
    assert plan.reasons[0] == "consumer 0 was asked to end"


def test_a_drain_plan_omits_gone_partitions() -> None:
    partitions: dict[TopicPartition, State] = {P: owned(S0, 1), Q: owned(S0, 1)}
    plan = drain_plan(group(THREE, partitions, counts={"orders": 1}))
    assert plan is not None
    assert plan.target.keys() == {P}


# --- the controller's side ---------------------------------------------------------------------


def drain(driver: ControllerDriver, slot: Slot) -> list[Action]:
    owned_now = [p for p, state in driver.group.members.partitions.items() if state.slot == slot]
    return driver.report(slot, reading=owned_now, leaving=True)


def last_reconcile(actions: list[Action]) -> frozenset[Slot]:
    return [a.slots for a in actions if isinstance(a, Reconcile)][-1]


def test_a_draining_consumers_partitions_move_at_once_and_its_slot_keeps_running() -> None:
    driver = assigned(RATES, BOTH)
    actions = drain(driver, A)
    assert Log(CONSUMER_LEAVING, {"slot": A}) in actions
    (planned,) = [m for m in published(actions) if isinstance(m, Planned)]
    assert planned.moves == {P: B, R: B}
    (stop,) = sent_commands(actions, StopReading)
    assert stop.partitions == (P, R)
    starts = sent_commands(driver.stopped(stop, A), StartReading)
    assert [s.offsets for s in starts] == [{P: 7, R: 7}]
    driver.read(Goodbye(slot=A, epoch=stop.epoch, next={}))
    assert last_reconcile(driver.started(starts[0], B)) == {A, B}
    assert driver.phase() == Sentinel
    assert {driver.partition_state(p) for p in (P, Q, R)} == {driver.partition_state(Q)}


def test_a_draining_slot_is_given_nothing() -> None:
    driver = assigned(RATES, BOTH)
    (stop,) = sent_commands(drain(driver, A), StopReading)
    (start,) = sent_commands(driver.stopped(stop, A), StartReading)
    driver.read(Goodbye(slot=A, epoch=stop.epoch, next={}))
    driver.started(start, B)
    assert sent_commands(driver.pack({P: A, Q: B, R: B}), StopReading) == []
    driver.hello(A)
    (moved,) = sent_commands(driver.report(A), StopReading)
    assert moved.partitions == (P,)


def test_a_packing_requested_before_the_drain_is_ignored() -> None:
    driver = assigned(RATES, {P: A, Q: B})
    driver.measure({P: 50.0, Q: 40.0, R: 200.0})
    assert any(isinstance(a, Pack) for a in driver.tick())
    assert driver.phase() == Reassign
    drain(driver, A)
    assert driver.phase() == Manage
    assert driver.feed(Packed(driver.now, {P: A, Q: A, R: A})) == []
    assert driver.phase() == Manage


def test_a_plan_under_way_is_redirected_from_a_draining_consumer() -> None:
    driver = assigned(RATES, BOTH)
    (stop,) = sent_commands(driver.tick() + packed(driver, {P: A, Q: A, R: A}), StopReading)
    assert stop.partitions == (Q,)
    (other,) = sent_commands(drain(driver, A), StopReading)
    assert other.partitions == (P, R)
    (start,) = sent_commands(driver.stopped(stop, B), StartReading)
    assert start.offsets == {Q: 7}
    assert driver.partition_state(Q).slot == B


def packed(driver: ControllerDriver, target: dict[TopicPartition, Slot]) -> list[Action]:
    driver.measure({P: 150.0, Q: 40.0, R: 30.0})
    return driver.pack(target)


def test_a_draining_consumer_without_another_keeps_its_partitions() -> None:
    driver = assigned({P: 50.0}, {P: A})
    assert sent_commands(drain(driver, A), StopReading) == []
    assert driver.phase() == Sentinel
    assert isinstance(driver.partition_state(P), Owned)


def test_a_first_known_report_can_be_both_ready_and_draining() -> None:
    """Compaction keeps only the last report of a slot: a new controller may read no other."""
    driver = ControllerDriver()
    driver.hello(A)
    driver.claim()
    assert driver.phase() == Synchronize
    actions = driver.report(A, leaving=True)
    assert Log(CONSUMER_READY, {"slot": A}) in actions
    assert Log(CONSUMER_LEAVING, {"slot": A}) in actions
    assert (driver.group.members.get(A).ready, driver.group.members.get(A).usable) == (True, False)


# --- partitions without a reader, without a monitor --------------------------------------------


def test_partitions_without_a_reader_go_to_the_least_loaded_ready_consumer() -> None:
    partitions: dict[TopicPartition, State] = {P: released(), Q: owned(S1, 2), R: released()}
    plan = reader_plan(group({S1: alive(2), S2: alive(3)}, partitions, rates=RATES))
    assert plan is not None
    assert plan.target == {P: S2, Q: S1, R: S1}
    assert plan.reasons[0] == "2 partitions without a reader, not measured lately"


def test_without_any_rate_each_consumer_gets_the_same_number() -> None:
    partitions: dict[TopicPartition, State] = {P: released(), Q: released(), R: owned(S1, 2)}
    plan = reader_plan(group({S1: alive(2), S2: alive(3)}, partitions))
    assert plan is not None
    assert plan.target == {P: S2, Q: S1, R: S1}


def test_with_no_ready_consumer_partitions_go_to_a_starting_one() -> None:
    members = {S1: alive(2, ready=False), S2: alive(3, leaving=True), S0: dead(1)}
    plan = reader_plan(group(members, {P: released()}, last_plan={P: S0}))
    assert plan is not None
    assert plan.target == {P: S1}


def test_without_consumers_the_last_plans_slots_or_slot_0_are_started() -> None:
    known = group(
        {S1: dead(2)}, {P: released(), Q: released()}, last_plan={P: S1, Q: S2, R: Slot(100)}
    )
    plan, first = reader_plan(known), reader_plan(changed(known, last_plan={}))
    assert plan is not None
    assert first is not None
    assert plan.target == {P: S1, Q: S2}
    assert first.target == {P: S0, Q: S0}


def test_when_every_partition_has_a_reader_there_is_no_plan() -> None:
    partitions: dict[TopicPartition, State] = {P: owned(S1, 2), Q: released()}
    assert reader_plan(group({S1: alive(2)}, partitions, counts={"orders": 1})) is None


def test_gone_partitions_are_omitted() -> None:
    partitions: dict[TopicPartition, State] = {P: released(), Q: owned(S1, 2)}
    plan = reader_plan(group({S1: alive(2)}, partitions, counts={"orders": 1}))
    assert plan is not None
    assert plan.target == {P: S1}
