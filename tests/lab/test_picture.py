"""The group as people see it."""

from binwright.core.messages import (
    Dead,
    Gap,
    Goodbye,
    Hello,
    Measurement,
    PartitionRate,
    Report,
    Started,
    Stopped,
    TableReport,
)
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.lab.picture import Picture, percentile

P = TopicPartition("orders", 0)
A, B = Slot(0), Slot(1)


def report(slot: Slot, epoch: int, **more: object) -> Report:
    fields = {"term": 0, "ready": True, "reading": {}, "writing": {}, **more}
    return Report(slot=slot, epoch=epoch, **fields)  # type: ignore[arg-type]


def writes(landed: int, **more: object) -> dict[str, TableReport]:
    fields = {"state": "landing", "committed": {P: landed}, "rows": landed, "commits": 1, **more}
    return {"orders": TableReport(**fields)}  # type: ignore[arg-type]


def lively() -> Picture:
    picture = Picture()
    picture.heard(1, 0, Hello(slot=A, process="a", version="1"))
    picture.heard(2, 0, Hello(slot=B, process="b", version="1"))
    picture.heard(3, 0, report(A, 1, reading={P: 45}, writing=writes(40)))
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
    picture.heard(5, 0, Dead(slot=A, epoch=1, term=0))
    picture.heard(6, 0, Started(slot=B, epoch=2, revision=2, offsets={P: 50}))
    assert (picture.moves, picture.rescued, picture.deaths) == ([], 1, 1)
    assert picture.reports.keys() == {B}


def test_who_said_goodbye_is_gone_and_its_rows_still_count() -> None:
    picture = lively()
    picture.heard(5, 0, Goodbye(slot=A, epoch=1, next={P: 45}))
    assert picture.reports.keys() == {B}
    assert picture.landed_rows == 40


def test_what_was_given_back_in_good_order_is_not_rescued() -> None:
    picture = lively()
    picture.heard(5, 0, Started(slot=A, epoch=1, revision=1, offsets={P: 0}))
    picture.heard(6, 0, Goodbye(slot=A, epoch=1, next={P: 45}))
    picture.heard(7, 0, Started(slot=B, epoch=2, revision=2, offsets={P: 45}))
    assert picture.rescued == 0


def test_a_death_of_a_process_that_is_superseded_already_changes_nothing() -> None:
    picture = lively()
    picture.heard(5, 0, Hello(slot=A, process="a2", version="1"))
    picture.heard(6, 0, Dead(slot=A, epoch=1, term=0))
    picture.heard(7, 0, report(A, 5, reading={P: 45}))
    assert picture.deaths == 0
    assert picture.reports.keys() == {A, B}


def test_a_gap_is_counted_and_told() -> None:
    picture = lively()
    picture.heard(5, 0, Gap(slot=A, epoch=1, committed={P: 40}))
    assert picture.gaps == 1
    assert picture.news[-1] == (0, "consumer 0 needs again: orders-0 from 40")


def test_a_report_of_a_superseded_process_is_not_shown() -> None:
    picture = lively()
    picture.heard(5, 0, Hello(slot=A, process="a2", version="1"))
    picture.heard(6, 0, report(A, 1, reading={P: 60}))
    assert picture.reports.keys() == {B}


# --- tables ------------------------------------------------------------------------------------


def test_a_table_is_where_its_writer_reports_it() -> None:
    picture = lively()
    (table,) = picture.tables.by_topic.values()
    assert (table.writer, table.rows, table.commits, picture.landed) == (A, 40, 1, {P: 40})
    picture.heard(5, 0, report(A, 1))
    assert table.writer is None
    assert picture.news[-1][1] == "consumer 0 no longer writes the table orders"


def test_a_new_writer_counts_from_nothing_and_the_table_goes_on() -> None:
    picture = lively()
    picture.heard(5, 0, report(A, 1))
    picture.heard(6, 0, report(B, 2, writing=writes(0, state="claiming", committed={}, commits=0)))
    picture.heard(7, 0, report(B, 2, writing=writes(10, committed={P: 50})))
    picture.heard(8, 0, report(B, 2, writing=writes(15, committed={P: 55}, commits=2)))
    (table,) = picture.tables.by_topic.values()
    assert (table.writer, table.rows, table.commits) == (B, 55, 3)
    assert (picture.landed, picture.tables.writer_changes) == ({P: 55}, 1)


def test_a_writer_that_gets_its_table_back_is_not_counted_twice() -> None:
    picture = lively()
    picture.heard(5, 0, report(A, 1))
    picture.heard(6, 0, report(A, 1, writing=writes(5)))
    assert picture.landed_rows == 45


def test_the_tables_of_the_dead_have_no_writer() -> None:
    picture = lively()
    picture.heard(5, 0, Dead(slot=A, epoch=1, term=0))
    assert [table.writer for table in picture.tables.by_topic.values()] == [None]


def test_a_fault_of_a_table_is_told_once() -> None:
    picture = lively()
    for offset in (5, 6):
        refused = writes(40, state="refused", fault="a CHECK constraint")
        picture.heard(offset, 0, report(A, 1, writing=refused))
    told = [words for _, words in picture.news if "CHECK" in words]
    assert told == ["table orders takes nothing: a CHECK constraint"]


def test_a_topic_made_anew_begins_again_below_what_had_landed() -> None:
    picture = lively()
    picture.heard(5, 0, report(A, 1, writing=writes(3)))
    assert picture.landed == {P: 3}


# --- lag ---------------------------------------------------------------------------------------


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


def test_what_the_topic_no_longer_keeps_is_no_lag() -> None:
    picture = lively()
    rate = PartitionRate(0, BytesPerSecond(1.0), 5.0, end=100, start=90, bytes_per_record=10)
    picture.measured(measured(1, rate))
    assert picture.lag == 10


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
