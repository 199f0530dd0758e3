"""What a controller knows, and how it changes."""

import pytest

from binwright.core.group import (
    REVISIONS_PER_TERM,
    Held,
    Member,
    Parked,
    Place,
    Stopping,
    Unassigned,
    debt,
    fences,
    forget,
    let_go,
    lose,
    pay,
    started,
)
from binwright.core.group import stopped as answered
from binwright.core.model import Slot

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
    fence,
    free,
    group,
    held,
    start,
    starting,
    stopped,
    stopping,
)

# --- members -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "epoch"),
    [
        (Member(), None),
        (Member(hello=4), 4),
        (Member(hello=4, dead=3), 4),
        (Member(hello=4, dead=5), None),
        (Member(hello=4, goodbye=4), None),
        (Member(hello=4, goodbye=2), 4),
        (Member(hello=0), 0),
    ],
)
def test_the_epoch_is_the_last_hello_that_is_not_voided_or_ended(
    member: Member, epoch: int | None
) -> None:
    assert member.epoch == epoch


@pytest.mark.parametrize(
    ("member", "nothing"),
    [
        (Member(), True),
        (Member(hello=4, goodbye=4), True),
        (Member(hello=4, goodbye=4, dead=9), True),
        (Member(hello=4, goodbye=2), False),
        (Member(hello=4, dead=9), False),
    ],
)
def test_only_who_never_lived_or_said_goodbye_left_nothing(member: Member, nothing: bool) -> None:
    assert member.left_nothing is nothing


def test_who_is_not_ready_may_not_be_given_anything() -> None:
    assert not alive(1, ready=False).usable
    assert not dead(2).usable
    assert alive(1).usable


# --- the group as a whole ----------------------------------------------------------------------


def test_moves_in_flight_count_where_they_are() -> None:
    places = {
        P: stopping({S1: 2, S0: 1}),
        Q: starting(S2, start(3, {Q: 1})),
        C: free(),
    }
    known = group({}, places, rates={P: 5.0, Q: 7.0, C: 9.0})
    assert known.assignment() == {P: S0, Q: S2}
    assert known.loads() == {S0: 5.0, S2: 7.0}


def test_a_partition_is_gone_only_if_its_topic_was_measured_without_it() -> None:
    known = group({}, there={"orders": frozenset({0})})
    assert [known.gone(p) for p in (P, Q, C)] == [False, True, False]


def test_revisions_grow_and_differ_in_every_term() -> None:
    known, first = group({}).next_revision()
    _, second = known.next_revision()
    assert TERM * REVISIONS_PER_TERM < first < second < (TERM + 1) * REVISIONS_PER_TERM


# --- losing and letting go ---------------------------------------------------------------------


def test_what_is_lost_without_a_word_is_owed_a_fence() -> None:
    places = {P: held(S0, 1), Q: starting(S0, start(1, {Q: 4})), C: stopping({S0: 1})}
    assert lose(group({}, places), S0).places == {P: free(S0), Q: free(S0), C: free(S0)}


def test_debts_stay_owed_through_heirs_that_die_first() -> None:
    """† The next start carries the fences that the dead heir was to raise, and the heir's own."""
    command = start(1, {P: None}, [fence(S2, 9)])
    known = lose(group({}, {P: starting(S0, command, S2), Q: held(S0, 1, S1)}), S0)
    assert known.places == {P: free(S0, S2), Q: free(S0, S1)}


def test_losing_one_of_two_owners_leaves_the_other() -> None:
    known = lose(group({}, {P: stopping({S0: 1, S1: 2})}), S0)
    assert known.places == {P: Place(Stopping({S1: 2}, 7, NOW, twice=True), frozenset({S0}))}


def test_what_is_settled_or_of_others_is_not_lost() -> None:
    places = {P: Place(Parked(4)), Q: held(S1, 2), C: stopping({S1: 2})}
    assert lose(group({}, places), S0).places == places


def test_a_goodbye_settles_what_it_names_and_frees_the_rest() -> None:
    places = {P: held(S0, 1, S2), Q: starting(S0, start(1, {Q: 4}), S2), C: stopping({S0: 1})}
    known = let_go(group({}, places), S0, {P: 8, C: 9})
    assert known.places == {
        P: Place(Parked(8), frozenset({S2})),
        Q: free(S2),
        C: Place(Parked(9)),
    }


def test_a_goodbye_takes_nothing_from_others() -> None:
    places = {P: held(S1, 2), Q: stopping({S1: 2}), C: free()}
    assert let_go(group({}, places), S0, {P: 8, Q: 9, C: 9}).places == places


# --- answers -----------------------------------------------------------------------------------


