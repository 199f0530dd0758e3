"""From everybody's answers to where every partition is."""

import pytest

from binwright.core.events import Broadcast, Reconcile, Tell
from binwright.core.group import Group, Member, Place, Stopping
from binwright.core.messages import Report, StateQuery, StopConsuming
from binwright.core.model import Slot
from binwright.core.synchronize import ask, awaited, collect, concluded

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
    heard,
    held,
    hello,
    report,
)


def conclude(known: Group, *reports: Report) -> Group:
    return concluded(known, {r.slot: r for r in reports}, NOW)[0]


def stops(known: Group, *reports: Report) -> dict[Slot, StopConsuming]:
    actions = concluded(known, {r.slot: r for r in reports}, NOW)[1]
    tells = [a for a in actions if isinstance(a, Tell)]
    return {a.slot: a.message for a in tells if isinstance(a.message, StopConsuming)}


def test_everybody_that_may_listen_is_asked() -> None:
    """† asks_only_the_fleet"""
    known, actions = ask(group({}, term=None, revisions=9), TERM)
    assert (known.term, known.revisions) == (TERM, 0)
    assert Broadcast(StateQuery(term=TERM)) in actions


def test_whoever_was_a_member_shall_run_before_anybody_has_answered() -> None:
    """One that died together with the former leader need not be silent for long first."""
    known = group({S0: alive(1), S1: dead(9), S2: alive(2, goodbye=2)}, term=None)
    assert Reconcile(frozenset({S0})) in ask(known, TERM)[1]


@pytest.mark.parametrize(
    ("member", "waits"),
    [
        (alive(1), True),
        (alive(1, answered=TERM - 1), True),
        (alive(1, answered=TERM), False),
        (alive(TERM + 1), False),
        (dead(9), False),
        (alive(1, goodbye=1), False),
    ],
)
def test_whoever_lived_before_the_claim_must_answer_it_or_be_dead(
    member: Member,
    waits: bool,
) -> None:
    assert awaited(group({S0: member})) == ([S0] if waits else [])


def test_the_latest_answer_of_a_living_epoch_counts() -> None:
    known = group({S0: alive(1), S1: alive(2)})
    first, later = report(S0, 1, held=[P]), report(S0, 1)
    answers = collect(known, {S0: first, S1: report(S1, 1)}, later)
    assert answers == {S0: later}
    assert collect(known, answers, report(S0, 1, term=TERM - 1, held=[Q])) == {S0: later}
    assert collect(known, answers, hello(S0)) == {S0: later}


def test_what_one_holds_stays() -> None:
    known = conclude(group({S0: alive(1)}), report(S0, 1, held=[P], opening=[Q]))
    assert known.places == {P: held(S0, 1), Q: held(S0, 1)}


def test_what_nobody_holds_is_unassigned() -> None:
    known = group({S0: alive(1)}, {P: held(S1, 2)}, rates={P: 1.0, Q: 1.0})
    assert conclude(known, report(S0, 1, held=[Q])).places == {P: free(), Q: held(S0, 1)}


def test_what_somebody_has_unsettled_is_not_unassigned_but_stopped_again() -> None:
    """† report_hides_unsettled: its last write may land after the heir has resolved."""
    said = report(S0, 1, closing=[P], held=[Q])
    known = conclude(group({S0: alive(1)}, rates={P: 1.0}), said)
    revision = TERM * 2**20 + 1
    assert known.places[P] == Place(Stopping({S0: 1}, revision, NOW))
    assert stops(group({S0: alive(1)}), said) == {
        S0: StopConsuming(term=TERM, revision=revision, epoch=1, partitions=(P,))
    }


def test_what_two_hold_is_stopped_at_both() -> None:
    """†"""
    answers = (report(S0, 1, held=[P, Q]), report(S1, 2, closing=[P]))
    members = {S0: alive(1), S1: alive(2)}
    known = conclude(group(members), *answers)
    at = known.places[P].at
    assert isinstance(at, Stopping)
    assert (at.owners, at.twice) == ({S0: 1, S1: 2}, True)
    assert known.places[Q] == held(S0, 1)
    told = stops(group(members), *answers)
    assert {slot: (stop.epoch, stop.partitions) for slot, stop in told.items()} == {
        S0: (1, (P,)),
        S1: (2, (P,)),
    }


@pytest.mark.parametrize(
    ("member", "owed"),
    [
        (alive(1, answered=TERM), False),
        (alive(1, answered=TERM, ready=False), True),
        (dead(9), True),
        (alive(1, goodbye=1, ready=False), False),
        (alive(1, goodbye=1, dead=9, ready=False), False),
        (alive(TERM + 5, ready=False), True),
    ],
)
def test_only_standing_claims_or_a_goodbye_free_from_a_fence(
    member: Member,
    owed: bool,
) -> None:
    """† ready_not_awaited"""
    known = conclude(group({S1: member, S0: alive(2)}, rates={P: 1.0}), report(S0, 2, held=[Q]))
    assert known.places == {
        P: free(*[S1] if owed else []),
        Q: held(S0, 2, *[S1] if owed else []),
    }
    assert known.doubt == ({S1} if owed else set())


def test_a_newcomer_whose_claims_stand_is_owed_nothing_though_it_was_never_asked() -> None:
    """Else everything unassigned would wait for its readiness, which was said already."""
    members = {S1: alive(TERM + 5, answered=0)}
    assert conclude(group(members, rates={P: 1.0})).places == {P: free()}


def test_a_recorded_fence_frees_its_own_table() -> None:
    known = group({S1: dead(9)}, rates={P: 1.0, C: 1.0}, fenced={(S1, "orders"): 9})
    assert conclude(known).places == {P: free(), C: free(S1)}


def test_nothing_of_an_earlier_reign_is_kept() -> None:
    known = group({S2: alive(1)}, {P: held(S2, 1)}, doubt=frozenset({S2}))
    after = conclude(known, report(S2, 1))
    assert (after.places, after.doubt) == ({}, frozenset())
    assert heard(hello(S0)).offset == 90
