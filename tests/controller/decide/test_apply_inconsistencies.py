"""What a consumer's reports correct."""

import pytest
from tests.builders import (
    NOW,
    S0,
    S1,
    C,
    P,
    Q,
    alive,
    gap,
    group,
    hello,
    owned,
    released,
    report,
    starting,
    stopping,
)
from tests.controller.decide.driver import sent

from binwright.controller.decide.apply import (
    CONSUMER_CORRECTED,
    GAP_REPORTED,
    WRITER_LOST,
    correct,
    inconsistency,
)
from binwright.group.ownership import Starting, State
from binwright.protocol.commands import StartReading, StopReading, StopWriting
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Inbound, TableReport

BOTH = {S0: alive(1), S1: alive(2)}
WRITER = {"orders": owned(S0, 1)}


# --- reading -----------------------------------------------------------------------------------


def test_an_owner_that_does_not_read_its_partition_is_inconsistent() -> None:
    known = group(BOTH, {P: owned(S0, 1), Q: owned(S0, 1), C: owned(S1, 2)})
    assert inconsistency(known, report(S0, 1)) == "consumer 0 does not read orders-0"
    assert inconsistency(known, report(S0, 1, reading={P: 3, Q: None})) is None


@pytest.mark.parametrize("at", [starting(S0, 1, 4), stopping(S0, 1), owned(S1, 2), released()])
def test_moving_partitions_and_those_of_other_owners_are_not_inconsistent(at: State) -> None:
    known = group(BOTH, {P: at})
    assert inconsistency(known, report(S0, 1)) is None
    assert inconsistency(known, report(S0, 1, reading=[P])) is None


def test_reports_of_ended_epochs_and_other_records_are_not_inconsistent() -> None:
    known = group({S0: alive(60)}, {P: owned(S0, 60)})
    for message in (report(S0, 1), hello(S0)):
        assert inconsistency(known, message) is None
        assert correct(known, message, NOW) == (known, ())


@pytest.mark.parametrize("at", [starting(S0, 1), stopping(S0, 1), owned(S0, 1)])
def test_a_report_of_what_the_consumer_owns_corrects_nothing(at: State) -> None:
    known = group(BOTH, {P: at}, {"orders": at})
    agreeing = report(S0, 1, reading=[P], writing=["orders"])
    assert correct(known, agreeing, NOW) == (known, ())


@pytest.mark.parametrize("at", [owned(S1, 2), starting(S1, 2), stopping(S1, 2), released(4)])
def test_a_consumer_that_reads_what_it_does_not_own_is_stopped(at: State) -> None:
    """No row depends on it: the owners stay, and the controller does not synchronize."""
    known = group(BOTH, {P: at, Q: owned(S0, 1)})
    after, actions = correct(known, report(S0, 1, reading=[P, Q, C]), NOW)
    ((slot, stop),) = sent(actions)
    assert isinstance(stop, StopReading)
    assert (slot, stop.epoch, stop.partitions) == (S0, 1, (C, P))
    assert Log(CONSUMER_CORRECTED, {"slot": S0, "partitions": 2, "tables": 0}) in actions
    assert after.members.partitions == known.members.partitions
    assert after.revisions == known.revisions + 1


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [owned(S1, 2), starting(S1, 2), stopping(S1, 2), released()])
def test_a_consumer_that_writes_a_table_it_does_not_own_is_stopped(at: State) -> None:
    known = group(BOTH, None, {"orders": at})
    after, actions = correct(known, report(S0, 1, writing=["orders"]), NOW)
    ((slot, stop),) = sent(actions)
    assert isinstance(stop, StopWriting)
    assert (slot, stop.epoch, stop.tables) == (S0, 1, ("orders",))
    assert after.members.writers == known.members.writers


