"""What a controller knows of its group."""

import pytest
from tests.builders import (
    CONFIG,
    S0,
    S1,
    S2,
    TERM,
    C,
    P,
    Q,
    alive,
    dead,
    group,
    owned,
    released,
    starting,
    stopping,
)

from binwright.group.group import REVISIONS_PER_TERM, Group, add_partitions, forget_gone
from binwright.group.members import Member
from binwright.group.ownership import State
from binwright.protocol.model import TopicPartition

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
def test_the_epoch_is_the_last_hello_unless_that_process_ended(
    member: Member, epoch: int | None
) -> None:
    assert member.epoch == epoch


def test_a_consumer_that_is_not_ready_or_drains_is_not_usable() -> None:
    assert not alive(1, ready=False).usable
    assert not alive(1, leaving=True).usable
    assert not dead(2).usable
    assert alive(1).usable


def test_living_slots_may_be_unready_and_usable_ones_are_ready() -> None:
    known = group({S1: alive(2), S0: alive(1, ready=False), S2: dead(3)})
    assert known.members.living() == {S0, S1}
    assert known.members.usable() == [S1]


# --- the group as a whole ----------------------------------------------------------------------


def test_a_moving_partition_counts_at_the_slot_that_stops_or_starts_it() -> None:
    partitions: dict[TopicPartition, State] = {
        P: stopping(S0, 1),
        Q: starting(S2, 3),
        C: released(),
    }
    known = group({}, partitions, rates={P: 5.0, Q: 7.0, C: 9.0})
    assert known.members.assignment() == {P: S0, Q: S2}
    assert known.loads() == {S0: 5.0, S2: 7.0}
    assert known.unread() == [C]


def test_owning_slots_have_a_partition_or_a_table() -> None:
    known = group({}, {P: owned(S0, 1), Q: released()}, {"orders": stopping(S1, 2)})
    assert known.members.owning() == {S0, S1}


def test_a_partition_is_gone_only_if_its_topic_was_measured_without_it() -> None:
    known = group({}, counts={"orders": 1})
    assert [known.load.is_gone(p) for p in (P, Q, C)] == [False, True, False]


def test_a_gone_partition_is_forgotten_once_it_has_no_reader() -> None:
    known = group({}, {P: released(), Q: released(), C: owned(S0, 1)}, counts={"orders": 1})
    assert known.unread() == [P]
    assert forget_gone(known).members.partitions == {P: released(), C: owned(S0, 1)}
    left = group({}, {C: owned(S0, 1)}, counts={"clicks": 0})
    assert forget_gone(left) is left


def test_adding_partitions_does_not_change_known_ones() -> None:
    known = add_partitions(group({}, {P: owned(S0, 1)}), [P, Q])
    assert known.members.partitions == {P: owned(S0, 1), Q: released()}


def test_revisions_grow_and_differ_in_every_term() -> None:
    known, first = group({}).next_revision()
    _, second = known.next_revision()
    assert TERM * REVISIONS_PER_TERM < first < second < (TERM + 1) * REVISIONS_PER_TERM


def test_without_a_term_there_is_no_revision() -> None:
    with pytest.raises(ValueError, match="without a term"):
        Group(config=CONFIG, controller="me").next_revision()
