"""Who was asked to end is relieved of what it reads before it ends."""

from dataclasses import replace

import pytest

from binwright.core.events import Action, Pack, Packed, Reconcile, Say, Tell
from binwright.core.group import Member
from binwright.core.messages import Goodbye, Planned, StartReading, StateQuery, StopReading
from binwright.core.model import Slot, TopicPartition
from binwright.core.ownership import Owned, State
from binwright.core.relief import comfort, leavers, reader_plan, relief, relieved
from binwright.core.states import Manage, Reassign, Sentinel, Synchronize

from .builders import S0, S1, S2, TERM, alive, dead, free, group, owned, stopping
from .reign import A, B, P, Q, Reign, holding, published, told

R = TopicPartition("orders", 2)
RATES = {P: 55.0, Q: 40.0, R: 30.0}
BOTH = {P: A, Q: B, R: A}


# --- where it all goes -------------------------------------------------------------------------

THREE = {S0: alive(1, leaving=True), S1: alive(2), S2: alive(3)}


def test_the_largest_goes_first_and_to_the_least_loaded() -> None:
    partitions: dict[TopicPartition, State] = {P: owned(S0, 1), Q: owned(S1, 2), R: owned(S0, 1)}
    known = group(THREE, partitions, rates=RATES)
    assert relieved(known, {P: S0, Q: S1, R: S0}) == {P: S2, Q: S1, R: S1}


def test_without_rates_partitions_are_counted() -> None:
    known = group(THREE, {P: owned(S0, 1), Q: owned(S0, 1)})
    assert relieved(known, {P: S0, Q: S0}) == {P: S1, Q: S2}


def test_what_another_still_reads_waits_for_the_slots_newcomer() -> None:
    known = group(THREE, {P: owned(S1, 2)})
    assert relieved(known, {P: S0}) == {P: S0}


def test_what_nobody_reads_does_not_wait() -> None:
    known = group(THREE, {P: free(), Q: free(4)})
    assert relieved(known, {P: S0, Q: S0, R: S0}) == {P: S1, Q: S2, R: S1}


def test_with_nobody_else_there_everything_waits() -> None:
    known = group({S0: THREE[S0], S1: alive(2, ready=False)}, {P: owned(S0, 1)})
    assert relieved(known, {P: S0}) == {P: S0}
    assert leavers(known) == {S0}
    assert relief(known) is None


def test_who_has_nothing_left_needs_no_relief() -> None:
    assert leavers(group(THREE, {P: stopping(S0, 1), Q: owned(S1, 2)})) == frozenset()
    assert relief(group(THREE, {P: owned(S1, 2)})) is None
    assert leavers(group(THREE, None, {"orders": owned(S0, 1)})) == {S0}, "it writes a table"
    assert leavers(group({S1: alive(2)}, {P: owned(S1, 2)})) == frozenset()


@pytest.mark.parametrize(
    "other", [alive(2), alive(2, ready=False), alive(2, goodbye=2, leaving=True)]
)
def test_who_leaves_hears_that_somebody_is_there_or_will_be(other: Member) -> None:
    known = group({S0: THREE[S0], S1: other}, {P: owned(S0, 1)})
    assert comfort(known) == (Tell(S0, StateQuery(term=TERM)),)
    assert comfort(replace(known, term=None)) == ()


@pytest.mark.parametrize("other", [alive(2, goodbye=2), alive(2, leaving=True)])
def test_who_leaves_with_nobody_to_come_hears_nothing(other: Member) -> None:
    assert comfort(group({S0: THREE[S0], S1: other}, {P: owned(S0, 1)})) == ()


def test_a_relief_finds_a_reader_for_what_nobody_reads_too() -> None:
    known = group(THREE, {P: owned(S0, 1), Q: free()}, rates=RATES)
    plan = relief(known)
    assert plan is not None
    assert plan.target == {P: S1, Q: S2}
    assert plan.reasons[0] == "consumer 0 was asked to end"


def test_a_relief_leaves_out_what_is_gone() -> None:
    partitions: dict[TopicPartition, State] = {P: owned(S0, 1), Q: owned(S0, 1)}
    plan = relief(group(THREE, partitions, counts={"orders": 1}))
    assert plan is not None
    assert plan.target.keys() == {P}


# --- the controller's side ---------------------------------------------------------------------


def leave(reign: Reign, slot: Slot) -> list[Action]:
    has = [p for p, place in reign.group.partitions.items() if place.slot == slot]
    return reign.report(slot, reading=has, leaving=True)


def last_reconcile(actions: list[Action]) -> frozenset[Slot]:
    return [a.slots for a in actions if isinstance(a, Reconcile)][-1]


def test_a_consumer_that_leaves_is_relieved_at_once_and_its_slot_is_kept() -> None:
    reign = holding(RATES, BOTH)
    actions = leave(reign, A)
    assert Say("consumer.leaving", {"slot": A}) in actions
    (planned,) = [m for m in published(actions) if isinstance(m, Planned)]
    assert planned.moves == {P: B, R: B}
    (stop_,) = told(actions, StopReading)
    assert stop_.partitions == (P, R)
    starts = told(reign.stopped(stop_, A), StartReading)
    assert [s.offsets for s in starts] == [{P: 7, R: 7}]
    reign.hear(Goodbye(slot=A, epoch=stop_.epoch, next={}))
    assert last_reconcile(reign.started(starts[0], B)) == {A, B}
    assert reign.phase() == Sentinel
    assert {reign.place(p) for p in (P, Q, R)} == {reign.place(Q)}


