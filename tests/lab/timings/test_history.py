"""Two topics merged by their times, from the beginning of a range on."""

from tests.builders import P, Q, measurement

from binwright.lab.timings.events import GroupTimings
from binwright.lab.timings.history import GroupRecord, timings_since
from binwright.lab.timings.steps import Pass
from binwright.protocol.measurements import PartitionRate
from binwright.protocol.messages import Hello, Planned, Report, Started
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot

A, B = Slot(0), Slot(1)
LIMITS = PerSlot(BytesPerSecond(100.0))
PLAN = Planned(
    term=0, reasons=(), consumers=2, moves={}, rscore=0.0, rates={}, targets={P: A, Q: B}
)


def hello(slot: Slot) -> Hello:
    return Hello(slot=slot, process="x", version="1")


def started(slot: Slot, *partitions: object) -> Started:
    return Started(slot=slot, epoch=slot, revision=1, offsets=dict.fromkeys(partitions, 0))  # type: ignore[arg-type]


def ready(slot: Slot) -> Report:
    return Report(slot=slot, epoch=slot, term=0, ready=True, reading={}, writing={})


RECORDS = [
    GroupRecord(1.0, 0, hello(A)),
    GroupRecord(1.1, 1, hello(B)),
    GroupRecord(1.2, 2, ready(A)),
    GroupRecord(1.3, 3, ready(B)),
    GroupRecord(1.5, 4, started(A, P, Q)),
    GroupRecord(5.0, 5, PLAN),
    GroupRecord(5.5, 6, started(B, Q)),
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
