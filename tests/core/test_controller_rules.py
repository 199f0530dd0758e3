"""The controller's side of the protocol: taking over, and what it hears."""

from binwright.core.events import (
    Broadcast,
    Destroy,
    StepDown,
    Tick,
)
from binwright.core.messages import (
    Claim,
    Dead,
    Goodbye,
    Leave,
    StartReading,
    StateQuery,
    StopReading,
)
from binwright.core.ownership import Owned, Released
from binwright.core.states import Deposed, Manage, Sentinel, Synchronize

from .reign import A, B, P, Q, Reign, holding, published, ruling, told

RATES = {P: 50.0, Q: 40.0}


# --- Synchronize -------------------------------------------------------------------------------


def test_a_reign_begins_with_a_claim_and_asks_every_slot_once_it_reads_it() -> None:
    reign = Reign()
    assert published(reign.actions) == [Claim(controller="me")]
    actions = reign.hear(Claim(controller="me"))
    assert Broadcast(StateQuery(term=1)) in actions
    assert reign.phase() == Sentinel


def test_history_is_read_before_anything_is_done() -> None:
    reign = Reign()
    epoch = reign.hello(A)
    reign.report(A, term=0)
    assert reign.phase() == Synchronize
    reign.claim()
    assert reign.phase() == Synchronize, "the living must answer first"
    reign.report(A, reading=[P])
    assert reign.phase() == Sentinel
    assert reign.place(P) == Owned(A, epoch)


def test_somebody_elses_earlier_claim_means_nothing() -> None:
    reign = Reign()
    reign.hear(Claim(controller="other"))
    reign.claim()
    assert reign.phase() == Sentinel


def test_a_later_claim_ends_the_reign() -> None:
    for reign in (ruling(RATES), holding(RATES, {P: A, Q: A})):
        assert reign.hear(Claim(controller="other")) == [StepDown(reign.offset)]
        assert reign.phase() == Deposed
        assert reign.tick(5) == []
    reign = Reign()
    reign.hello(A)
    reign.claim()
    assert reign.hear(Claim(controller="other")) == [StepDown(reign.offset)]


def test_the_own_claim_read_twice_means_nothing() -> None:
    reign = ruling(RATES)
    reign.claim()
    assert reign.phase() == Sentinel


def test_who_does_not_answer_in_time_is_declared_dead_and_its_partitions_go_on() -> None:
    """At the last offset it reported, though it never answered this controller."""
    reign = Reign()
    epoch = reign.hello(A)
    reign.hello(B)
    reign.report(A, term=0, reading={P: 8})
    reign.claim()
    reign.report(B)
    reign.measure(dict(RATES))
    actions = []
    for _ in range(12):  # it goes on reporting, but it does not read our question
        actions += reign.tick()
        reign.report(A, term=0, reading={P: 9})
        reign.report(B)
    assert published(actions) == [Dead(slot=A, epoch=epoch, term=reign.group.term or 0)]
    reign.dead(A)
    assert reign.phase() == Sentinel
    (start,) = told(reign.pack({P: B, Q: B}), StartReading)
    assert start.offsets == {P: 9, Q: None}


def test_what_two_read_goes_on_with_one_and_is_stopped_at_the_other() -> None:
    reign = Reign()
    epoch = reign.hello(A)
    reign.hello(B)
    reign.claim()
    reign.report(A, reading=[P])
    (stop,) = told(reign.report(B, reading=[P]), StopReading)
    assert stop.epoch == reign.group.member(B).epoch
    assert reign.phase() == Sentinel
    assert reign.place(P) == Owned(A, epoch)
    reign.stopped(stop, B, 9)
    assert reign.place(P) == Owned(A, epoch)


def test_what_was_measured_before_the_term_is_placed_when_it_begins() -> None:
    reign = Reign()
    reign.measure({P: 1.0})
    assert reign.group.partitions == {}
    reign.claim()
    assert reign.place(P) == Released()


