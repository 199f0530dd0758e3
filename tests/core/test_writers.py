"""Which consumer writes which table, and how that changes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from binwright.core.events import Action, Reconcile, Say, Tell
from binwright.core.group import Group
from binwright.core.messages import (
    Gap,
    Goodbye,
    StartReading,
    StartWriting,
    StopReading,
    StopWriting,
)
from binwright.core.model import Slot, TopicPartition
from binwright.core.ownership import Owned, Released, State
from binwright.core.states import Manage, Sentinel
from binwright.core.writers import move_writers, wanted

from .builders import (
    NOW,
    S0,
    S1,
    S2,
    alive,
    dead,
    free,
    group,
    owned,
    report,
    starting,
    stopping,
    table,
)
from .reign import RULES, A, B, P, Q, Reign, holding, ruling, told

THREE = {S0: alive(1), S1: alive(2), S2: alive(3)}
CLICKS = TopicPartition("clicks", 0)
TOPICS = [TopicPartition(name, 0) for name in "abcd"]


def reading(slots: Mapping[str, Slot]) -> dict[TopicPartition, State]:
    return {TopicPartition(topic, 0): owned(slot, slot + 1) for topic, slot in slots.items()}


def commands(known: Group, staying: Iterable[Slot] | None = None) -> list[tuple[Slot, Any]]:
    _, actions = move_writers(known, NOW, None if staying is None else frozenset(staying))
    return [
        (a.slot, (type(a.message), a.message.tables))
        for a in actions
        if isinstance(a, Tell) and isinstance(a.message, StartWriting | StopWriting)
    ]


# --- who should --------------------------------------------------------------------------------


def test_every_topic_with_partitions_has_a_writer_among_those_that_read() -> None:
    known = group(THREE, {P: owned(S1, 2), CLICKS: starting(S2, 3)})
    assert wanted(known) == {"clicks": S1, "orders": S2}


def test_whoever_only_stops_reading_is_no_reader() -> None:
    known = group(THREE, {P: stopping(S0, 1), Q: owned(S1, 2)})
    assert wanted(known) == {"orders": S1}


def test_if_nobody_reads_any_ready_consumer_writes() -> None:
    assert wanted(group(THREE, {P: free()})) == {"orders": S0}
    assert wanted(group({S0: alive(1, ready=False)}, {P: free()})) == {}


@pytest.mark.parametrize("member", [alive(1, ready=False), alive(1, leaving=True), dead(1)])
def test_who_is_not_ready_or_leaves_writes_nothing(member: Any) -> None:
    known = group({**THREE, S0: member}, {P: owned(S0, 1)}, {"orders": owned(S0, 1)})
    assert wanted(known) == {"orders": S1}


def test_a_writer_keeps_its_table_as_long_as_it_reads_anything() -> None:
    known = group(THREE, reading({"a": S0, "b": S2}), {"a": owned(S2, 3)})
    assert wanted(known) == {"a": S2, "b": S0}


def test_nobody_has_more_than_an_even_share() -> None:
    """The first by name stay, the others go to whoever has the fewest."""
    partitions = reading({"a": S0, "b": S1, "c": S0, "d": S0})
    roles = dict.fromkeys("abcd", owned(S0, 1))
    assert wanted(group(THREE, partitions, roles)) == {"a": S0, "b": S0, "c": S1, "d": S1}


def test_whoever_is_about_to_be_retired_writes_nothing_any_more() -> None:
    known = group(THREE, {P: owned(S0, 1), Q: owned(S1, 2)}, {"orders": owned(S0, 1)})
    assert wanted(known, {S1, S2}) == {"orders": S1}
    assert wanted(known, {S2}) == {"orders": S2}
    assert wanted(known, {Slot(7)}) == {"orders": S0}, "until somebody else is ready"


# --- how it moves ------------------------------------------------------------------------------


def test_a_released_table_is_started_at_once() -> None:
    known = group(THREE, {P: owned(S0, 1)}, {"orders": free()})
    after, _ = move_writers(known, NOW)
    assert commands(known) == [(S0, (StartWriting, ("orders",)))]
    assert commands(after) == []
    assert after.writers["orders"].slot == S0


def test_a_table_moves_by_stop_and_start() -> None:
    known = group(
        {**THREE, S0: alive(1, leaving=True)}, {P: owned(S1, 2)}, {"orders": owned(S0, 1)}
    )
    assert commands(known) == [(S0, (StopWriting, ("orders",)))]
    after, _ = move_writers(known, NOW)
    assert commands(after) == [], "nothing starts before the stop is answered"


def test_what_is_starting_is_left_to_be_answered() -> None:
    known = group(
        {**THREE, S0: alive(1, leaving=True)}, {P: owned(S1, 2)}, {"orders": starting(S0, 1)}
    )
    assert commands(known) == []


def test_with_nobody_ready_a_table_stays_where_it_is() -> None:
    known = group({S0: alive(1, leaving=True)}, {P: owned(S0, 1)}, {"orders": owned(S0, 1)})
    assert move_writers(known, NOW) == (known, ())


def test_a_topic_that_left_keeps_its_writer_until_all_that_was_staged_has_landed() -> None:
    for writing, ends in (
        ({"orders": table(pending_bytes=9)}, False),
        ({}, False),
        ({"orders": table()}, True),
    ):
        members = {S0: alive(1, writing=writing)}
        assert bool(commands(group(members, None, {"orders": owned(S0, 1)}))) is ends
    leaving = {S0: alive(1, leaving=True, writing={"orders": table(pending_bytes=9)})}
    assert commands(group(leaving, None, {"orders": owned(S0, 1)})) == [
        (S0, (StopWriting, ("orders",)))
    ]


def test_a_topic_that_left_is_forgotten_once_nobody_writes_its_table() -> None:
    known, _ = move_writers(group(THREE, {P: owned(S0, 1)}, {"clicks": free()}), NOW)
    assert known.writers.keys() == {"orders"}


# --- in the controller -------------------------------------------------------------------------

RATES = {P: 50.0, Q: 40.0}


def quiet(rates: dict[TopicPartition, float], target: dict[TopicPartition, Slot]) -> Reign:
    """Return a settled reign in which the test answers for the writers from now on."""
    reign = holding(rates, target)
    reign.writers_answer = False
    reign.actions.clear()
    return reign


def writer(reign: Reign, topic: str = "orders") -> State:
    return reign.group.writers[topic]


def test_the_first_reader_is_told_to_write_with_its_first_start() -> None:
    reign = ruling(RATES, A)
    reign.writers_answer = False
    actions = reign.pack({P: A, Q: A})
    (start,) = told(actions, StartWriting)
    assert start.tables == ("orders",)
    assert told(actions, StartReading)
    reign.answer(start, A)
    assert writer(reign) == Owned(A, start.epoch)


def test_an_unanswered_start_of_a_writer_is_sent_again() -> None:
    reign = ruling(RATES, A)
    reign.writers_answer = False
    (start,) = told(reign.pack({P: A, Q: A}), StartWriting)
    for read in told(reign.actions, StartReading):
        reign.started(read, A)
    again = []
    for _ in range(11):
        again += told(reign.tick(), StartWriting)
        reign.report(A, reading=[P, Q])
    assert again == [start]


def test_if_the_writer_dies_another_is_told_at_once() -> None:
    reign = quiet(RATES, {P: A, Q: B})
    (start,) = told(reign.dead(A), StartWriting)
    assert (start.epoch, start.tables) == (reign.group.member(B).epoch, ("orders",))


def test_if_the_writer_leaves_its_table_goes_first_and_then_it_is_retired() -> None:
    reign = quiet(RATES, {P: A, Q: B})
    actions = reign.report(A, reading=[P], leaving=True)
    (stop,) = told(actions, StopWriting)
    (read,) = told(actions, StopReading)
    (start,) = told(reign.answer(stop, A), StartWriting)
    assert start.epoch == reign.group.member(B).epoch
    (moved,) = told(reign.stopped(read, A), StartReading)
    reign.answer(start, B)
    reign.hear(Goodbye(slot=A, epoch=stop.epoch, next={}))
    reign.started(moved, B)
    assert reign.phase() == Sentinel
    assert reign.group.holders() == {B}


def scaled_down() -> tuple[Reign, StopReading, StopWriting]:
    """Return a reign in which A's last partition goes to B, and A's table with it."""
    reign = quiet({P: 30.0, Q: 30.0}, {P: A, Q: B})
    for _ in range(60):
        reign.tick()
        reign.report(A, reading=[P])
        reign.report(B, reading=[Q])
    actions = reign.pack({P: B, Q: B})
    (read,), (write,) = told(actions, StopReading), told(actions, StopWriting)
    return reign, read, write


def test_a_consumer_is_retired_only_after_its_tables_have_moved() -> None:
    reign, read, write = scaled_down()
    (start,) = told(reign.stopped(read, A), StartReading)
    actions = reign.started(start, B)
    assert reign.phase() == Manage
    assert Reconcile(frozenset({B})) not in actions
    actions = reign.answer(write, A)
    assert reign.phase() == Sentinel
    assert Reconcile(frozenset({B})) in actions
    assert told(actions, StartWriting)


def test_a_rejected_plan_retires_nobody_that_writes() -> None:
    reign = quiet(RATES, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    role = reign.group.writers.changed({"orders": Owned(B, reign.group.member(B).epoch or 0)})
    reign.state = replace(reign.state, group=replace(reign.group, writers=role))
    reign.measure({P: 90.0, Q: 40.0})
    actions = reign.pack({P: A, Q: A})
    assert [a for a in actions if isinstance(a, Reconcile)] == []


def test_a_writer_that_lost_its_table_is_replaced() -> None:
    reign = quiet(RATES, {P: A, Q: B})
    actions = reign.report(A, reading=[P], writing=[])
    assert Say("writer.lost", {"slot": A, "topic": "orders"}) in actions
    (start,) = told(actions, StartWriting)
    assert start.tables == ("orders",)


def test_two_writers_of_one_table_do_not_synchronize() -> None:
    reign = quiet(RATES, {P: A, Q: B})
    (stop,) = told(reign.report(B, reading=[Q], writing=["orders"]), StopWriting)
    assert (stop.epoch, stop.tables) == (reign.group.member(B).epoch, ("orders",))
    assert reign.phase() == Sentinel
    assert writer(reign).slot == A


def test_a_new_table_has_a_writer_while_the_packing_works() -> None:
    reign = quiet(RATES, {P: A, Q: A})
    reign.measure({CLICKS: 1.0})
    (start,) = told(reign.tick(2), StartWriting)
    assert start.tables == ("clicks",)


def test_who_only_observes_commands_no_writer() -> None:
    reign = quiet(RATES, {P: A, Q: B})
    observing = replace(reign.group, rules=replace(RULES, mode="observe"))
    reign.state = replace(reign.state, group=observing)
    assert told(reign.dead(A) + reign.tick(3), StartWriting) == []
    assert writer(reign) == Released()


def test_a_plain_report_changes_nothing_but_what_is_known_of_its_slot() -> None:
    reign = quiet(RATES, {P: A, Q: A})
    before = reign.group
    assert reign.report(A, reading={P: 8, Q: 9}) == []
    assert reign.group.partitions is before.partitions
    assert reign.group.writers is before.writers
    assert reign.group.member(A).reading == {P: 8, Q: 9}


def test_a_gap_has_the_reader_go_back_and_is_over_when_it_says_so() -> None:
    reign = quiet(RATES, {P: A, Q: B})
    reign.report(A, reading={P: 3})
    reign.report(B, reading={Q: 20})
    epoch = reign.group.member(A).epoch or 0
    (start,) = told(reign.hear(Gap(slot=A, epoch=epoch, committed={P: 7, Q: 15})), StartReading)
    assert start.offsets == {Q: 15}
    assert told(reign.hear(Gap(slot=A, epoch=epoch, committed={Q: 15})), StartReading) == []
    reign.started(start, B)
    assert reign.place(Q) == Owned(B, start.epoch)
    assert told(reign.hear(Gap(slot=A, epoch=epoch, committed={Q: 15})), StartReading) == []
    reign.dead(B)
    assert reign.place(Q) == Released(15)


def test_reports_of_the_superseded_take_no_role() -> None:
    reign = quiet(RATES, {P: A, Q: B})
    old = reign.group.member(A).epoch or 0
    reign.hello(A)
    actions: list[Action] = reign.hear(report(A, old, writing=["orders"]))
    assert told(actions, StopWriting) == []
