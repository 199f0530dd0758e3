"""Who was asked to end is relieved of what it reads before it ends."""

from dataclasses import replace

import pytest

from binwright.core import handover
from binwright.core.events import Action, Pack, Packed, Reconcile, Say, Tell
from binwright.core.group import Held, Member, Parked, Place
from binwright.core.handover import Consumer, Exit, Fetch, Quit, Reply, ReportNow, claimed, obey
from binwright.core.machine import Manage, Reassign, Sentinel, Synchronize
from binwright.core.messages import (
    Goodbye,
    Planned,
    StartConsuming,
    Started,
    StateQuery,
    StopConsuming,
)
from binwright.core.model import Slot, TopicPartition
from binwright.core.relief import comfort, leavers, relief, relieved

from .builders import NOW, S0, S1, S2, alive, free, group, held, start, stopping, tailed
from .builders import stopped as has_stopped
from .reign import A, B, P, Q, Reign, holding, published, told

R = TopicPartition("orders", 2)
EPOCH, TERM = 10, 50
RATES = {P: 55.0, Q: 40.0, R: 30.0}
BOTH = {P: A, Q: B, R: A}


def reading(*partitions: TopicPartition) -> Consumer:
    consumer, _ = claimed(Consumer(S0, EPOCH, term=TERM))
    return obey(consumer, start(EPOCH, dict.fromkeys(partitions, 3)), 0)[0]


def stop(*partitions: TopicPartition) -> StopConsuming:
    return StopConsuming(term=TERM, revision=8, epoch=EPOCH, partitions=partitions)


GOODBYE = (Reply(Goodbye(slot=S0, epoch=EPOCH, landed={})), Exit("asked to"))


# --- the consumer's side -----------------------------------------------------------------------


def test_who_is_asked_to_end_says_so_and_reads_on() -> None:
    consumer, deeds = handover.leave(reading(P))
    assert deeds == (ReportNow(),)
    assert consumer.leaving
    assert consumer.reading() == {P}
    assert handover.leave(consumer) == (consumer, ())


def test_who_has_nothing_goes_at_once() -> None:
    consumer, deeds = handover.leave(reading())
    assert deeds == GOODBYE
    assert consumer.ended


def test_who_is_not_ready_goes_without_a_word() -> None:
    _, deeds = handover.leave(Consumer(S0, EPOCH))
    assert deeds == (Exit("asked to, before it was ready"),)
    _, deeds = handover.drain(Consumer(S0, EPOCH))
    assert deeds == (Exit("asked to, before it was ready"),)


def test_the_last_stop_is_answered_and_then_goodbye_is_said() -> None:
    consumer, _ = handover.leave(reading(P, Q))
    consumer, deeds = obey(consumer, stop(P), 0)
    assert deeds == (Quit(P), Reply(has_stopped(S0, EPOCH, {P: 3}, 8)))
    consumer, deeds = obey(consumer, stop(Q), 0)
    assert deeds == (Quit(Q), Reply(has_stopped(S0, EPOCH, {Q: 3}, 8)), *GOODBYE)
    assert obey(consumer, start(EPOCH, {P: 9}), 0) == (consumer, ())


def test_goodbye_waits_for_a_write_whose_partitions_have_been_taken() -> None:
    """† bye_in_flight"""
    consumer, _ = handover.leave(handover.handed(reading(P), {P: 5}))
    consumer, deeds = obey(consumer, stop(P), 0)
    assert Exit("asked to") not in deeds
    assert not consumer.ended
    _, (_, *farewell) = handover.settled(consumer)
    assert tuple(farewell) == GOODBYE


def test_a_start_that_crosses_the_wish_to_leave_is_obeyed() -> None:
    """It is answered, as every command is; the controller moves the partition away again."""
    consumer, _ = handover.leave(reading(P))
    consumer, deeds = obey(consumer, start(EPOCH, {Q: 4}), 0)
    begun = Started(slot=S0, epoch=EPOCH, revision=7, offsets={Q: 4})
    assert deeds == (Fetch(Q, 4), Reply(begun))
    assert consumer.reading() == {P, Q}


def test_who_waits_in_vain_quits_everything() -> None:
    consumer, _ = handover.leave(reading(P))
    consumer, deeds = handover.drain(consumer)
    goodbye = Goodbye(slot=S0, epoch=EPOCH, landed={P: 3})
    assert deeds == (Quit(P), Reply(goodbye), Exit("asked to"))
    assert handover.drain(consumer) == (consumer, ())


# --- where it all goes -------------------------------------------------------------------------

THREE = {S0: alive(1, leaving=True), S1: alive(2), S2: alive(3)}


def test_the_largest_goes_first_and_to_the_least_loaded() -> None:
    places = {P: held(S0, 1), Q: held(S1, 2), R: held(S0, 1)}
    known = group(THREE, places, rates=RATES)
    assert relieved(known, {P: S0, Q: S1, R: S0}) == {P: S2, Q: S1, R: S1}


def test_without_rates_partitions_are_counted() -> None:
    known = group(THREE, {P: held(S0, 1), Q: held(S0, 1)})
    assert relieved(known, {P: S0, Q: S0}) == {P: S1, Q: S2}


def test_what_another_still_reads_waits_for_the_slots_newcomer() -> None:
    known = group(THREE, {P: held(S1, 2)})
    assert relieved(known, {P: S0}) == {P: S0}


def test_what_nobody_reads_does_not_wait() -> None:
    known = group(THREE, {P: free(), Q: Place(Parked(4))})
    assert relieved(known, {P: S0, Q: S0, R: S0}) == {P: S1, Q: S2, R: S1}