# --- words of the living and the dead ----------------------------------------------------------


def test_a_newcomer_takes_everything_from_its_predecessor() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.hello(A)
    assert reign.place(P) == Released(7)


def test_the_voided_are_told_to_leave() -> None:
    reign = holding(RATES, {P: A, Q: A})
    old = reign.group.member(A).hello
    assert Destroy(A) in reign.dead(A)
    assert told(reign.report(A, reading=[P, Q], epoch=old), Leave) == [
        Leave(term=reign.group.term or 0, epoch=old or 0)
    ]
    assert reign.hear(Goodbye(slot=A, epoch=old or 0, next={P: 9})) == []
    assert reign.place(P) == Released(7)


def test_a_dead_of_a_deposed_controller_counts() -> None:
    reign = holding(RATES, {P: A, Q: A})
    epoch = reign.group.member(A).epoch or 0
    reign.dead(A)
    assert reign.place(P) == Released(7)
    assert reign.hear(Dead(slot=A, epoch=epoch, term=0)) == []  # nobody lives there any more


def test_a_goodbye_settles_what_it_names() -> None:
    reign = holding(RATES, {P: A, Q: A})
    epoch = reign.group.member(A).epoch or 0
    reign.hear(Goodbye(slot=A, epoch=epoch, next={P: 9}))
    assert reign.place(P) == Released(9)
    assert reign.place(Q) == Released()


def test_a_goodbye_says_nothing_of_what_others_hold() -> None:
    reign = holding(RATES, {P: A, Q: B})
    before = reign.place(Q)
    reign.hear(Goodbye(slot=A, epoch=reign.group.member(A).epoch or 0, next={P: 9, Q: 1}))
    assert reign.place(Q) == before


def test_before_the_own_claim_is_read_nobody_is_declared_dead() -> None:
    reign = Reign()
    reign.hello(A)
    assert reign.tick(20) == []


def test_a_goodbye_answers_the_stop_that_is_out() -> None:
    reign = holding({P: 70.0, Q: 60.0}, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    (stop,) = told(reign.pack({P: A, Q: B}), StopReading)
    assert stop.partitions == (Q,)
    actions = reign.hear(Goodbye(slot=A, epoch=stop.epoch, next={P: 4, Q: 9}))
    (start,) = told(actions, StartReading)
    assert start.offsets == {P: 4, Q: 9}


def test_a_silent_consumer_is_declared_dead_once_and_again_if_that_is_lost() -> None:
    reign = holding(RATES, {P: A, Q: A})
    epoch = reign.group.member(A).epoch or 0
    assert published(reign.tick(10)) == []
    assert published(reign.tick(2)) == [Dead(slot=A, epoch=epoch, term=1)]
    assert published(reign.tick(5)) == []
    assert published(reign.tick(8)) == [Dead(slot=A, epoch=epoch, term=1)]


def test_a_controller_that_slept_blames_nobody() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.now += 60
    assert published(reign.feed(Tick(reign.now))) == []
    assert published(reign.tick(9)) == []


def test_a_report_that_denies_what_is_believed_leads_to_synchronize() -> None:
    reign = holding(RATES, {P: A, Q: A})
    actions = reign.report(A, reading=[P])
    assert published(actions) == [Claim(controller="me")]
    assert reign.phase() == Synchronize
    reign.claim()
    reign.report(A, reading=[P])
    assert reign.phase() == Sentinel
    assert reign.place(Q) == Released()


def test_a_report_of_what_another_reads_is_answered_with_a_stop() -> None:
    reign = holding(RATES, {P: A, Q: B})
    (stop,) = told(reign.report(B, reading=[P, Q]), StopReading)
    assert stop.partitions == (P,)
    assert reign.phase() == Sentinel


def test_a_report_during_a_move_denies_nothing() -> None:
    reign = holding({P: 70.0, Q: 60.0}, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    reign.pack({P: A, Q: B})
    reign.report(A, reading=[P])
    assert reign.phase() == Manage
