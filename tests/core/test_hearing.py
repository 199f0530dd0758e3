"""What each record of partition 0 does, and what stale ones must not do."""

import pytest

from binwright.core.events import Destroy, Publish, Tell
from binwright.core.group import Group, Held, Member, Parked, Place
from binwright.core.hearing import condemn, contradiction, hear, overtaken, take_answer
from binwright.core.messages import Claim, Inbound, Leave, Planned

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
    death,
    fence,
    fenced,
    free,
    goodbye,
    group,
    heard,
    held,
    hello,
    report,
    start,
    started,
    starting,
    stopped,
    stopping,
    tailed,
)


def takes(known: Group, message: Inbound, offset: int = 90) -> Group:
    """Hear a record as a controller that reigns does."""
    known, _ = hear(known, heard(message, offset))
    return take_answer(known, message, NOW)[0]


# --- claims ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("controller", "offset"), [("me", TERM + 1), ("other", TERM - 1)])
def test_only_somebody_elses_later_claim_overtakes(controller: str, offset: int) -> None:
    assert overtaken(group({}), heard(Claim(controller=controller), offset)) is None
    assert overtaken(group({}), heard(Claim(controller="other"), TERM + 1)) == TERM + 1
    assert overtaken(group({}), heard(hello(S0), TERM + 1)) is None


def test_claims_and_plans_say_nothing_of_consumers() -> None:
    plan = Planned(
        term=TERM, reasons=(), consumers=1, moves={}, rscore=0, rates={}, targets={P: S0}
    )
    for message in (Claim(controller="other"), plan):
        assert hear(group({S0: alive(1)}), heard(message)) == (group({S0: alive(1)}), ())


# --- Hello, Dead, Goodbye ----------------------------------------------------------------------


def test_a_newcomer_is_not_ready_and_has_answered_nothing() -> None:
    known, _ = hear(group({S0: alive(1, answered=TERM, condemned_at=NOW)}), heard(hello(S0)))
    assert known.members == {S0: Member(hello=90, heard_at=NOW, arrived_at=NOW)}


def test_a_newcomer_owes_what_its_predecessor_held() -> None:
    known, _ = hear(group({S0: alive(1)}, {P: held(S0, 1)}), heard(hello(S0)))
    assert known.places == {P: free(S0)}


@pytest.mark.parametrize("term", [TERM, TERM - 1, TERM + 1])
def test_a_dead_voids_every_hello_before_it_whoever_wrote_it(term: int) -> None:
    """† ignores_deposed_dead: a deposed controller's counts too."""
    known, actions = hear(group({S0: alive(1)}, {P: held(S0, 1)}), heard(death(S0, term)))
    assert known.member(S0).epoch is None
    assert known.places == {P: free(S0)}
    assert Destroy(S0) in actions


def test_a_hello_after_a_dead_is_new() -> None:
    known, _ = hear(group({S0: dead(80)}), heard(hello(S0)))
    assert known.member(S0).epoch == 90


def test_a_dead_of_nobody_ends_nobody() -> None:
    known, actions = hear(group({S0: alive(1, goodbye=1)}), heard(death(S0)))
    assert known.member(S0).left_nothing
    assert actions == ()


def test_a_dead_in_history_ends_nobody_but_voids() -> None:
    known, actions = hear(group({S0: alive(1)}, term=None), heard(death(S0)))
    assert known.member(S0).epoch is None
    assert actions == ()


def test_after_a_dead_nothing_of_that_epoch_counts() -> None:
    """† old_epoch_acks"""
    known = group({S0: Member(hello=1, dead=9, ready=True)}, {P: stopping({S0: 1})})
    for message in (stopped(S0, 1, {P: 5}), goodbye(S0, 1, {P: 5}), report(S0, 1, held=[P])):
        assert takes(known, message) == known


def test_a_goodbye_owes_nothing() -> None:
    known = takes(group({S0: alive(1)}, {P: held(S0, 1)}), goodbye(S0, 1, {P: 8}))
    assert known.places == {P: Place(Parked(8))}
    assert known.member(S0).left_nothing


def test_a_goodbye_before_ready_promises_nothing() -> None:
    """† bye_in_flight: without standing claims older epochs of its slot may still write."""
    known = takes(group({S0: alive(1, ready=False)}), goodbye(S0, 1, {}))
    assert known.member(S0).epoch == 1


