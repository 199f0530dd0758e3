"""A backlog counts as load: what it takes to read it within a time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import pytest
from immutables import Map
from tests.builders import (
    TERM,
    alive,
    changed,
    group,
    measurement,
    owned,
    record_read,
    with_member,
)
from tests.controller.decide.driver import CONFIG, A, P, Q, published

from binwright.controller.decide.apply import apply_record
from binwright.controller.decide.catch_up import (
    PROVEN,
    SLACK_S,
    publish_backlogs,
    with_backlogs,
)
from binwright.group.group import Group
from binwright.group.ownership import Released, State
from binwright.group.plans import packing_request, triggers
from binwright.protocol.metadata import CatchingUp, TableReport
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition

CATCHING_UP = CONFIG.with_settings(catch_up_s=100.0)  # packed to 100 bytes/s; a limit of 120
ON_TIME_S = CONFIG.on_time_s
RATE, RECORD = 20.0, 10.0
SLACK = round(SLACK_S * RATE / RECORD)  # records that are no backlog


def table(
    state: Literal["landing", "refused", "paused"] = "landing",
    age_s: float = 0.0,
    commits: int = 1,
) -> TableReport:
    return TableReport(state=state, committed={}, age_s=age_s, commits=commits)


def measured(ends: Mapping[TopicPartition, int], **more: object) -> Measurement:
    """Return a measurement of partitions that get 20 bytes/s, in records of 10 bytes."""
    parts = [
        PartitionRate(
            p.partition,
            **{  # type: ignore[arg-type]
                "rate": BytesPerSecond(RATE),
                "window_s": 30.0,
                "end": end,
                "start": 0,
                "bytes_per_record": RECORD,
                **more,
            },
        )
        for p, end in ends.items()
    ]
    (topic,) = {p.topic for p in ends}
    return measurement(topic, parts)


def reading(
    positions: Mapping[TopicPartition, int | None], writes: TableReport | None = None
) -> Group:
    """Return a group whose only consumer reads these partitions, and writes their table."""
    states: dict[TopicPartition, State] = {p: owned(A, 1) for p in positions}
    member = alive(1, reading=positions, writing={} if writes is None else {"orders": writes})
    writers = {} if writes is None else {"orders": owned(A, 1)}
    rates = dict.fromkeys(positions, RATE)
    return group({A: member}, states, writers, rates=rates, config=CATCHING_UP)


def backlogs(found: Group, measurement: Measurement, now: float) -> Group:
    return replace(found, load=with_backlogs(found, measurement, now))


def proven(found: Group) -> Group:
    """Return the group as it is known from before, at 0 s."""
    return backlogs(found, measured({P: 0}), 0.0)


def need(found: Group, partition: TopicPartition = P) -> float:
    return found.need(partition)


def test_a_backlog_adds_what_reads_it_in_time() -> None:
    found = backlogs(reading({P: 0}), measured({P: SLACK + 500}), 0.0)
    assert need(found) == RATE + 500 * RECORD / 100
    assert packing_request(found).load.rates == {P: 70.0}


@pytest.mark.parametrize("end", [0, 1, SLACK])
def test_what_a_partition_gets_in_half_a_minute_is_no_backlog(end: int) -> None:
    found = backlogs(reading({P: 0}), measured({P: end}), 0.0)
    assert need(found) == RATE
    assert not found.load.catch_up


def test_a_partition_needs_at_most_what_a_consumer_is_given() -> None:
    assert need(backlogs(reading({P: 0}), measured({P: 10**6}), 0.0)) == 100.0
    fast = measured({P: 10**6}, rate=BytesPerSecond(150.0))
    assert not backlogs(reading({P: 0}), fast, 0.0).load.catch_up


def test_what_retention_has_deleted_is_no_backlog() -> None:
    found = backlogs(reading({P: 0}), measured({P: SLACK + 500}, start=SLACK + 450), 0.0)
    assert need(found) == RATE
    found = backlogs(reading({P: 0}), measured({P: SLACK + 500}, start=450), 0.0)
    assert need(found) == RATE + 50 * RECORD / 100


@pytest.mark.parametrize("more", [{"rate": None}, {"bytes_per_record": None}])
def test_what_is_not_measured_adds_nothing(more: dict[str, object]) -> None:
    assert not backlogs(reading({P: 0}), measured({P: 10**6}, **more), 0.0).load.catch_up


@pytest.mark.parametrize("position", [None, {}])
def test_an_unknown_position_adds_nothing(position: object) -> None:
    found = reading({P: None} if position is None else {P: 0})
    if position is not None:
        found = changed(found, partitions=group({}, {P: Released(5)}).members.partitions)
    assert not backlogs(found, measured({P: 10**6}), 0.0).load.catch_up
    assert not backlogs(group({}, config=CATCHING_UP), measured({P: 10**6}), 0.0).load.catch_up


def test_the_need_stays_as_the_backlog_shrinks_and_ends_with_it() -> None:
    found = backlogs(reading({P: 0, Q: 0}), measured({P: SLACK + 500, Q: SLACK + 100}), 0.0)
    assert (need(found, P), need(found, Q)) == (70.0, 30.0)
    found = backlogs(found, measured({P: SLACK + 300, Q: SLACK}), 0.0)
    assert (need(found, P), need(found, Q)) == (70.0, RATE)
    assert set(found.load.catch_up) == {P}
    fast = measured({P: 10**6}, rate=BytesPerSecond(65.0))
    assert backlogs(found, fast, 0.0).load.catch_up[P] == 35.0, "all that a plan gives"
    moving = changed(found, partitions=group({}, {P: Released(5)}).members.partitions)
    assert backlogs(moving, measured({P: SLACK}), 0.0).load.catch_up[P] == 50.0, "not known"
    found = backlogs(found, measured({P: SLACK, Q: SLACK}), 0.0)
    assert not found.load.catch_up


def test_without_a_time_backlogs_count_for_nothing() -> None:
    found = replace(reading({P: 0}), config=CONFIG)
    assert not backlogs(found, measured({P: 10**6}), 0.0).load.catch_up


@pytest.mark.parametrize(
    "late", [table(age_s=ON_TIME_S + 1), table("refused"), table("paused"), table(commits=0)]
)
def test_the_need_does_not_grow_while_rows_land_late(late: TableReport) -> None:
    """More consumers would stage more, and Spark would land no more."""
    found = proven(reading({P: 0}, late))
    assert not backlogs(found, measured({P: SLACK + 500}), ON_TIME_S).load.catch_up
    in_time = proven(reading({P: 0}, table(age_s=ON_TIME_S)))
    in_time = backlogs(in_time, measured({P: SLACK + 300}), ON_TIME_S)
    member = replace(in_time.members.get(A), writing={"orders": late})
    found = backlogs(with_member(in_time, A, member), measured({P: SLACK + 500}), ON_TIME_S)
    assert need(found) == RATE + 30.0, "what is there stays"
    assert not backlogs(found, measured({P: SLACK}), ON_TIME_S).load.catch_up


def test_the_sink_has_to_keep_up_for_a_while_before_the_need_grows() -> None:
    """At first nothing is late: a row has to be old to be."""
    backlog = measured({P: SLACK + 500})
    found = backlogs(reading({P: 0}, table()), backlog, 5.0)
    found = backlogs(found, backlog, 5.0 + PROVEN * ON_TIME_S - 0.1)
    assert not found.load.catch_up
    assert backlogs(found, backlog, 5.0 + PROVEN * ON_TIME_S).load.catch_up
    member = replace(found.members.get(A), writing={"orders": table(age_s=ON_TIME_S + 1)})
    found = backlogs(with_member(found, A, member), backlog, 17.0)
    member = replace(found.members.get(A), writing={"orders": table()})
    found = backlogs(with_member(found, A, member), backlog, 18.0)
    assert not found.load.catch_up
    found = backlogs(found, backlog, 18.0 + PROVEN * ON_TIME_S - 0.1)
    assert not found.load.catch_up, "from then on"
    assert backlogs(found, backlog, 18.0 + PROVEN * ON_TIME_S).load.catch_up


def test_a_topic_of_which_one_table_lands_in_time_may_get_more_consumers() -> None:
    tables = {
        "raw": replace(table(), topic="orders"),
        "typed": replace(table("refused"), topic="orders"),
    }
    known = reading({P: 0}, table("refused"))
    for found, grows in ((tables, True), (tables | {"raw": tables["typed"]}, False)):
        member = replace(known.members.get(A), writing=found)
        found_ = backlogs(
            proven(with_member(known, A, member)), measured({P: SLACK + 500}), ON_TIME_S
        )
        assert bool(found_.load.catch_up) is grows


def test_a_backlog_triggers_a_plan_with_its_reason() -> None:
    found = backlogs(reading({P: 0, Q: 0}), measured({P: SLACK + 700, Q: SLACK}), 0.0)
    assert triggers(found) == ()
    found = backlogs(found, measured({P: SLACK + 700, Q: SLACK + 300}), 0.0)
    assert triggers(found) == (
        "consumer 0 carries 116.7% of its limit, with 2 partitions to catch up in 100 s",
    )


def test_what_backlogs_count_for_is_published_once_and_the_next_leader_goes_on_from_it() -> None:
    known = reading({P: 0})
    assert not publish_backlogs(known)[1]
    counting = backlogs(known, measured({P: SLACK + 500}), 0.0)
    after, actions = publish_backlogs(counting)
    (message,) = published(actions)
    assert message == CatchingUp(term=TERM, needs={P: BytesPerSecond(50.0)})
    assert isinstance(message, CatchingUp)
    again = changed(after, catch_up=Map(message.needs))
    assert publish_backlogs(again) == (again, ())

    history = replace(known, term=None)
    successor, _ = apply_record(history, record_read(message))
    assert successor.load.catch_up == counting.load.catch_up
    assert not publish_backlogs(successor)[1]
    without = replace(history, config=CATCHING_UP.with_settings(catch_up_s=0.0))
    none, _ = apply_record(without, record_read(message))
    assert published(publish_backlogs(none)[1]) == [CatchingUp(term=0, needs={})]
    leading, _ = apply_record(known, record_read(message))
    assert not leading.load.catch_up, "of another leader, which has stepped down"
