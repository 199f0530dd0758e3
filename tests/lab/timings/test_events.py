"""Triggers, starts and changes from the records of a group, from the beginning of a range on."""

import pytest
from tests.builders import LIMIT, P, Q, measurement

from binwright.lab.timings.events import GroupRecord, GroupTimings, timings_since
from binwright.lab.timings.steps import Pass
from binwright.protocol.metadata import (
    Claim,
    Dead,
    Goodbye,
    Hello,
    Planned,
    Report,
    Started,
    Stopped,
)
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot, TopicPartition

A, B = Slot(0), Slot(1)
LIMITS = PerSlot(BytesPerSecond(100.0))
EPOCHS = {A: 10, B: 20}


def planned(targets: dict[TopicPartition, Slot]) -> Planned:
    return Planned(
        term=1,
        reasons=("r",),
        consumers=len(set(targets.values())),
        moves={},
        rscore=0.0,
        rates={},
        targets=targets,
    )


def report(slot: Slot, *, ready: bool, reading: tuple[TopicPartition, ...] = ()) -> Report:
    return Report(
        slot=slot,
        epoch=EPOCHS[slot],
        term=1,
        ready=ready,
        reading=dict.fromkeys(reading, 0),
        writing={},
    )


def started(slot: Slot, *partitions: TopicPartition) -> Started:
    offsets = dict.fromkeys(partitions, 0)
    return Started(slot=slot, epoch=EPOCHS[slot], revision=1, offsets=offsets)


class Group:
    """A group whose consumer A reads both partitions."""

    def __init__(self) -> None:
        self.timings = GroupTimings(LIMITS)
        self.apply(0.0, Hello(slot=A, process="a", version="1"), EPOCHS[A])
        self.apply(0.0, report(A, ready=True))
        self.apply(0.0, started(A, P, Q))
        self.number = 0

    def apply(self, at_s: float, message: object, offset: int = 99) -> None:
        self.timings.apply(at_s, offset, message)  # type: ignore[arg-type]

    def measure(self, at_s: float, p: float, q: float, monitor: str = "m") -> None:
        self.number += 1
        rates = (PartitionRate(n, BytesPerSecond(r), 30, 0, 0, None) for n, r in enumerate((p, q)))
        found = measurement("orders", rates, number=self.number, monitor=monitor)
        self.timings.apply_measurement(at_s, found)

    def start_b(self, hello_s: float, ready_s: float) -> None:
        self.apply(hello_s, Hello(slot=B, process="b", version="1"), EPOCHS[B])
        self.apply(hello_s, report(B, ready=False))
        self.apply(ready_s, report(B, ready=True))


@pytest.fixture
def group() -> Group:
    return Group()


def test_a_trigger_lasts_from_the_first_overload_to_the_plan(group: Group) -> None:
    group.measure(9.0, 50, 50)
    group.measure(10.0, 60, 60)
    group.measure(11.0, 70, 70)
    group.apply(11.5, planned({P: A, Q: B}))
    assert [one.seconds for one in group.timings.triggers] == [1.5]


def test_an_overload_that_passes_calls_for_no_plan(group: Group) -> None:
    group.measure(10.0, 60, 60)
    group.measure(11.0, 40, 40)
    group.measure(12.0, 60, 60)
    group.apply(12.5, planned({P: A, Q: B}))
    assert [one.seconds for one in group.timings.triggers] == [0.5]


def test_a_partition_alone_above_the_limit_is_no_overload(group: Group) -> None:
    group.start_b(0.0, 0.0)
    group.apply(0.0, started(B, Q))
    group.measure(10.0, 150, 10)
    group.apply(11.0, planned({P: A, Q: A}))
    assert group.timings.triggers == []
    assert group.timings.untriggered == 1


def test_a_measurement_of_a_monitor_that_is_not_followed_changes_nothing(group: Group) -> None:
    group.measure(10.0, 40, 40)
    group.measure(10.5, 60, 60, monitor="other")
    assert not group.timings.triggers
    group.apply(11.0, planned({P: A, Q: B}))
    assert group.timings.untriggered == 1