def test_while_it_leaves_its_slot_is_given_nothing() -> None:
    reign = holding(RATES, BOTH)
    (stop_,) = told(leave(reign, A), StopReading)
    (start_,) = told(reign.stopped(stop_, A), StartReading)
    reign.hear(Goodbye(slot=A, epoch=stop_.epoch, next={}))
    reign.started(start_, B)
    assert told(reign.pack({P: A, Q: B, R: B}), StopReading) == []
    reign.hello(A)
    (moved,) = told(reign.report(A), StopReading)
    assert moved.partitions == (P,)


def test_a_packing_that_is_under_way_comes_too_late() -> None:
    reign = holding(RATES, {P: A, Q: B})
    reign.measure({P: 50.0, Q: 40.0, R: 200.0})
    assert any(isinstance(a, Pack) for a in reign.tick())
    assert reign.phase() == Reassign
    leave(reign, A)
    assert reign.phase() == Manage
    assert reign.feed(Packed(reign.now, {P: A, Q: A, R: A})) == []
    assert reign.phase() == Manage


def test_a_plan_under_way_is_turned_away_from_who_leaves() -> None:
    reign = holding(RATES, BOTH)
    (stop_,) = told(reign.tick() + packed(reign, {P: A, Q: A, R: A}), StopReading)
    assert stop_.partitions == (Q,)
    (other,) = told(leave(reign, A), StopReading)
    assert other.partitions == (P, R)
    (start_,) = told(reign.stopped(stop_, B), StartReading)
    assert start_.offsets == {Q: 7}
    assert reign.place(Q).slot == B


def packed(reign: Reign, target: dict[TopicPartition, Slot]) -> list[Action]:
    reign.measure({P: 150.0, Q: 40.0, R: 30.0})
    return reign.pack(target)


def test_who_leaves_alone_keeps_what_it_reads() -> None:
    reign = holding({P: 50.0}, {P: A})
    assert told(leave(reign, A), StopReading) == []
    assert reign.phase() == Sentinel
    assert isinstance(reign.place(P), Owned)


def test_a_newcomer_does_not_leave_because_its_predecessor_did() -> None:
    reign = holding(RATES, BOTH)
    leave(reign, A)
    assert not reign.group.member(A).usable
    reign.hello(A)
    reign.report(A)
    assert reign.group.member(A).usable


def test_a_consumer_that_leaves_and_is_ready_in_its_first_known_report_is_both() -> None:
    """Compaction keeps the last report of a slot: a new controller may know no other."""
    reign = Reign()
    reign.hello(A)
    reign.claim()
    assert reign.phase() == Synchronize
    said = reign.report(A, leaving=True)
    assert Say("consumer.ready", {"slot": A}) in said
    assert Say("consumer.leaving", {"slot": A}) in said
    assert (reign.group.member(A).ready, reign.group.member(A).usable) == (True, False)


# --- what nobody reads, without a monitor ------------------------------------------------------


def test_what_nobody_reads_goes_to_the_least_loaded_that_is_ready() -> None:
    partitions: dict[TopicPartition, State] = {P: free(), Q: owned(S1, 2), R: free()}
    plan = reader_plan(group({S1: alive(2), S2: alive(3)}, partitions, rates=RATES))
    assert plan is not None
    assert plan.target == {P: S2, Q: S1, R: S1}
    assert plan.reasons[0] == "2 without a reader, not measured lately"


def test_without_any_rate_each_gets_as_many() -> None:
    partitions: dict[TopicPartition, State] = {P: free(), Q: free(), R: owned(S1, 2)}
    plan = reader_plan(group({S1: alive(2), S2: alive(3)}, partitions))
    assert plan is not None
    assert plan.target == {P: S2, Q: S1, R: S1}


def test_if_nobody_is_ready_it_waits_for_who_will_be() -> None:
    members = {S1: alive(2, ready=False), S2: alive(3, leaving=True), S0: dead(1)}
    plan = reader_plan(group(members, {P: free()}, last_plan={P: S0}))
    assert plan is not None
    assert plan.target == {P: S1}


def test_if_nobody_lives_the_last_plans_consumers_are_started_or_slot_0() -> None:
    known = group({S1: dead(2)}, {P: free(), Q: free()}, last_plan={P: S1, Q: S2, R: Slot(100)})
    plan, first = reader_plan(known), reader_plan(replace(known, last_plan={}))
    assert plan is not None
    assert first is not None
    assert plan.target == {P: S1, Q: S2}
    assert first.target == {P: S0, Q: S0}


def test_where_everything_is_read_there_is_nothing_to_plan() -> None:
    partitions: dict[TopicPartition, State] = {P: owned(S1, 2), Q: free()}
    assert reader_plan(group({S1: alive(2)}, partitions, counts={"orders": 1})) is None


def test_what_is_gone_is_left_out() -> None:
    partitions: dict[TopicPartition, State] = {P: free(), Q: owned(S1, 2)}
    plan = reader_plan(group({S1: alive(2)}, partitions, counts={"orders": 1}))
    assert plan is not None
    assert plan.target == {P: S1}
