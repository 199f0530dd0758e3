"""The controller's side of the protocol: taking over, and what it hears."""

from binwright.core.events import (
    Broadcast,
    Destroy,
    StepDown,
    Tick,
)
from binwright.core.group import (
    Held,
    Parked,
    Place,
    Stopping,
    Unassigned,
)
from binwright.core.machine import (
    Deposed,
    Manage,
    Sentinel,
    Synchronize,
)
from binwright.core.messages import (
    Claim,
    Dead,
    Fence,
    Fenced,
    Goodbye,
    Leave,
    StartConsuming,
    StateQuery,
    StopConsuming,
)
from binwright.core.model import TopicPartition

from .reign import A, B, P, Q, Reign, holding, published, ruling, told

RATES = {P: 50.0, Q: 40.0}


# --- Synchronize -------------------------------------------------------------------------------


def test_a_reign_begins_with_a_claim_and_asks_every_slot_once_it_reads_it() -> None:
    """† asks_only_the_fleet"""
    reign = Reign()
    assert published(reign.actions) == [Claim(controller="me")]
    actions = reign.hear(Claim(controller="me"))
    assert Broadcast(StateQuery(term=1)) in actions
    assert reign.phase() == Sentinel


def test_history_is_read_before_anything_is_done() -> None:
    """† reads_from_claim"""
    reign = Reign()
    epoch = reign.hello(A)
    reign.report(A, term=0)
    assert reign.phase() == Synchronize
    reign.claim()
    assert reign.phase() == Synchronize, "the living must answer first"
    reign.report(A, held=[P])
    assert reign.phase() == Sentinel
    assert reign.place(P) == Place(Held(A, epoch))


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


def test_who_does_not_answer_in_time_is_declared_dead_and_fenced() -> None:
    reign = Reign()
    reign.hello(A)
    reign.hello(B)
    reign.report(B, term=0)
    reign.claim()
    reign.report(B)
    reign.measure(dict(RATES))
    actions = []
    for _ in range(12):  # it goes on reporting, but it does not hear us
        actions += reign.tick()
        reign.report(A, term=0)
        reign.report(B)
    assert published(actions) == [Dead(slot=A, term=3 + 0)] or Dead(
        slot=A, term=reign.group.term or 0
    ) in published(actions)
    reign.hear(Dead(slot=A, term=reign.group.term or 0))
    number = reign.offset
    assert reign.phase() == Sentinel
    (start,) = told(reign.pack({P: B, Q: B}), StartConsuming)
    assert start.fences == (Fence(slot=A, number=number),)
    assert set(start.offsets.values()) == {None}


def test_a_fence_that_is_recorded_is_not_raised_again() -> None:
    reign = Reign()
    reign.hello(A)
    reign.hear(Dead(slot=A, term=0))
    reign.hear(Fenced(slot=A, number=reign.offset, topic="orders"))
    reign.hear(Fenced(slot=A, number=1, topic="orders"))
    reign.claim()
    reign.hello(B)
    reign.report(B)
    reign.measure({P: 1.0, TopicPartition("clicks", 0): 1.0})
    assert reign.place(P).owed == frozenset()
    assert reign.place(TopicPartition("clicks", 0)).owed == {A}


def test_who_left_with_a_goodbye_is_owed_nothing() -> None:
    reign = Reign()
    epoch = reign.hello(A)
    reign.report(A)
    reign.hear(Goodbye(slot=A, epoch=epoch, landed={}))
    reign.claim()
    reign.measure({P: 1.0})
    assert reign.place(P) == Place(Unassigned())


def test_what_is_closing_is_stopped_again() -> None:
    reign = Reign()
    epoch = reign.hello(A)
    reign.claim()
    (stop,) = told(reign.report(A, closing=[P]), StopConsuming)
    assert stop.partitions == (P,)
    assert isinstance(reign.place(P).at, Stopping)
    assert stop.epoch == epoch
    reign.stopped(stop, A)
    assert reign.place(P).at == Parked(7)


def test_what_two_hold_is_stopped_at_both_and_placed_without_their_word() -> None:
    """†"""
    reign = Reign()
    reign.hello(A)
    reign.hello(B)
    reign.claim()
    reign.report(A, held=[P])
    stops = told(reign.report(B, held=[P]), StopConsuming)
    assert len(stops) == 2
    reign.stopped(stops[0], A, 5)
    assert isinstance(reign.place(P).at, Stopping)
    reign.stopped(stops[1], B, 9)
    assert reign.place(P).at == Unassigned()


def test_of_two_holders_one_may_die() -> None:
    reign = Reign()
    reign.hello(A)
    reign.hello(B)
    reign.claim()
    reign.report(A, held=[P])
    stops = told(reign.report(B, held=[P]), StopConsuming)
    reign.hear(Dead(slot=A, term=0))
    assert reign.place(P).owed == {A}
    reign.stopped(stops[1], B, 9)
    assert reign.place(P) == Place(Unassigned(), frozenset({A}))


