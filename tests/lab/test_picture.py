"""The group as people see it."""

from binwright.core.messages import (
    Dead,
    Fence,
    Goodbye,
    Hello,
    Measurement,
    PartitionRate,
    Report,
    Started,
    Stopped,
)
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.lab.picture import Picture, percentile

P = TopicPartition("orders", 0)
A, B = Slot(0), Slot(1)


def report(slot: Slot, epoch: int, **more: object) -> Report:
    fields = {"term": 0, "ready": True, "held": {}, **more}
    return Report(slot=slot, epoch=epoch, **fields)  # type: ignore[arg-type]


def lively() -> Picture:
    picture = Picture()
    picture.heard(1, 0, Hello(slot=A, process="a", version="1"))
    picture.heard(2, 0, Hello(slot=B, process="b", version="1"))
    picture.heard(3, 0, report(A, 1, held={P: 40}, landed_rows=40))
    picture.heard(4, 0, report(B, 2))
    return picture


def test_a_move_is_paused_from_the_last_fetch_to_the_first() -> None:
    picture = lively()
    picture.heard(5, 1_900, Stopped(slot=A, epoch=1, revision=1, next={P: 50}, quit_ms=1_000))
    picture.heard(6, 2_250, Started(slot=B, epoch=2, revision=2, offsets={P: 50}))
    (move,) = picture.moves
    assert (move.old, move.new, move.pause_s) == (A, B, 1.25)


def test_a_partition_of_the_dead_is_rescued_not_moved() -> None:
    picture = lively()
    picture.heard(5, 0, Started(slot=A, epoch=1, revision=1, offsets={P: 0}))
    picture.heard(5, 0, Dead(slot=A, term=0))
    fence = Fence(slot=A, number=5)
    picture.heard(6, 0, Started(slot=B, epoch=2, revision=2, offsets={P: 50}, fences=(fence,)))
    assert (picture.moves, picture.rescued, picture.deaths) == ([], 1, 1)
    assert picture.reports.keys() == {B}


def test_who_said_goodbye_is_gone_and_its_rows_still_count() -> None:
    picture = lively()
    picture.heard(5, 0, Goodbye(slot=A, epoch=1, landed={P: 40}))
    assert picture.reports.keys() == {B}
    assert sum(picture.landed_rows.values()) == 40


def test_a_report_of_a_superseded_process_is_not_shown() -> None:
    picture = lively()
    picture.heard(5, 0, Hello(slot=A, process="a2", version="1"))
    picture.heard(6, 0, report(A, 1, held={P: 60}))
    assert picture.reports.keys() == {B}


def measured(count: int, *partitions: PartitionRate) -> Measurement:
    return Measurement(
        topic="orders",
        at_ms=0,
        monitor="m",
        number=0,
        interval_s=1,
        count=count,
        partitions=partitions,
    )


def test_lag_is_what_is_written_and_not_landed() -> None:
    picture = lively()
    rate = PartitionRate(
        partition=0, rate=BytesPerSecond(500.0), window_s=5.0, end=100, start=0, bytes_per_record=10
    )
    picture.measured(measured(1, rate))
    assert (picture.lag, picture.lag_bytes, picture.load(A)) == (60, 600.0, 500.0)


def test_what_is_gone_neither_lags_nor_weighs() -> None:
    picture = lively()
    rate = PartitionRate(
        partition=0, rate=BytesPerSecond(500.0), window_s=5.0, end=100, start=0, bytes_per_record=10
    )
    picture.measured(measured(1, rate))
    picture.measured(measured(0))
    assert (picture.lag, picture.lag_bytes, picture.load(A)) == (0, 0.0, 0.0)


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(v) for v in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile([], 0.5)) == (
        50,
        99,
        None,
    )