def test_an_overload_during_a_change_counts_from_its_end(group: Group) -> None:
    """The controller compares again only then."""
    group.start_b(0.0, 0.0)
    group.apply(10.0, planned({P: A, Q: B}))
    group.apply(10.1, started(B, Q))
    group.apply(11.0, planned({P: A, Q: A}))
    group.measure(12.0, 60, 60)
    group.apply(13.0, started(A, Q))
    group.apply(13.25, planned({P: B, Q: A}))
    assert [one.seconds for one in group.timings.triggers] == [0.25]


def test_a_start_lasts_from_the_plan_to_the_first_ready_report(group: Group) -> None:
    group.apply(10.0, planned({P: A, Q: B}))
    group.start_b(10.5, 11.0)
    group.apply(12.0, report(B, ready=True))
    (start,) = group.timings.starts
    assert (start.slot, start.seconds, start.process_s) == (B, 1.0, 0.5)


def test_a_consumer_that_no_plan_asked_for_is_no_start(group: Group) -> None:
    group.start_b(10.5, 11.0)
    assert group.timings.starts == []


def test_a_change_lasts_until_the_last_partition_has_its_new_reader(group: Group) -> None:
    group.apply(10.0, planned({P: B, Q: B}))
    group.start_b(10.5, 11.0)
    group.apply(11.1, started(B, P))
    assert group.timings.changing
    group.apply(11.5, started(B, Q))
    (change,) = group.timings.changes
    assert (change.seconds, change.after_ready_s) == (1.5, 0.5)
    assert (change.partitions, change.started) == (2, 1)
    assert not group.timings.changing


def test_a_change_without_a_start_lasts_from_the_plan(group: Group) -> None:
    group.start_b(0.0, 0.0)
    group.apply(10.0, planned({P: A, Q: B}))
    group.apply(10.5, started(B, Q))
    (change,) = group.timings.changes
    assert (change.started, change.seconds, change.after_ready_s) == (0, 0.5, 0.5)


def test_another_consumers_start_completes_nothing(group: Group) -> None:
    group.start_b(0.0, 0.0)
    group.apply(10.0, planned({P: A, Q: B}))
    group.apply(10.5, started(A, Q))
    assert group.timings.changing


def test_a_reply_of_a_process_that_was_replaced_completes_nothing(group: Group) -> None:
    group.start_b(0.0, 0.0)
    group.apply(10.0, planned({P: A, Q: B}))
    group.apply(10.2, Hello(slot=B, process="again", version="1"), 30)
    group.apply(10.5, started(B, Q))
    assert group.timings.changing


@pytest.mark.parametrize("message", [planned({P: A, Q: A}), Claim(controller="c", limit=LIMIT)])
def test_a_plan_that_is_replaced_is_unfinished(group: Group, message: object) -> None:
    group.apply(10.0, planned({P: A, Q: B}))
    group.apply(11.0, message)
    assert group.timings.unfinished == 1
    assert not group.timings.changing


def test_a_plan_that_moves_nothing_is_no_change(group: Group) -> None:
    group.apply(10.0, planned({P: A, Q: A}))
    assert not group.timings.changing
    assert group.timings.plans == 1


@pytest.mark.parametrize(
    "message",
    [
        Dead(slot=A, epoch=EPOCHS[A], term=1),
        Goodbye(slot=A, epoch=EPOCHS[A], next={}),
        Hello(slot=A, process="again", version="1"),
    ],
)
def test_partitions_of_a_process_that_ended_get_another_reader(
    group: Group, message: object
) -> None:
    group.start_b(0.0, 0.0)
    group.apply(9.0, message)
    group.apply(10.0, planned({P: B, Q: B}))
    group.apply(10.5, started(B, P, Q))
    assert group.timings.changes[0].partitions == 2


def test_a_late_report_of_a_dead_process_changes_nothing(group: Group) -> None:
    group.apply(9.0, Dead(slot=A, epoch=EPOCHS[A], term=1))
    group.apply(9.1, report(A, ready=True, reading=(P, Q)))
    group.apply(10.0, planned({P: A, Q: A}))
    assert group.timings.changing