def test_what_is_known_before_the_term_is_placed_when_it_begins() -> None:
    reign = Reign()
    reign.measure({P: 1.0})
    assert reign.group.places == {}
    reign.claim()
    assert reign.place(P) == Place(Unassigned())


# --- words of the living and the dead ----------------------------------------------------------


def test_a_newcomer_takes_everything_from_its_predecessor() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.hello(A)
    assert reign.place(P) == Place(Unassigned(), frozenset({A}))


def test_a_newcomers_claims_shut_out_what_is_older() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    reign.hello(A)
    reign.report(A)
    (start,) = told(reign.pack({P: B, Q: B}), StartConsuming)
    assert (start.fences, set(start.offsets.values())) == ((), {None})


def test_the_voided_are_told_to_leave() -> None:
    """† voided_not_told, old_epoch_acks"""
    reign = holding(RATES, {P: A, Q: A})
    old = reign.group.member(A).hello
    assert Destroy(A) in reign.hear(Dead(slot=A, term=0))
    assert told(reign.report(A, held=[P, Q], epoch=old), Leave) == [
        Leave(term=reign.group.term or 0, epoch=old or 0)
    ]
    assert reign.hear(Goodbye(slot=A, epoch=old or 0, landed={P: 9})) == []
    assert reign.place(P).at == Unassigned()


def test_a_dead_of_a_deposed_controller_counts() -> None:
    """† ignores_deposed_dead"""
    reign = holding(RATES, {P: A, Q: A})
    reign.hear(Dead(slot=A, term=0))
    assert reign.place(P) == Place(Unassigned(), frozenset({A}))
    assert reign.hear(Dead(slot=A, term=0)) == []  # nobody lives there any more


def test_a_goodbye_settles_what_it_names() -> None:
    reign = holding(RATES, {P: A, Q: A})
    epoch = reign.group.member(A).epoch or 0
    reign.hear(Goodbye(slot=A, epoch=epoch, landed={P: 9}))
    assert reign.place(P) == Place(Parked(9))
    assert reign.place(Q) == Place(Unassigned())


def test_a_goodbye_says_nothing_of_what_others_hold() -> None:
    reign = holding(RATES, {P: A, Q: B})
    before = reign.place(Q)
    reign.hear(Goodbye(slot=A, epoch=reign.group.member(A).epoch or 0, landed={P: 9, Q: 1}))
    assert reign.place(Q) == before


def test_before_the_own_claim_is_read_nobody_is_declared_dead() -> None:
    reign = Reign()
    reign.hello(A)
    assert reign.tick(20) == []


def test_a_goodbye_before_ready_promises_nothing() -> None:
    reign = ruling(RATES)
    epoch = reign.hello(A)
    reign.hear(Goodbye(slot=A, epoch=epoch, landed={}))
    assert reign.group.member(A).epoch == epoch


def test_a_goodbye_answers_the_stop_that_is_out() -> None:
    reign = holding({P: 70.0, Q: 60.0}, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    (stop,) = told(reign.pack({P: A, Q: B}), StopConsuming)
    assert stop.partitions == (Q,)
    actions = reign.hear(Goodbye(slot=A, epoch=stop.epoch, landed={P: 4, Q: 9}))
    (start,) = told(actions, StartConsuming)
    assert start.offsets == {Q: 9}


def test_a_silent_consumer_is_declared_dead_once_and_again_if_that_is_lost() -> None:
    reign = holding(RATES, {P: A, Q: A})
    assert published(reign.tick(10)) == []
    assert published(reign.tick(2)) == [Dead(slot=A, term=1)]
    assert published(reign.tick(5)) == []
    assert published(reign.tick(8)) == [Dead(slot=A, term=1)]


def test_a_controller_that_slept_blames_nobody() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.now += 60
    assert published(reign.feed(Tick(reign.now))) == []
    assert published(reign.tick(9)) == []


def test_a_report_that_denies_what_is_believed_leads_to_synchronize() -> None:
    reign = holding(RATES, {P: A, Q: A})
    actions = reign.report(A, held=[P])
    assert published(actions) == [Claim(controller="me")]
    assert reign.phase() == Synchronize
    reign.claim()
    reign.report(A, held=[P])
    assert reign.phase() == Sentinel
    assert reign.place(Q).free


def test_a_report_of_what_another_holds_leads_to_synchronize_too() -> None:
    reign = holding(RATES, {P: A, Q: B})
    reign.report(B, held=[P, Q])
    assert reign.phase() == Synchronize


def test_a_report_during_a_move_denies_nothing() -> None:
    reign = holding({P: 70.0, Q: 60.0}, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    reign.pack({P: A, Q: B})
    reign.report(A, held=[P], closing=[Q])
    assert reign.phase() == Manage
