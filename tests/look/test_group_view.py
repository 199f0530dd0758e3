"""A group seen from outside, folded from its messages."""

from binwright.look.group_view import GroupView, percentile
from binwright.look.status import status
from binwright.protocol.metadata import (
    Dead,
    Gap,
    Goodbye,
    Hello,
    Planned,
    Report,
    Started,
    Stopped,
    TableReport,
)
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

P = TopicPartition("orders", 0)
A, B = Slot(0), Slot(1)


def report(slot: Slot, epoch: int, **more: object) -> Report:
    fields = {"term": 0, "ready": True, "reading": {}, "writing": {}, **more}
    return Report(slot=slot, epoch=epoch, **fields)  # type: ignore[arg-type]


def writes(landed: int, **more: object) -> dict[str, TableReport]:
    fields = {"state": "landing", "committed": {P: landed}, "rows": landed, "commits": 1, **more}
    return {"orders": TableReport(**fields)}  # type: ignore[arg-type]


def two_consumers() -> GroupView:
    view = GroupView()
    view.apply(1, 0, Hello(slot=A, process="a", version="1"))
    view.apply(2, 0, Hello(slot=B, process="b", version="1"))
    view.apply(3, 0, report(A, 1, reading={P: 45}, writing=writes(40)))
    view.apply(4, 0, report(B, 2))
    return view


def test_a_move_is_paused_from_the_last_fetch_to_the_first() -> None:
    view = two_consumers()
    view.apply(5, 1_900, Stopped(slot=A, epoch=1, revision=1, next={P: 50}, stopped_ms=1_000))
    view.apply(6, 2_250, Started(slot=B, epoch=2, revision=2, offsets={P: 50}))
    (move,) = view.moves
    assert (move.old, move.new, move.pause_s) == (A, B, 1.25)


def test_a_partition_of_a_dead_consumer_is_rescued_not_moved() -> None:
    view = two_consumers()
    view.apply(5, 0, Started(slot=A, epoch=1, revision=1, offsets={P: 0}))
    view.apply(5, 0, Dead(slot=A, epoch=1, term=0))
    view.apply(6, 0, Started(slot=B, epoch=2, revision=2, offsets={P: 50}))
    assert (view.moves, view.rescued, view.deaths) == ([], 1, 1)
    assert view.reports.keys() == {B}


def test_a_consumer_that_exited_is_removed_and_its_rows_still_count() -> None:
    view = two_consumers()
    view.apply(5, 0, Goodbye(slot=A, epoch=1, next={P: 45}))
    assert view.reports.keys() == {B}
    assert view.landed_rows == 40


def test_a_partition_handed_back_with_a_goodbye_is_not_rescued() -> None:
    view = two_consumers()
    view.apply(5, 0, Started(slot=A, epoch=1, revision=1, offsets={P: 0}))
    view.apply(6, 0, Goodbye(slot=A, epoch=1, next={P: 45}))
    view.apply(7, 0, Started(slot=B, epoch=2, revision=2, offsets={P: 45}))
    assert view.rescued == 0


def test_a_goodbye_of_a_replaced_process_hands_back_nothing() -> None:
    view = two_consumers()
    view.apply(5, 0, Started(slot=A, epoch=1, revision=1, offsets={P: 0}))
    view.apply(6, 0, Dead(slot=A, epoch=1, term=0))
    view.apply(7, 0, Goodbye(slot=A, epoch=1, next={P: 45}))
    view.apply(8, 0, Started(slot=B, epoch=2, revision=2, offsets={P: 45}))
    assert view.rescued == 1


def test_the_death_of_a_superseded_process_changes_nothing() -> None:
    view = two_consumers()
    view.apply(5, 0, Hello(slot=A, process="a2", version="1"))
    view.apply(6, 0, Dead(slot=A, epoch=1, term=0))
    view.apply(7, 0, report(A, 5, reading={P: 45}))
    assert view.deaths == 0
    assert view.reports.keys() == {A, B}


