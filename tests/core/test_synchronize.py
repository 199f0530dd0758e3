"""From everybody's reports to who reads and writes what."""

import re
from dataclasses import replace

import pytest

from binwright.core.events import Broadcast, Reconcile, Say, Tell
from binwright.core.group import Group, Member
from binwright.core.messages import Report, StateQuery, StopReading, StopWriting
from binwright.core.model import Slot, TopicPartition
from binwright.core.selection import Selection
from binwright.core.synchronize import ask, awaited, collect, concluded

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
    hello,
    owned,
    report,
)

BOTH = {S0: alive(1), S1: alive(2)}


def conclude(known: Group, *reports: Report) -> Group:
    return concluded(known, {r.slot: r for r in reports})[0]


def stops(known: Group, *reports: Report) -> list[tuple[Slot, StopReading | StopWriting]]:
    _, actions = concluded(known, {r.slot: r for r in reports})
    told = [(a.slot, a.message) for a in actions if isinstance(a, Tell)]
    return [(slot, m) for slot, m in told if isinstance(m, StopReading | StopWriting)]


def test_everybody_that_may_read_is_asked() -> None:
    known, actions = ask(group({}, term=None, revisions=9), TERM)
    assert (known.term, known.revisions) == (TERM, 0)
    assert Broadcast(StateQuery(term=TERM)) in actions


def test_whoever_was_a_member_shall_run_before_anybody_has_answered() -> None:
    """One that died together with the previous leader need not be silent for long first."""
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
    member: Member, waits: bool
) -> None:
    assert awaited(group({S0: member})) == ([S0] if waits else [])


def test_the_latest_answer_of_a_living_epoch_counts() -> None:
    known = group(BOTH)
    first, later = report(S0, 1, reading=[P]), report(S0, 1)
    answers = collect(known, {S0: first, S1: report(S1, 1)}, later)
    assert answers == {S0: later}
    assert collect(known, answers, report(S0, 1, term=TERM - 1, reading=[Q])) == {S0: later}
    assert collect(known, answers, hello(S0)) == {S0: later}


def test_what_one_reads_and_writes_stays() -> None:
    said = report(S0, 1, reading={P: 4, Q: None}, writing=["orders"])
    known = conclude(group(BOTH), said)
    assert known.partitions == {P: owned(S0, 1), Q: owned(S0, 1)}
    assert known.writers == {"orders": owned(S0, 1)}
    assert stops(group(BOTH), said) == []


def test_what_nobody_answers_for_is_released_at_its_last_known_offset() -> None:
    known = group(BOTH, {P: free(9), Q: owned(S1, 2)}, counts={"clicks": 1})
    assert conclude(known, report(S0, 1)).partitions == {P: free(9), Q: free(), C: free()}


def test_of_two_that_read_the_same_one_is_stopped_and_the_other_goes_on() -> None:
    answers = (report(S0, 1, reading=[P, Q]), report(S1, 2, reading=[P, C]))
    known = conclude(group(BOTH), *answers)
    assert known.partitions == {P: owned(S0, 1), Q: owned(S0, 1), C: owned(S1, 2)}
    ((slot, stop),) = stops(group(BOTH), *answers)
    assert isinstance(stop, StopReading)
    assert (slot, stop.epoch, stop.partitions) == (S1, 2, (P,))


def test_of_two_writers_of_one_table_one_is_stopped() -> None:
    answers = (report(S1, 2, writing=["orders"]), report(S0, 1, writing=["orders"]))
    known = conclude(group(BOTH), *answers)
    assert known.writers == {"orders": owned(S0, 1)}
    ((slot, stop),) = stops(group(BOTH), *answers)
    assert isinstance(stop, StopWriting)
    assert (slot, stop.epoch, stop.tables) == (S1, 2, ("orders",))


@pytest.mark.parametrize(
    ("topics", "gone"),
    [
        (None, []),
        (Selection(frozenset({"orders", "clicks"})), []),
        (Selection(frozenset({"orders"})), [C]),
        (Selection(patterns=(re.compile("cl.*"),)), [P]),
    ],
)
def test_a_topic_that_is_not_selected_any_more_counts_as_deleted(
    topics: Selection | None, gone: list[TopicPartition]
) -> None:
    known = group(BOTH, counts={"orders": 1}, rules=replace(RULES, topics=topics))
    after, actions = concluded(known, {S0: report(S0, 1, reading=[P, C])})
    assert after.all_gone() == gone
    told = [a.facts["topic"] for a in actions if isinstance(a, Say) and a.event == "topic.left"]
    assert told == [p.topic for p in gone]


def test_nothing_of_an_earlier_term_is_believed() -> None:
    known = group({S2: alive(1)}, {P: owned(S2, 1)}, {"orders": owned(S2, 1)})
    after = conclude(known, report(S2, 1))
    assert after.partitions == {P: free()}
    assert not after.writers
