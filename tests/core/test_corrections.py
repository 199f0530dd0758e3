"""What a consumer's own word corrects."""

from collections.abc import Iterable

import pytest

from binwright.core.corrections import corrected, inconsistency
from binwright.core.events import Action, Say, Tell
from binwright.core.messages import Command, Inbound, StartReading, StopReading, StopWriting
from binwright.core.model import Slot
from binwright.core.ownership import Starting, State

from .builders import (
    NOW,
    S0,
    S1,
    C,
    P,
    Q,
    alive,
    free,
    gap,
    group,
    hello,
    owned,
    report,
    starting,
    stopping,
)

BOTH = {S0: alive(1), S1: alive(2)}
WRITER = {"orders": owned(S0, 1)}


def told(actions: Iterable[Action]) -> list[tuple[Slot, Command]]:
    return [(a.slot, a.message) for a in actions if isinstance(a, Tell)]


# --- reading -----------------------------------------------------------------------------------


def test_an_owner_that_does_not_read_its_partition_is_inconsistent() -> None:
    known = group(BOTH, {P: owned(S0, 1), Q: owned(S0, 1), C: owned(S1, 2)})
    assert inconsistency(known, report(S0, 1)) == "consumer 0 does not read orders-0"
    assert inconsistency(known, report(S0, 1, reading={P: 3, Q: None})) is None


@pytest.mark.parametrize("at", [starting(S0, 1, 4), stopping(S0, 1), owned(S1, 2), free()])
def test_what_is_on_the_move_or_of_others_is_not_inconsistent(at: State) -> None:
    known = group(BOTH, {P: at})
    assert inconsistency(known, report(S0, 1)) is None
    assert inconsistency(known, report(S0, 1, reading=[P])) is None


def test_the_superseded_and_other_records_are_not_inconsistent() -> None:
    known = group({S0: alive(60)}, {P: owned(S0, 60)})
    for message in (report(S0, 1), hello(S0)):
        assert inconsistency(known, message) is None
        assert corrected(known, message, NOW) == (known, ())


@pytest.mark.parametrize("at", [starting(S0, 1), stopping(S0, 1), owned(S0, 1)])
def test_a_report_of_what_it_has_corrects_nothing(at: State) -> None:
    known = group(BOTH, {P: at}, {"orders": at})
    said = report(S0, 1, reading=[P], writing=["orders"])
    assert corrected(known, said, NOW) == (known, ())


@pytest.mark.parametrize("at", [owned(S1, 2), starting(S1, 2), stopping(S1, 2), free(4)])
def test_whoever_reads_what_it_does_not_have_is_stopped(at: State) -> None:
    """No row depends on it: the partition stays where it is, and nobody synchronizes."""
    known = group(BOTH, {P: at, Q: owned(S0, 1)})
    after, actions = corrected(known, report(S0, 1, reading=[P, Q, C]), NOW)
    ((slot, stop),) = told(actions)
    assert isinstance(stop, StopReading)
    assert (slot, stop.epoch, stop.partitions) == (S0, 1, (C, P))
    assert Say("consumer.corrected", {"slot": S0, "partitions": 2, "tables": 0}) in actions
    assert after.partitions == known.partitions
    assert after.revisions == known.revisions + 1


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [owned(S1, 2), starting(S1, 2), stopping(S1, 2), free()])
def test_whoever_writes_a_table_that_is_anothers_is_stopped(at: State) -> None:
    known = group(BOTH, None, {"orders": at})
    after, actions = corrected(known, report(S0, 1, writing=["orders"]), NOW)
    ((slot, stop),) = told(actions)
    assert isinstance(stop, StopWriting)
    assert (slot, stop.epoch, stop.tables) == (S0, 1, ("orders",))
    assert after.writers == known.writers


def test_a_writer_that_does_not_list_its_table_lost_it() -> None:
    roles: dict[str, State] = {
        "orders": owned(S0, 1),
        "clicks": starting(S0, 1),
        "views": owned(S1, 2),
    }
    known, actions = corrected(group(BOTH, None, roles), report(S0, 1), NOW)
    assert known.writers == {**roles, "orders": free()}
    assert actions == (Say("writer.lost", {"slot": S0, "topic": "orders"}),)


# --- gaps --------------------------------------------------------------------------------------


def test_what_a_table_misses_is_read_again_by_its_reader() -> None:
    members = {S0: alive(1), S1: alive(2, reading={P: 9, Q: 8, C: 9})}
    partitions = {P: owned(S1, 2), Q: owned(S1, 2), C: owned(S1, 2)}
    known, actions = corrected(
        group(members, partitions, WRITER), gap(S0, 1, {P: 5, Q: 8, C: 5}), NOW
    )
    ((slot, start),) = told(actions)
    assert isinstance(start, StartReading)
    assert (slot, start.epoch, start.offsets) == (S1, 2, {P: 5})
    assert known.partitions == {**partitions, P: Starting(S1, 2, start.revision, NOW, 5)}
    assert Say("gap.reported", {"slot": S0, "partitions": ["orders-0"]}) in actions


def test_a_reader_that_is_not_there_yet_is_left_alone() -> None:
    """It stages what is missing by itself, or does not know yet where it is."""
    for reading in ({P: 5}, {P: 4}, {P: None}, {}):
        members = {S0: alive(1), S1: alive(2, reading=reading)}
        known = group(members, {P: owned(S1, 2)}, WRITER)
        assert corrected(known, gap(S0, 1, {P: 5}), NOW) == (known, ())


def test_what_nobody_reads_is_started_where_the_table_ends() -> None:
    known, actions = corrected(group(BOTH, {P: free(9)}, WRITER), gap(S0, 1, {P: 5}), NOW)
    assert known.partitions == {P: free(5)}
    assert told(actions) == []
    assert Say("gap.reported", {"slot": S0, "partitions": ["orders-0"]}) in actions


@pytest.mark.parametrize("at", [starting(S1, 2, 9), stopping(S1, 2), None])
def test_a_gap_of_what_is_on_the_move_or_unknown_waits(at: State | None) -> None:
    members = {S0: alive(1), S1: alive(2, reading={P: 9})}
    known = group(members, {} if at is None else {P: at}, WRITER)
    assert corrected(known, gap(S0, 1, {P: 5}), NOW) == (known, ())


@pytest.mark.parametrize("role", [owned(S1, 2), starting(S0, 1), owned(S0, 60), None])
def test_only_the_tables_writer_can_report_a_gap(role: State | None) -> None:
    members = {S0: alive(1), S1: alive(2, reading={P: 9})}
    roles = {} if role is None else {"orders": role}
    known = group(members, {P: owned(S1, 2)}, roles)
    assert corrected(known, gap(S0, 1, {P: 5}), NOW) == (known, ())


def test_a_gap_of_a_superseded_writer_is_dropped() -> None:
    message: Inbound = gap(S0, 1, {P: 5})
    known = group({S0: alive(60)}, {P: free(9)}, {"orders": owned(S0, 1)})
    assert corrected(known, message, NOW) == (known, ())