def test_a_consumer_whose_hello_was_compacted_away_is_known_by_its_report() -> None:
    timings = GroupTimings(LIMITS)
    timings.apply(1.0, 50, report(A, ready=True, reading=(P, Q)))
    timings.apply(2.0, 51, planned({P: A, Q: A}))
    assert not timings.changing
    assert timings.starts == []


def test_a_writers_stop_lasts_from_the_plan_to_its_reply(group: Group) -> None:
    group.apply(10.0, planned({P: A, Q: A}))
    group.apply(13.0, Stopped(slot=A, epoch=EPOCHS[A], revision=1, next={}, tables=("orders",)))
    (stop,) = group.timings.writer_stops
    assert (stop.seconds, stop.tables) == (3.0, 1)


def test_a_writer_that_stopped_without_a_plan_is_not_timed(group: Group) -> None:
    group.apply(13.0, Stopped(slot=A, epoch=EPOCHS[A], revision=1, next={}, tables=("orders",)))
    assert group.timings.writer_stops == []


def test_a_change_ends_when_the_writers_have_stopped(group: Group) -> None:
    group.apply(10.0, planned({P: A, Q: A}))
    group.measure(11.0, 60, 60)
    group.apply(13.0, Stopped(slot=A, epoch=EPOCHS[A], revision=1, next={}, tables=("orders",)))
    group.apply(13.5, planned({P: A, Q: B}))
    assert [one.seconds for one in group.timings.triggers] == [0.5]


def test_what_was_timed_can_be_forgotten_but_not_who_reads_what(group: Group) -> None:
    group.apply(10.0, planned({P: A, Q: B}))
    group.start_b(10.5, 11.0)
    group.apply(11.5, started(B, Q))
    group.timings.forget_events()
    assert group.timings.starts == []
    assert group.timings.changes == []
    assert group.timings.plans == 0
    group.apply(12.0, planned({P: A, Q: B}))
    assert not group.timings.changing


PLAN = Planned(
    term=0, reasons=(), consumers=2, moves={}, rscore=0.0, rates={}, targets={P: A, Q: B}
)


def hello(slot: Slot) -> Hello:
    return Hello(slot=slot, process="x", version="1")


def started_at_0(slot: Slot, *partitions: object) -> Started:
    return Started(slot=slot, epoch=slot, revision=1, offsets=dict.fromkeys(partitions, 0))  # type: ignore[arg-type]


def ready_report(slot: Slot) -> Report:
    return Report(slot=slot, epoch=slot, term=0, ready=True, reading={}, writing={})


RECORDS = [
    GroupRecord(1.0, 0, hello(A)),
    GroupRecord(1.1, 1, hello(B)),
    GroupRecord(1.2, 2, ready_report(A)),
    GroupRecord(1.3, 3, ready_report(B)),
    GroupRecord(1.5, 4, started_at_0(A, P, Q)),
    GroupRecord(5.0, 5, PLAN),
    GroupRecord(5.5, 6, started_at_0(B, Q)),
]
RATES = tuple(PartitionRate(n, BytesPerSecond(60.0), 30, 0, 0, None) for n in (0, 1))
PASSES = [Pass(4.0, measurement("orders", RATES))]


def timed(since_s: float) -> GroupTimings:
    return timings_since(RECORDS, PASSES, LIMITS, since_s)


def test_measurements_and_records_are_merged_by_time() -> None:
    found = timed(2.0)
    assert [one.seconds for one in found.triggers] == [1.0]
    assert [one.seconds for one in found.changes] == [0.5]


def test_records_before_the_range_only_give_who_reads_what() -> None:
    assert timed(0.0).plans == timed(4.5).plans == 1
    assert timed(4.5).changes[0].partitions == 1


def test_a_range_behind_all_records_holds_no_event() -> None:
    found = timed(6.0)
    assert (found.triggers, found.changes, found.plans) == ([], [], 0)


def test_a_clock_that_goes_back_does_not_change_the_order_of_a_topic() -> None:
    late = [GroupRecord(9.0, 0, hello(A)), *RECORDS[1:5]]
    found = timings_since(late, (), LIMITS, 0.0)
    assert not found.changing