def test_with_nobody_else_there_everything_waits() -> None:
    known = group({S0: THREE[S0], S1: alive(2, ready=False)}, {P: held(S0, 1)})
    assert relieved(known, {P: S0}) == {P: S0}
    assert leavers(known) == {S0}
    assert relief(known) is None


def test_who_has_nothing_left_needs_no_relief() -> None:
    assert leavers(group(THREE, {P: stopping({S0: 1}), Q: held(S1, 2)})) == frozenset()
    assert relief(group(THREE, {P: held(S1, 2)})) is None
    assert leavers(group({S1: alive(2)}, {P: held(S1, 2)})) == frozenset()


@pytest.mark.parametrize(
    "other", [alive(2), alive(2, ready=False), alive(2, goodbye=2, leaving=True)]
)
def test_who_leaves_hears_that_somebody_is_there_or_will_be(other: Member) -> None:
    known = group({S0: THREE[S0], S1: other}, {P: held(S0, 1)})
    assert comfort(known) == (Tell(S0, StateQuery(term=TERM)),)
    assert comfort(replace(known, term=None)) == ()


@pytest.mark.parametrize("other", [alive(2, goodbye=2), alive(2, leaving=True)])
def test_who_leaves_with_nobody_to_come_hears_nothing(other: Member) -> None:
    assert comfort(group({S0: THREE[S0], S1: other}, {P: held(S0, 1)})) == ()


def test_a_relief_finds_a_reader_for_what_nobody_reads_too() -> None:
    known = group(THREE, {P: held(S0, 1), Q: free()}, rates=RATES)
    plan = relief(known)
    assert plan is not None
    assert plan.target == {P: S1, Q: S2}
    assert plan.reasons[0] == "consumer 0 was asked to end"


def test_a_relief_leaves_out_what_is_gone() -> None:
    places = {P: held(S0, 1), Q: held(S0, 1)}
    plan = relief(group(THREE, places, there={"orders": range(1)}))
    assert plan is not None
    assert plan.target.keys() == {P}


# --- the controller's side ---------------------------------------------------------------------


def leave(reign: Reign, slot: Slot) -> list[Action]:
    has = [p for p, place in reign.group.places.items() if place.slot == slot]
    return reign.report(slot, held=has, leaving=True)


def last_reconcile(actions: list[Action]) -> frozenset[Slot]:
    return [a.slots for a in actions if isinstance(a, Reconcile)][-1]


def test_a_consumer_that_leaves_is_relieved_at_once_and_its_slot_is_kept() -> None:
    reign = holding(RATES, BOTH)
    actions = leave(reign, A)
    assert Say("consumer.leaving", {"slot": A}) in actions
    (planned,) = [m for m in published(actions) if isinstance(m, Planned)]
    assert planned.moves == {P: B, R: B}
    (stop_,) = told(actions, StopConsuming)
    assert stop_.partitions == (P, R)
    starts = told(reign.stopped(stop_, A), StartConsuming)
    assert [s.offsets for s in starts] == [{P: 7, R: 7}]
    reign.hear(Goodbye(slot=A, epoch=stop_.epoch, landed={}))
    assert last_reconcile(reign.started(starts[0], B)) == {A, B}
    assert reign.phase() == Sentinel
    assert {reign.place(p) for p in (P, Q, R)} == {reign.place(Q)}


def test_while_it_leaves_its_slot_is_given_nothing() -> None:
    reign = holding(RATES, BOTH)
    (stop_,) = told(leave(reign, A), StopConsuming)
    (start_,) = told(reign.stopped(stop_, A), StartConsuming)
    reign.hear(Goodbye(slot=A, epoch=stop_.epoch, landed={}))
    reign.started(start_, B)
    assert told(reign.pack({P: A, Q: B, R: B}), StopConsuming) == []
    reign.hello(A)
    (moved,) = told(reign.report(A), StopConsuming)
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
    (stop_,) = told(reign.tick() + packed(reign, {P: A, Q: A, R: A}), StopConsuming)
    assert stop_.partitions == (Q,)
    (other,) = told(leave(reign, A), StopConsuming)
    assert other.partitions == (P, R)
    (start_,) = told(reign.stopped(stop_, B), StartConsuming)
    assert start_.offsets == {Q: 7}
    assert reign.place(Q).slot == B


def packed(reign: Reign, target: dict[TopicPartition, Slot]) -> list[Action]:
    reign.measure({P: 150.0, Q: 40.0, R: 30.0})
    return reign.pack(target)


def test_who_leaves_alone_keeps_what_it_reads() -> None:
    reign = holding({P: 50.0}, {P: A})
    assert told(leave(reign, A), StopConsuming) == []
    assert reign.phase() == Sentinel
    assert isinstance(reign.place(P).at, Held)


def test_a_newcomer_does_not_leave_because_its_predecessor_did() -> None:
    reign = holding(RATES, BOTH)
    leave(reign, A)
    assert not reign.group.member(A).usable
    reign.hello(A)
    reign.report(A)
    assert reign.group.member(A).usable


def test_who_is_leaving_and_ready_in_its_first_known_report_pays_its_slots_debts() -> None:
    """Compaction keeps the last report of a slot: a new controller may know no other."""
    reign = Reign()
    reign.hello(A)
    reign.claim()
    assert reign.phase() == Synchronize
    said = reign.report(A, leaving=True)
    assert Say("consumer.ready", {"slot": A}) in said
    assert Say("consumer.leaving", {"slot": A}) in said
    assert reign.group.member(A).claimed
    assert reign.group.doubt == frozenset()


def test_what_is_still_landing_waits_for_its_word_before_it_moves_on() -> None:
    places = {P: tailed(held(S0, 1), (S1, 2))}
    assert leavers(group(THREE, places, ticked_at=NOW)) == {S0}