def test_a_stop_of_two_owners_ends_when_both_answered_and_neither_is_believed() -> None:
    """† Held twice was a fault: the table alone knows how far it got."""
    known = answered(group({}, {P: stopping({S0: 1, S1: 2})}), stopped(S0, 1, {P: 5}))
    assert known.places == {P: Place(Stopping({S1: 2}, 7, NOW, twice=True))}
    assert answered(known, stopped(S1, 2, {P: 9})).places == {P: free()}


@pytest.mark.parametrize(("slot", "revision"), [(S0, 6), (S1, 7)])
def test_an_answer_to_another_stop_changes_nothing(slot: Slot, revision: int) -> None:
    """† By slot and revision: an answer of long ago would name an offset of long ago."""
    known = group({}, {P: stopping({S0: 1}), Q: held(S0, 1)})
    assert answered(known, stopped(slot, 1, {P: 5, Q: 5, C: 5}, revision)) == known


def test_an_answer_to_a_stop_may_come_in_parts() -> None:
    both = {P: stopping({S0: 1}), Q: stopping({S0: 1})}
    known = answered(group({}, both), stopped(S0, 1, {Q: None}))
    assert known.places == {P: stopping({S0: 1}), Q: free()}


@pytest.mark.parametrize(("slot", "revision"), [(S0, 6), (S1, 7)])
def test_an_answer_to_another_start_changes_nothing(slot: int, revision: int) -> None:
    known = group({}, {P: starting(S0, start(1, {P: 4})), Q: held(S0, 1)})
    assert started(known, slot, revision, [P, Q, C]) == (known, frozenset())  # type: ignore[arg-type]


def test_an_answer_to_a_start_says_for_which_partitions_it_was() -> None:
    places = {P: starting(S0, start(1, {P: 4, Q: None}), S2), Q: starting(S0, start(1, {P: 4}))}
    known, matched = started(group({}, places), S0, 7, [P])
    assert matched == {P}
    assert known.places[P] == Place(Held(S0, 1), frozenset({S2}))
    assert known.places[Q] == places[Q]


# --- debts -------------------------------------------------------------------------------------


def test_a_fence_pays_for_its_own_table_only() -> None:
    """Each table is fenced for itself, though one start opens partitions of several."""
    known = pay(group({}, {P: free(S1, S2), C: free(S1)}, doubt=frozenset({S1})), S1, "orders")
    assert known.places == {P: free(S2), C: free(S1)}
    assert known.doubt == {S1}


def test_a_newcomers_claims_pay_for_every_table() -> None:
    known = pay(group({}, {P: free(S1), C: free(S1)}, doubt=frozenset({S1, S2})), S1)
    assert known.places == {P: free(), C: free()}
    assert known.doubt == {S2}


def test_what_a_forgotten_partition_owed_its_namesake_will_owe() -> None:
    members = {S1: dead(9)}
    known = forget(group(members, {P: free(S1), Q: Place(Unassigned())}), [P])
    assert known.places == {Q: free()}
    assert debt(known, "orders") == {S1}


def test_a_recorded_fence_as_high_as_the_last_dead_is_enough_for_that_table() -> None:
    known = group({S1: dead(9)}, doubt=frozenset({S1}), fenced={(S1, "orders"): 9})
    assert debt(known, "orders") == frozenset()
    assert debt(known, "clicks") == {S1}


def test_a_recorded_fence_below_the_last_dead_is_not_enough() -> None:
    known = group({S1: dead(9)}, doubt=frozenset({S1}), fenced={(S1, "orders"): 8})
    assert debt(known, "orders") == {S1}


def test_a_recorded_fence_says_nothing_of_who_came_after_it() -> None:
    members = {S1: Member(hello=10, dead=9)}
    known = group(members, doubt=frozenset({S1}), fenced={(S1, "orders"): 9})
    assert debt(known, "orders") == {S1}


def test_a_fence_has_the_number_of_the_last_dead() -> None:
    """† Never above a living epoch: it would shut out that one for ever."""
    known = group({S1: dead(9), S2: dead(4)})
    assert fences(known, {S2, S1}) == (fence(S1, 9), fence(S2, 4))


@pytest.mark.parametrize("member", [alive(10, ready=False, dead=4), alive(10, ready=False)])
def test_below_a_living_epoch_everything_older_is_fenced(member: Member) -> None:
    """† A newcomer pays for nothing before its claims stand, and they must be able to."""
    assert fences(group({S1: member}), {S1}) == (fence(S1, 9),)


@pytest.mark.parametrize("member", [Member(), alive(0, ready=False)])
def test_where_nobody_lived_before_there_is_nothing_to_fence(member: Member) -> None:
    assert fences(group({S1: member, S2: dead(4)}), {S1, S2}) == (fence(S2, 4),)