def test_tables_of_other_names_are_of_the_topic_whose_role_it_is() -> None:
    tables = {name: TableReport(topic="orders", state="landing", committed={}) for name in "ab"}
    known = group(BOTH, None, {"orders": owned(S0, 1)})
    assert correct(known, report(S0, 1, writing=tables), NOW) == (known, ())
    known = group(BOTH, None, {"orders": owned(S1, 2)})
    _, actions = correct(known, report(S0, 1, writing=tables), NOW)
    ((_, stop),) = sent(actions)
    assert isinstance(stop, StopWriting)
    assert stop.tables == ("orders",)


def test_a_writer_that_does_not_list_its_table_has_lost_it() -> None:
    roles: dict[str, State] = {
        "orders": owned(S0, 1),
        "clicks": starting(S0, 1),
        "views": owned(S1, 2),
    }
    known, actions = correct(group(BOTH, None, roles), report(S0, 1), NOW)
    assert known.members.writers == {**roles, "orders": released()}
    assert actions == (Log(WRITER_LOST, {"slot": S0, "topic": "orders"}),)


# --- gaps --------------------------------------------------------------------------------------


def test_offsets_missing_in_a_table_are_read_again_by_the_reader() -> None:
    members = {S0: alive(1), S1: alive(2, reading={P: 9, Q: 8, C: 9})}
    partitions = {P: owned(S1, 2), Q: owned(S1, 2), C: owned(S1, 2)}
    known, actions = correct(
        group(members, partitions, WRITER), gap(S0, 1, {P: 5, Q: 8, C: 5}), NOW
    )
    ((slot, start),) = sent(actions)
    assert isinstance(start, StartReading)
    assert (slot, start.epoch, start.offsets) == (S1, 2, {P: 5})
    assert known.members.partitions == {**partitions, P: Starting(S1, 2, start.revision, NOW, 5)}
    assert Log(GAP_REPORTED, {"slot": S0, "partitions": ["orders-0"]}) in actions


def test_a_reader_that_has_not_passed_the_gap_gets_no_command() -> None:
    """It will stage the missing offsets anyway, or does not know its position yet."""
    for reading in ({P: 5}, {P: 4}, {P: None}, {}):
        members = {S0: alive(1), S1: alive(2, reading=reading)}
        known = group(members, {P: owned(S1, 2)}, WRITER)
        assert correct(known, gap(S0, 1, {P: 5}), NOW) == (known, ())


def test_a_gap_without_a_reader_sets_the_offset_of_the_next_start() -> None:
    known, actions = correct(group(BOTH, {P: released(9)}, WRITER), gap(S0, 1, {P: 5}), NOW)
    assert known.members.partitions == {P: released(5)}
    assert sent(actions) == []
    assert Log(GAP_REPORTED, {"slot": S0, "partitions": ["orders-0"]}) in actions


@pytest.mark.parametrize("at", [starting(S1, 2, 9), stopping(S1, 2), None])
def test_a_gap_of_a_moving_or_unknown_partition_waits(at: State | None) -> None:
    members = {S0: alive(1), S1: alive(2, reading={P: 9})}
    known = group(members, {} if at is None else {P: at}, WRITER)
    assert correct(known, gap(S0, 1, {P: 5}), NOW) == (known, ())


@pytest.mark.parametrize("role", [owned(S1, 2), starting(S0, 1), owned(S0, 60), None])
def test_only_the_tables_writer_can_report_a_gap(role: State | None) -> None:
    members = {S0: alive(1), S1: alive(2, reading={P: 9})}
    roles = {} if role is None else {"orders": role}
    known = group(members, {P: owned(S1, 2)}, roles)
    assert correct(known, gap(S0, 1, {P: 5}), NOW) == (known, ())


def test_a_gap_of_an_ended_epoch_is_dropped() -> None:
    message: Inbound = gap(S0, 1, {P: 5})
    known = group({S0: alive(60)}, {P: released(9)}, {"orders": owned(S0, 1)})
    assert correct(known, message, NOW) == (known, ())
