"""Which consumer writes which table, and how that changes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import (
    NOW,
    S0,
    S1,
    S2,
    alive,
    changed,
    dead,
    group,
    owned,
    released,
    report,
    starting,
    stopping,
    table,
)
from tests.controller.decide.driver import (
    CONFIG,
    A,
    B,
    ControllerDriver,
    P,
    Q,
    assigned,
    leading,
    sent_commands,
)
from tests.controller.decide.running_group import PATIENT, carry_out, disruptions

from binwright.controller.decide.apply import WRITER_LOST
from binwright.controller.decide.events import Action, Packed, Reconcile, Send
from binwright.controller.decide.moves import move_writers, wanted_writers
from binwright.controller.decide.states import Manage, Sentinel
from binwright.group.group import Group
from binwright.group.ownership import Owned, Released, State
from binwright.group.plans import Pack
from binwright.protocol.commands import StartReading, StartWriting, StopReading, StopWriting
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Gap
from binwright.protocol.model import Slot, TopicPartition

THREE = {S0: alive(1), S1: alive(2), S2: alive(3)}
CLICKS, SECOND = TopicPartition("clicks", 0), TopicPartition("a", 1)


def reading(slots: Mapping[str, Slot]) -> dict[TopicPartition, State]:
    return {TopicPartition(topic, 0): owned(slot, slot + 1) for topic, slot in slots.items()}


def commands(known: Group, staying: Iterable[Slot] | None = None) -> list[tuple[Slot, Any]]:
    _, actions = move_writers(known, NOW, None if staying is None else frozenset(staying))
    return [
        (a.slot, (type(a.message), a.message.tables))
        for a in actions
        if isinstance(a, Send) and isinstance(a.message, StartWriting | StopWriting)
    ]


# --- wanted writers ----------------------------------------------------------------------------


def test_every_topic_with_partitions_has_a_writer_among_those_that_read() -> None:
    known = group(THREE, {P: owned(S1, 2), CLICKS: starting(S2, 3)})
    assert wanted_writers(known, NOW) == {"clicks": S1, "orders": S2}


def test_a_consumer_that_only_stops_reading_is_no_candidate() -> None:
    known = group(THREE, {P: stopping(S0, 1), Q: owned(S1, 2)})
    assert wanted_writers(known, NOW) == {"orders": S1}


def test_without_readers_any_ready_consumer_writes() -> None:
    assert wanted_writers(group(THREE, {P: released()}), NOW) == {"orders": S0}
    assert wanted_writers(group({S0: alive(1, ready=False)}, {P: released()}), NOW) == {}


@pytest.mark.parametrize("member", [alive(1, ready=False), alive(1, leaving=True), dead(1)])
def test_a_consumer_that_is_not_ready_or_drains_writes_nothing(member: Any) -> None:
    known = group({**THREE, S0: member}, {P: owned(S0, 1)}, {"orders": owned(S0, 1)})
    assert wanted_writers(known, NOW) == {"orders": S1}


def test_first_roles_are_spread_over_the_ready_consumers_that_read() -> None:
    """The one with the fewest comes first, then the lowest; what each has counts."""
    partitions = reading({"a": S0, "b": S2, "c": S0, "d": S0})
    assert wanted_writers(group(THREE, partitions, {"c": owned(S0, 1)}), NOW) == {
        "a": S2,
        "b": S0,
        "c": S0,
        "d": S2,
    }


def test_a_consumer_about_to_be_retired_writes_nothing() -> None:
    known = group(THREE, {P: owned(S0, 1), Q: owned(S1, 2)}, {"orders": owned(S0, 1)})
    assert wanted_writers(known, NOW, {S1, S2}) == {"orders": S1}
    assert wanted_writers(known, NOW, {S2}) == {"orders": S2}
    assert wanted_writers(known, NOW, {Slot(7)}) == {"orders": S0}, (
        "until another consumer is ready"
    )


# --- how it moves ------------------------------------------------------------------------------


def test_a_released_table_is_started_at_once() -> None:
    known = group(THREE, {P: owned(S0, 1)}, {"orders": released()})
    after, _ = move_writers(known, NOW)
    assert commands(known) == [(S0, (StartWriting, ("orders",)))]
    assert commands(after) == []
    assert after.members.writers["orders"].slot == S0


def test_a_table_moves_by_stop_and_start() -> None:
    known = group(
        {**THREE, S0: alive(1, leaving=True)}, {P: owned(S1, 2)}, {"orders": owned(S0, 1)}
    )
    assert commands(known) == [(S0, (StopWriting, ("orders",)))]
    after, _ = move_writers(known, NOW)
    assert commands(after) == [], "no start is sent before the stop is acknowledged"


def test_a_starting_writer_gets_no_other_command() -> None:
    known = group(
        {**THREE, S0: alive(1, leaving=True)}, {P: owned(S1, 2)}, {"orders": starting(S0, 1)}
    )
    assert commands(known) == []


def test_with_no_ready_consumer_a_table_keeps_its_writer() -> None:
    known = group({S0: alive(1, leaving=True)}, {P: owned(S0, 1)}, {"orders": owned(S0, 1)})
    assert move_writers(known, NOW) == (known, ())


def test_a_gone_topic_keeps_its_writer_until_all_staged_data_has_landed() -> None:
    for writing, stopped in (
        ({"orders": table(pending_bytes=9)}, False),
        ({}, False),
        ({"orders": table()}, True),
        ({"raw": replace(table(), topic="orders")}, True),
        (
            {
                "raw": replace(table(), topic="orders"),
                "typed": replace(table(pending_bytes=9), topic="orders"),
            },
            False,
        ),
    ):
        members = {S0: alive(1, writing=writing)}
        assert bool(commands(group(members, None, {"orders": owned(S0, 1)}))) is stopped
    leaving = {S0: alive(1, leaving=True, writing={"orders": table(pending_bytes=9)})}
    assert commands(group(leaving, None, {"orders": owned(S0, 1)})) == [
        (S0, (StopWriting, ("orders",)))
    ]


def test_a_gone_topic_is_forgotten_once_its_table_has_no_writer() -> None:
    known, _ = move_writers(group(THREE, {P: owned(S0, 1)}, {"clicks": released()}), NOW)
    assert known.members.writers.keys() == {"orders"}


# --- evenness: one role at a time, and only once nothing starts ---------------------------------


def uneven(
    members: Mapping[Slot, Any] | None = None, tables: Mapping[str, Any] | None = None, **more: Any
) -> Group:
    """Return a group that has settled, whose first consumer writes all four topics."""
    writing = {topic: table() for topic in "abcd"} | dict(tables or {})
    known = {**THREE, S0: alive(1, writing=writing), **dict(members or {})}
    partitions = reading({"a": S0, "b": S1, "c": S0, "d": S0}) | more.pop("partitions", {})
    return group(known, partitions, dict.fromkeys("abcd", owned(S0, 1)), **more)


def test_once_a_group_has_settled_an_uneven_share_moves_table_by_table() -> None:
    known = uneven()
    assert commands(known) == [(S0, (StopWriting, ("d",)))]
    known, _ = move_writers(known, NOW)
    assert commands(known) == []
    known = changed(known, writers=known.members.writers.changed({"d": released()}))
    assert commands(known) == [(S1, (StartWriting, ("d",)))]
    known = changed(known, writers=known.members.writers.changed({"d": owned(S1, 2)}))
    for claim, moves in (
        ({}, False),
        ({"d": replace(table(), state="claiming")}, False),
        ({"d": replace(table(), state="claiming", fault="Spark is away")}, True),
        ({"d": table()}, True),
    ):
        claimed = changed(known, by_slot=known.members.by_slot.set(S1, alive(2, writing=claim)))
        assert commands(claimed) == ([(S0, (StopWriting, ("c",)))] if moves else [])
    even = {"c": owned(S1, 2), "d": owned(S1, 2)}
    assert commands(changed(known, writers=known.members.writers.changed(even))) == []


@pytest.mark.parametrize(
    ("known", "staying"),
    [
        (uneven({S1: alive(2, ready_at=NOW - 59)}), None),
        (uneven({S2: alive(3, ready=False)}), None),
        (uneven({S2: dead(3)}, desired=frozenset({S2}), asked_at={S2: NOW - 299}), None),
        (uneven(), {S0, S1, Slot(7)}),
        (uneven(partitions={SECOND: starting(S1, 2)}), None),
        (uneven(partitions={SECOND: released()}), None),
    ],
    ids=["ready-now", "not-ready", "asked-for", "asked-for-by-the-plan", "moving", "unread"],
)
def test_a_role_stays_where_it_is_while_anything_starts(
    known: Group, staying: set[Slot] | None
) -> None:
    stopped = [topics for _, (kind, topics) in commands(known, staying) if kind is StopWriting]
    assert stopped == []


def test_a_consumer_that_does_not_start_in_its_time_is_not_waited_for() -> None:
    absent = uneven({S2: dead(3)}, desired=frozenset({S2}), asked_at={S2: NOW - 300})
    hangs = uneven({S2: replace(alive(3, ready=False), arrived_at=NOW - 300)})
    for known in (absent, hangs):
        assert commands(known, {S0, S1, S2}) == [(S0, (StopWriting, ("d",)))]


@pytest.mark.parametrize(
    ("late", "moved"), [("", "d"), ("d", "c"), ("acd", "b"), ("abcd", "d")], ids=len
)
def test_a_topic_whose_rows_are_late_stays_unless_its_writer_does_not_keep_up(
    late: str, moved: str
) -> None:
    tables = {topic: replace(table(), age_s=12.5) for topic in late}
    assert commands(uneven(tables=tables)) == [(S0, (StopWriting, (moved,)))]


def test_evenness_gives_a_closed_consumer_nothing_and_no_other_more_than_its_share() -> None:
    tables = {S2: alive(3, writing={"e": table(), "f": table()})}
    known = uneven(tables, partitions=reading({"e": S2, "f": S2}))
    roles = dict.fromkeys("ef", owned(S2, 3))
    known = changed(known, writers=known.members.writers.changed(roles))
    assert commands(known) == [(S0, (StopWriting, ("d",)))]
    assert commands(changed(known, disruptions=disruptions("roll", S1))) == []


@pytest.mark.parametrize("settled", [False, True])
def test_a_writer_that_reads_nothing_keeps_its_tables_while_anything_starts(settled: bool) -> None:
    members = {**THREE, S1: alive(2, ready_at=0.0 if settled else NOW)}
    roles = {"a": owned(S2, 3), "b": owned(S2, 3)}
    known = group(members, reading({"a": S0, "b": S1}), roles)
    writers = {"a": S0, "b": S1} if settled else {"a": S2, "b": S2}
    assert wanted_writers(known, NOW) == writers


@pytest.mark.parametrize("gone", [dead(1), alive(1, leaving=True)], ids=["dead", "leaves"])
def test_the_roles_of_one_that_dies_or_leaves_move_at_once_while_others_start(gone: Any) -> None:
    known = uneven({S0: gone, S1: alive(2, ready_at=NOW)})
    assert wanted_writers(known, NOW) == dict.fromkeys("abcd", S1)


# --- in the controller -------------------------------------------------------------------------

RATES = {P: 50.0, Q: 40.0}


def assigned_without_acknowledgements(
    rates: dict[TopicPartition, float], target: dict[TopicPartition, Slot]
) -> ControllerDriver:
    """Return a leader with all partitions owned; from now on the test acknowledges writers."""
    driver = assigned(rates, target)
    driver.acknowledge_writers = False
    driver.actions.clear()
    return driver


def writer(driver: ControllerDriver, topic: str = "orders") -> State:
    return driver.group.members.writers[topic]


def test_the_first_reader_is_made_the_writer_with_its_first_start() -> None:
    driver = leading(RATES, A)
    driver.acknowledge_writers = False
    actions = driver.pack({P: A, Q: A})
    (start,) = sent_commands(actions, StartWriting)
    assert start.tables == ("orders",)
    assert sent_commands(actions, StartReading)
    driver.acknowledge(start, A)
    assert writer(driver) == Owned(A, start.epoch)


def test_if_the_writer_dies_another_one_is_started_at_once() -> None:
    driver = assigned_without_acknowledgements(RATES, {P: A, Q: B})
    (start,) = sent_commands(driver.dead(A), StartWriting)
    assert (start.epoch, start.tables) == (driver.group.members.get(B).epoch, ("orders",))


GROWN = 20


def growing() -> ControllerDriver:
    """Return a leader of a group of one consumer that grows to twenty, each second by one."""
    topics = ("clicks", "orders")
    parts = [TopicPartition(topic, n) for topic in topics for n in range(GROWN // 2)]
    driver = leading(dict.fromkeys(parts, 90.0), A)
    actions = driver.pack({p: Slot(n) for n, p in enumerate(parts)})
    for slot in map(Slot, range(1, GROWN)):
        carry_out(driver, actions)
        for known in range(slot):
            driver.report(
                Slot(known), reading=driver.group.members.partitions.owned_by(Slot(known))
            )
        driver.tick()
        driver.hello(slot)
        actions = driver.report(slot)
    carry_out(driver, actions)
    return driver


def test_a_group_that_grows_from_one_to_twenty_consumers_moves_no_role() -> None:
    driver = growing()
    assert {at.slot for at in driver.group.members.partitions.values()} == set(range(GROWN))
    assert {topic: writer(driver, topic).slot for topic in ("clicks", "orders")} == {
        "clicks": A,
        "orders": A,
    }
    assert sent_commands(driver.actions, StopWriting) == []


def test_if_the_writer_dies_while_its_group_grows_its_tables_move_at_once() -> None:
    driver = growing()
    starts = sent_commands(driver.dead(A), StartWriting)
    assert sorted(topic for start in starts for topic in start.tables) == ["clicks", "orders"]
    assert A not in {writer(driver, topic).slot for topic in ("clicks", "orders")}


def test_a_consumer_that_never_begins_delays_evenness_no_longer_than_it_may_take_to_start() -> None:
    """The plan that needs it is given up and made again meanwhile: that begins no new time."""
    driver = leading({P: 50.0, Q: 40.0, CLICKS: 40.0}, A)
    driver.state = replace(driver.state, group=changed(driver.group, config=PATIENT))
    carry_out(driver, driver.pack({P: A, Q: A, CLICKS: A}))
    driver.hello(B)
    driver.report(B)
    driver.measure({P: 50.0, Q: 41.0, CLICKS: 40.0})
    target = {P: A, Q: B, CLICKS: Slot(2)}
    carry_out(driver, driver.pack(target))
    asked_at = driver.now
    driver.report(A, reading=[P, CLICKS])
    driver.measure({P: 90.0, Q: 41.0, CLICKS: 40.0})
    while not (stops := sent_commands(actions := driver.tick(), StopWriting)):
        assert driver.now - asked_at < 300
        if any(isinstance(action, Pack) for action in actions):
            driver.feed(Packed(driver.now, target))
    assert driver.actions.count(Reconcile(frozenset({A, B, Slot(2)}))) > 1
    assert ([stop.tables for stop in stops], driver.now - asked_at) == ([("orders",)], 300)
    assert writer(driver).slot == B


def scaled_down() -> tuple[ControllerDriver, StopReading, StopWriting]:
    """Return a leader that moves A's last partition and A's table to B."""
    driver = assigned_without_acknowledgements({P: 30.0, Q: 30.0}, {P: A, Q: B})
    for _ in range(60):
        driver.tick()
        driver.report(A, reading=[P])
        driver.report(B, reading=[Q])
    actions = driver.pack({P: B, Q: B})
    (read,), (write,) = sent_commands(actions, StopReading), sent_commands(actions, StopWriting)
    return driver, read, write


def test_a_consumer_is_retired_only_after_its_tables_have_moved() -> None:
    driver, read, write = scaled_down()
    (start,) = sent_commands(driver.stopped(read, A), StartReading)
    actions = driver.started(start, B)
    assert driver.phase() == Manage
    assert Reconcile(frozenset({B})) not in actions
    actions = driver.acknowledge(write, A)
    assert driver.phase() == Sentinel
    assert Reconcile(frozenset({B})) in actions
    assert sent_commands(actions, StartWriting)


def test_a_rejected_plan_retires_no_writer() -> None:
    driver = assigned_without_acknowledgements(RATES, {P: A, Q: A})
    driver.hello(B)
    driver.report(B)
    role = driver.group.members.writers.changed(
        {"orders": Owned(B, driver.group.members.get(B).epoch or 0)}
    )
    driver.state = replace(driver.state, group=changed(driver.group, writers=role))
    driver.measure({P: 90.0, Q: 40.0})
    actions = driver.pack({P: A, Q: A})
    assert [a for a in actions if isinstance(a, Reconcile)] == []


def test_a_writer_that_lost_its_table_is_replaced() -> None:
    driver = assigned_without_acknowledgements(RATES, {P: A, Q: B})
    actions = driver.report(A, reading=[P], writing=[])
    assert Log(WRITER_LOST, {"slot": A, "topic": "orders"}) in actions
    (start,) = sent_commands(actions, StartWriting)
    assert start.tables == ("orders",)


def test_two_writers_of_one_table_do_not_synchronize() -> None:
    driver = assigned_without_acknowledgements(RATES, {P: A, Q: B})
    (stop,) = sent_commands(driver.report(B, reading=[Q], writing=["orders"]), StopWriting)
    assert (stop.epoch, stop.tables) == (driver.group.members.get(B).epoch, ("orders",))
    assert driver.phase() == Sentinel
    assert writer(driver).slot == A


def test_a_new_table_gets_a_writer_while_the_packing_runs() -> None:
    driver = assigned_without_acknowledgements(RATES, {P: A, Q: A})
    driver.measure({CLICKS: 1.0})
    (start,) = sent_commands(driver.tick(2), StartWriting)
    assert start.tables == ("clicks",)


def test_in_mode_observe_no_writer_is_commanded() -> None:
    driver = assigned_without_acknowledgements(RATES, {P: A, Q: B})
    observing = replace(driver.group, config=CONFIG.with_settings(mode="observe"))
    driver.state = replace(driver.state, group=observing)
    assert sent_commands(driver.dead(A) + driver.tick(3), StartWriting) == []
    assert writer(driver) == Released()


def test_a_plain_report_changes_only_its_member() -> None:
    driver = assigned_without_acknowledgements(RATES, {P: A, Q: A})
    before = driver.group
    assert driver.report(A, reading={P: 8, Q: 9}) == []
    assert driver.group.members.partitions is before.members.partitions
    assert driver.group.members.writers is before.members.writers
    assert driver.group.members.get(A).reading == {P: 8, Q: 9}


def test_a_gap_makes_the_reader_seek_back_until_it_acknowledges() -> None:
    driver = assigned_without_acknowledgements(RATES, {P: A, Q: B})
    driver.report(A, reading={P: 3})
    driver.report(B, reading={Q: 20})
    epoch = driver.group.members.get(A).epoch or 0
    (start,) = sent_commands(
        driver.read(Gap(slot=A, epoch=epoch, committed={P: 7, Q: 15})), StartReading
    )
    assert start.offsets == {Q: 15}
    assert (
        sent_commands(driver.read(Gap(slot=A, epoch=epoch, committed={Q: 15})), StartReading) == []
    )
    driver.started(start, B)
    assert driver.partition_state(Q) == Owned(B, start.epoch)
    assert (
        sent_commands(driver.read(Gap(slot=A, epoch=epoch, committed={Q: 15})), StartReading) == []
    )
    driver.dead(B)
    assert driver.partition_state(Q) == Released(15)


def test_reports_of_ended_epochs_take_no_role() -> None:
    driver = assigned_without_acknowledgements(RATES, {P: A, Q: B})
    old = driver.group.members.get(A).epoch or 0
    driver.hello(A)
    actions: list[Action] = driver.read(report(A, old, writing=["orders"]))
    assert sent_commands(actions, StopWriting) == []