def test_a_goodbye_said_again_does_not_speak_for_the_newcomer() -> None:
    """† Believed, it would start elsewhere, at an offset of long ago, what the newcomer holds."""
    known = group({S0: alive(60, goodbye=1)}, {P: held(S0, 60), Q: stopping({S0: 60})})
    assert takes(known, goodbye(S0, 1, {P: 3, Q: 3})).places == known.places


# --- words of the voided and the superseded ----------------------------------------------------


@pytest.mark.parametrize("member", [alive(60), dead(60), alive(1, goodbye=1)])
def test_who_reports_from_an_epoch_that_is_no_more_is_told_to_leave(member: Member) -> None:
    """† voided_not_told: an idle one would never learn it."""
    _, actions = hear(group({S0: member}), heard(report(S0, 1, held=[P])))
    assert actions == (Tell(S0, Leave(term=TERM, epoch=1)),)


def test_history_is_not_answered() -> None:
    for known, offset in ((group({S0: alive(60)}), TERM - 1), (group({}, term=None), 90)):
        assert hear(known, heard(report(S0, 1), offset)) == (known, ())


def test_other_words_of_the_superseded_are_dropped() -> None:
    known = group({S0: alive(60)})
    assert hear(known, heard(stopped(S0, 1, {P: 1}))) == (known, ())


def test_every_word_is_a_sign_of_life() -> None:
    for message in (report(S0, 1), stopped(S0, 1, {}), started(S0, 1, [])):
        known, _ = hear(group({S0: alive(1)}), heard(message, now=NOW + 5))
        assert known.member(S0).heard_at == NOW + 5


# --- readiness ---------------------------------------------------------------------------------


def test_claims_that_stand_pay_for_all_older_epochs_of_the_slot() -> None:
    known = group({S0: alive(60, ready=False)}, {P: free(S0, S1)}, doubt=frozenset({S0}))
    known, actions = hear(known, heard(report(S0, 60)))
    assert known.places == {P: free(S1)}
    assert known.doubt == frozenset()
    assert len(actions) == 1


def test_a_report_without_claims_pays_for_nothing() -> None:
    """† ready_not_awaited"""
    known = group({S0: alive(60, ready=False)}, {P: free(S0)})
    known, actions = hear(known, heard(report(S0, 60, ready=False)))
    assert known.places == {P: free(S0)}
    assert (known.member(S0).usable, known.member(S0).answered) == (False, TERM)
    assert actions == ()


# --- answers -----------------------------------------------------------------------------------


def test_a_started_makes_it_held_and_records_its_fences_for_its_tables() -> None:
    command = start(1, {P: None, C: None}, [fence(S1, 9)])
    places = {P: starting(S0, command, S1), C: starting(S0, command, S1), Q: free(S1)}
    known = group({S0: alive(1), S1: dead(9)}, places)
    known, actions = take_answer(known, started(S0, 1, [P], [fence(S1, 9)]), NOW)
    assert known.places == {P: held(S0, 1), C: starting(S0, command, S1), Q: free()}
    assert actions == (Publish(fenced(S1, 9)),)


def test_a_fence_does_not_pay_for_a_later_death() -> None:
    known = group({S0: alive(1), S1: dead(12)}, {P: starting(S0, start(1, {P: None}), S1)})
    known, actions = take_answer(known, started(S0, 1, [P], [fence(S1, 9)]), NOW)
    assert known.places == {P: held(S0, 1, S1)}
    assert actions == (Publish(fenced(S1, 9)),)


def test_a_fence_does_not_pay_for_an_epoch_that_came_after_it() -> None:
    """† An epoch of slot 1 since superseded held Q: only its newcomer's claims shut it out."""
    newcomer = Member(hello=12, dead=9)
    places = {P: starting(S0, start(1, {P: None}), S1), Q: free(S1)}
    known = group({S0: alive(1), S1: newcomer}, places)
    known, _ = take_answer(known, started(S0, 1, [P], [fence(S1, 9)]), NOW)
    assert known.places[Q] == free(S1)


def test_a_started_that_matches_nothing_records_no_fence() -> None:
    known = group({S0: alive(1), S1: dead(9)}, {P: held(S2, 3, S1)})
    assert take_answer(known, started(S0, 1, [P], [fence(S1, 9)]), NOW) == (known, ())


