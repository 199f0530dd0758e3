"""What a controller knows."""

import pytest

from binwright.core.group import REVISIONS_PER_TERM, Group, Member, discovered, forget_gone
from binwright.core.model import TopicPartition
from binwright.core.ownership import State

from .builders import (
    RULES,
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
    owned,
    starting,
    stopping,
)

# --- members -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "epoch"),
    [
        (Member(), None),
        (Member(hello=4), 4),
        (Member(hello=4, dead=3), 4),
        (Member(hello=4, dead=4), None),
        (Member(hello=4, goodbye=4), None),
        (Member(hello=4, goodbye=2), 4),
        (Member(hello=0), 0),
    ],
)
def test_the_epoch_is_the_last_hello_that_is_not_dead_or_left(
    member: Member, epoch: int | None
) -> None:
    assert member.epoch == epoch


def test_a_consumer_that_is_not_ready_or_leaves_may_not_be_given_anything() -> None:
    assert not alive(1, ready=False).usable
    assert not alive(1, leaving=True).usable
    assert not dead(2).usable
    assert alive(1).usable


def test_the_living_may_be_unready_and_the_usable_are_not() -> None:
    known = group({S1: alive(2), S0: alive(1, ready=False), S2: dead(3)})
    assert known.living() == {S0, S1}
    assert known.usable() == [S1]


# --- the group as a whole ----------------------------------------------------------------------


def test_moves_in_flight_count_where_they_are() -> None:
    partitions: dict[TopicPartition, State] = {
        P: stopping(S0, 1),
        Q: starting(S2, 3),
        C: free(),
    }
    known = group({}, partitions, rates={P: 5.0, Q: 7.0, C: 9.0})
    assert known.assignment() == {P: S0, Q: S2}
    assert known.loads() == {S0: 5.0, S2: 7.0}
    assert known.unread() == [C]


def test_holders_have_a_partition_or_a_table() -> None:
    known = group({}, {P: owned(S0, 1), Q: free()}, {"orders": stopping(S1, 2)})
    assert known.holders() == {S0, S1}


def test_a_partition_is_gone_only_if_its_topic_was_measured_without_it() -> None:
    known = group({}, counts={"orders": 1})
    assert [known.gone(p) for p in (P, Q, C)] == [False, True, False]


def test_what_is_gone_is_forgotten_once_nobody_reads_it() -> None:
    known = group({}, {P: free(), Q: free(), C: owned(S0, 1)}, counts={"orders": 1})
    assert known.unread() == [P]
    assert forget_gone(known).partitions == {P: free(), C: owned(S0, 1)}
    left = group({}, {C: owned(S0, 1)}, counts={"clicks": 0})
    assert forget_gone(left) is left


def test_what_is_discovered_changes_nothing_that_is_known() -> None:
    known = discovered(group({}, {P: owned(S0, 1)}), [P, Q])
    assert known.partitions == {P: owned(S0, 1), Q: free()}


def test_revisions_grow_and_differ_in_every_term() -> None:
    known, first = group({}).next_revision()
    _, second = known.next_revision()
    assert TERM * REVISIONS_PER_TERM < first < second < (TERM + 1) * REVISIONS_PER_TERM


def test_without_a_term_nothing_is_commanded() -> None:
    with pytest.raises(ValueError, match="without a term"):
        Group(rules=RULES, controller="me").next_revision()