def test_of_plans_only_the_last_is_kept_and_the_cost_of_each() -> None:
    """A page is served for months, and a plan names every partition."""
    view = GroupView()
    for rscore in (0.5, 0.25):
        plan = Planned(
            term=0, reasons=(), consumers=1, moves={}, rscore=rscore, rates={}, targets={}
        )
        view.apply(1, 0, plan)
    assert view.plan == plan
    assert view.rscores == [0.5, 0.25]


def test_a_gap_is_counted_and_an_event() -> None:
    view = two_consumers()
    view.apply(5, 0, Gap(slot=A, epoch=1, committed={P: 40}))
    assert view.gaps == 1
    assert view.recent_events[-1] == (0, "consumer 0 needs again: orders-0 from 40")


# --- tables ------------------------------------------------------------------------------------


def test_a_table_is_as_its_writer_reports_it() -> None:
    view = two_consumers()
    (table,) = view.tables.by_name.values()
    assert (table.writer, table.report.rows, table.report.commits, view.landed) == (
        A,
        40,
        1,
        {P: 40},
    )
    view.apply(5, 0, report(A, 1))
    assert table.writer is None
    assert view.recent_events[-1][1] == "consumer 0 no longer writes the table orders"


def test_a_new_writer_counts_from_0_and_the_counts_of_the_table_continue() -> None:
    view = two_consumers()
    view.apply(5, 0, report(A, 1))
    view.apply(6, 0, report(B, 2, writing=writes(0, state="claiming", committed={}, commits=0)))
    view.apply(7, 0, report(B, 2, writing=writes(10, committed={P: 50})))
    view.apply(8, 0, report(B, 2, writing=writes(15, committed={P: 55}, commits=2)))
    (table,) = view.tables.by_name.values()
    assert (table.writer, table.report.rows, table.report.commits) == (B, 55, 3)
    assert (view.landed, view.tables.writer_changes) == ({P: 55}, 1)


def test_a_writer_that_gets_its_table_back_is_not_counted_twice() -> None:
    view = two_consumers()
    view.apply(5, 0, report(A, 1))
    view.apply(6, 0, report(A, 1, writing=writes(5)))
    assert view.landed_rows == 45


def test_the_tables_of_a_dead_consumer_have_no_writer() -> None:
    view = two_consumers()
    view.apply(5, 0, Dead(slot=A, epoch=1, term=0))
    assert [table.writer for table in view.tables.by_name.values()] == [None]


def test_a_fault_of_a_table_is_one_event() -> None:
    view = two_consumers()
    for offset in (5, 6):
        refused = writes(40, state="refused", fault="a CHECK constraint")
        view.apply(offset, 0, report(A, 1, writing=refused))
    faults = [text for _, text in view.recent_events if "CHECK" in text]
    assert faults == ["table orders takes nothing: a CHECK constraint"]


def test_a_topic_created_again_continues_below_the_offsets_of_the_earlier_one() -> None:
    view = two_consumers()
    view.apply(5, 0, report(A, 1, writing=writes(3)))
    assert view.landed == {P: 3}


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


def test_lag_counts_records_that_are_written_and_not_landed() -> None:
    view = two_consumers()
    rate = PartitionRate(
        partition=0, rate=BytesPerSecond(500.0), window_s=5.0, end=100, start=0, bytes_per_record=10
    )
    view.apply_measurement(measured(1, rate))
    found = status("g", view, 0)
    assert (found.lag, found.lag_bytes, view.written()[A]) == (60, 600.0, 500.0)


def test_records_that_the_topic_no_longer_keeps_are_no_lag() -> None:
    view = two_consumers()
    rate = PartitionRate(0, BytesPerSecond(1.0), 5.0, end=100, start=90, bytes_per_record=10)
    view.apply_measurement(measured(1, rate))
    assert view.partition_lag(P) == 10


def test_removed_partitions_have_neither_lag_nor_load() -> None:
    view = two_consumers()
    rate = PartitionRate(
        partition=0, rate=BytesPerSecond(500.0), window_s=5.0, end=100, start=0, bytes_per_record=10
    )
    view.apply_measurement(measured(1, rate))
    view.apply_measurement(measured(0))
    found = status("g", view, 0)
    assert (found.lag, found.lag_bytes, view.written()[A]) == (0, 0.0, 0.0)


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(v) for v in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile([], 0.5)) == (
        50,
        99,
        None,
    )