@pytest.mark.parametrize("message", [started(S0, 1, [P]), stopped(S0, 1, {P: 4})])
def test_answers_of_older_epochs_change_nothing(message: Inbound) -> None:
    """† old_epoch_acks"""
    for place in (starting(S0, start(60, {P: 4})), stopping({S0: 60})):
        known = group({S0: alive(60)}, {P: place})
        assert take_answer(known, message, NOW) == (known, ())


def test_a_fence_recorded_before_a_higher_one_changes_nothing() -> None:
    known, _ = hear(group({}), heard(fenced(S1, 9)))
    known, _ = hear(known, heard(fenced(S1, 4)))
    assert known.fenced == {(S1, "orders"): 9}


# --- contradictions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [held(S0, 1), starting(S0, start(1, {P: 4})), stopping({S0: 1}), stopping({S1: 2})],
)
def test_a_report_that_may_be_as_believed_denies_nothing(place: Place) -> None:
    known = group({S0: alive(1), S1: alive(2)}, {P: place})
    for said in (report(S0, 1, held=[P]), report(S0, 1, opening=[P]), report(S0, 1, closing=[P])):
        assert contradiction(known, said) is None


def test_who_does_not_hold_what_is_believed_of_it_denies_it() -> None:
    known = group({S0: alive(1)}, {P: held(S0, 1)})
    assert contradiction(known, report(S0, 1)) == "consumer 0 does not hold orders-0"


@pytest.mark.parametrize("place", [held(S1, 2), starting(S1, start(2, {P: 4}))])
def test_who_holds_what_another_has_denies_it(place: Place) -> None:
    known = group({S0: alive(1), S1: alive(2)}, {P: place})
    told = contradiction(known, report(S0, 1, held=[P]))
    assert told == "consumer 0 holds orders-0, and so does 1"


def test_who_reads_ahead_as_it_should_denies_nothing() -> None:
    known = group({S0: alive(1), S1: alive(2)}, {P: tailed(held(S1, 2), (S0, 1))})
    assert contradiction(known, report(S1, 2, ahead=[P])) is None
    assert contradiction(known, report(S0, 1, closing=[P])) is None


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (tailed(held(S1, 2), (S0, 1)), report(S1, 2, held=[P])),
        (held(S1, 2), report(S1, 2, ahead=[P])),
    ],
)
def test_who_lands_what_it_should_not_or_does_not_land_what_it_should_denies_it(
    place: Place, said: Inbound
) -> None:
    """† Two that land one partition is what everything else is there to prevent."""
    known = group({S0: alive(1), S1: alive(2)}, {P: place})
    told = contradiction(known, said)
    assert told == "consumer 1 and the controller differ on who lands orders-0"


def test_whose_last_write_nobody_knows_of_denies_it() -> None:
    known = group({S0: alive(1), S1: alive(2)}, {P: held(S1, 2)})
    told = contradiction(known, report(S0, 1, closing=[P]))
    assert told == "consumer 0 holds orders-0, and so does 1"


def test_the_superseded_deny_nothing() -> None:
    known = group({S0: alive(60)}, {P: Place(Held(S0, 60))})
    assert contradiction(known, report(S0, 1)) is None
    assert contradiction(known, hello(S0)) is None


# --- condemning --------------------------------------------------------------------------------


def test_the_silent_are_declared_dead_and_the_gone_are_not() -> None:
    members = {S0: alive(1), S1: dead(9), S2: alive(3, goodbye=3)}
    known = group(members, ticked_at=NOW + 10)
    assert condemn(known, NOW + 10)[1] == ()
    known, actions = condemn(known, NOW + 11)
    assert actions == (Publish(death(S0)),)
    assert condemn(known, NOW + 12)[1] == ()


def test_a_condemned_one_is_condemned_again_if_the_word_was_lost() -> None:
    known = group({S0: alive(1, condemned_at=NOW)}, ticked_at=NOW + 11)
    assert condemn(known, NOW + 11)[1] == (Publish(death(S0)),)


def test_the_named_are_condemned_though_they_speak() -> None:
    known = group({S0: alive(1), S1: alive(2)})
    assert condemn(known, NOW, [S1])[1] == (Publish(death(S1)),)


def test_after_a_sleep_everybody_gets_time_to_speak() -> None:
    known, actions = condemn(group({S0: alive(1)}), NOW + 60)
    assert (known.member(S0).heard_at, actions) == (NOW + 60, ())


def test_without_a_term_nobody_is_condemned() -> None:
    known = group({S0: alive(1)}, term=None, ticked_at=NOW + 20)
    assert condemn(known, NOW + 20)[1] == ()
