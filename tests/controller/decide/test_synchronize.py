"""The owners of partitions and tables, from the reports of all consumers."""

from dataclasses import replace

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
    hello,
    owned,
    released,
    report,
)

from binwright.controller.decide.events import Broadcast, Reconcile, Send
from binwright.controller.decide.synchronize import (
    adopt_reports,
    awaiting_reply,
    begin_term,
    collect_replies,
)
from binwright.group.group import Group
from binwright.group.members import Member
from binwright.protocol.commands import StateQuery, StopReading, StopWriting
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Report
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection

BOTH = {S0: alive(1), S1: alive(2)}


def adopt(known: Group, *reports: Report) -> Group:
    return adopt_reports(known, {r.slot: r for r in reports})[0]


def stops(known: Group, *reports: Report) -> list[tuple[Slot, StopReading | StopWriting]]:
    _, actions = adopt_reports(known, {r.slot: r for r in reports})
    deselected = [(a.slot, a.message) for a in actions if isinstance(a, Send)]
    return [(slot, m) for slot, m in deselected if isinstance(m, StopReading | StopWriting)]


def test_every_slot_is_queried() -> None:
    known, actions = begin_term(group({}, term=None, revisions=9), TERM)
    assert (known.term, known.revisions) == (TERM, 0)
    assert Broadcast(StateQuery(term=TERM)) in actions


def test_living_members_are_reconciled_before_any_reply() -> None:
    """A consumer that died together with the previous leader restarts before its timeout."""
    known = group({S0: alive(1), S1: dead(9), S2: alive(2, goodbye=2)}, term=None)
    assert Reconcile(frozenset({S0})) in begin_term(known, TERM)[1]


@pytest.mark.parametrize(
    ("member", "waits"),
    [
        (alive(1), True),
        (alive(1, replied_term=TERM - 1), True),
        (alive(1, replied_term=TERM), False),
        (alive(TERM + 1), False),
        (dead(9), False),
        (alive(1, goodbye=1), False),
    ],
)
def test_a_process_older_than_the_claim_must_reply_unless_it_has_ended(
    member: Member, waits: bool
) -> None:
    assert awaiting_reply(group({S0: member})) == ([S0] if waits else [])


def test_the_latest_reply_of_a_living_epoch_is_stored() -> None:
    known = group(BOTH)
    first, later = report(S0, 1, reading=[P]), report(S0, 1)
    replies = collect_replies(known, {S0: first, S1: report(S1, 1)}, later)
    assert replies == {S0: later}
    assert collect_replies(known, replies, report(S0, 1, term=TERM - 1, reading=[Q])) == {S0: later}
    assert collect_replies(known, replies, hello(S0)) == {S0: later}


def test_what_a_single_consumer_reads_and_writes_stays_with_it() -> None:
    one_report = report(S0, 1, reading={P: 4, Q: None}, writing=["orders"])
    known = adopt(group(BOTH), one_report)
    assert known.members.partitions == {P: owned(S0, 1), Q: owned(S0, 1)}
    assert known.members.writers == {"orders": owned(S0, 1)}
    assert stops(group(BOTH), one_report) == []


def test_partitions_in_no_report_are_released_at_their_last_known_offsets() -> None:
    known = group(BOTH, {P: released(9), Q: owned(S1, 2)}, counts={"clicks": 1})
    assert adopt(known, report(S0, 1)).members.partitions == {
        P: released(9),
        Q: released(),
        C: released(),
    }


def test_of_two_readers_of_a_partition_the_higher_slot_is_stopped() -> None:
    replies = (report(S0, 1, reading=[P, Q]), report(S1, 2, reading=[P, C]))
    known = adopt(group(BOTH), *replies)
    assert known.members.partitions == {P: owned(S0, 1), Q: owned(S0, 1), C: owned(S1, 2)}
    ((slot, stop),) = stops(group(BOTH), *replies)
    assert isinstance(stop, StopReading)
    assert (slot, stop.epoch, stop.partitions) == (S1, 2, (P,))


def test_of_two_writers_of_a_table_the_higher_slot_is_stopped() -> None:
    replies = (report(S1, 2, writing=["orders"]), report(S0, 1, writing=["orders"]))
    known = adopt(group(BOTH), *replies)
    assert known.members.writers == {"orders": owned(S0, 1)}
    ((slot, stop),) = stops(group(BOTH), *replies)
    assert isinstance(stop, StopWriting)
    assert (slot, stop.epoch, stop.tables) == (S1, 2, ("orders",))


@pytest.mark.parametrize(
    ("topics", "gone"),
    [
        (None, []),
        (Selection(frozenset({"orders", "clicks"})), []),
        (Selection(frozenset({"orders"})), [C]),
        (Selection(patterns=(compile_pattern("cl.*"),)), [P]),
    ],
)
def test_a_topic_that_is_not_selected_any_more_counts_as_deleted(
    topics: Selection | None, gone: list[TopicPartition]
) -> None:
    known = group(BOTH, counts={"orders": 1}, config=replace(CONFIG, topics=topics))
    after, actions = adopt_reports(known, {S0: report(S0, 1, reading=[P, C])})
    assert after.gone_partitions() == gone
    deselected = [
        a.facts["topic"] for a in actions if isinstance(a, Log) and a.event == "topic.deselected"
    ]
    assert deselected == [p.topic for p in gone]


def test_the_owners_of_an_earlier_term_are_not_adopted() -> None:
    known = group({S2: alive(1)}, {P: owned(S2, 1)}, {"orders": owned(S2, 1)})
    after = adopt(known, report(S2, 1))
    assert after.members.partitions == {P: released()}
    assert not after.members.writers
