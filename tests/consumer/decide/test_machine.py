"""A consumer stops at once, starts where it is commanded to, and replies to each command."""

from dataclasses import replace

import pytest

from binwright.consumer.decide import machine
from binwright.consumer.decide.machine import (
    Action,
    Consumer,
    Exit,
    Fetch,
    Reading,
    Reply,
    ReportNow,
    Share,
    StartWriter,
    StopFetching,
    StopWriter,
)
from binwright.protocol.commands import (
    Command,
    Leave,
    SplitReading,
    StartReading,
    StartWriting,
    StateQuery,
    StopReading,
    StopWriting,
)
from binwright.protocol.landing import OffsetRange
from binwright.protocol.metadata import Goodbye, Started, Stopped
from binwright.protocol.model import Slot, TopicPartition

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
SLOT, EPOCH, TERM = Slot(2), 40, 7
NOW_MS = 1_000


def fresh(**fields: object) -> Consumer:
    return Consumer(SLOT, EPOCH, term=TERM, ready=True, **fields)  # type: ignore[arg-type]


def handled(consumer: Consumer, *commands: Command) -> tuple[Consumer, list[Action]]:
    """Return the consumer after these commands, and all actions."""
    found: list[Action] = []
    for command in commands:
        consumer, actions = machine.handle_command(consumer, command, NOW_MS)
        found += actions
    return consumer, found


def start(
    offsets: dict[TopicPartition, int | None], revision: int = 1, term: int = TERM
) -> StartReading:
    return StartReading(term=term, revision=revision, epoch=EPOCH, offsets=offsets)


def stop(*partitions: TopicPartition, revision: int = 2) -> StopReading:
    return StopReading(term=TERM, revision=revision, epoch=EPOCH, partitions=partitions)


def write(*tables: str, revision: int = 3) -> StartWriting:
    return StartWriting(term=TERM, revision=revision, epoch=EPOCH, tables=tables)


def stop_writing(*tables: str, revision: int = 4) -> StopWriting:
    return StopWriting(term=TERM, revision=revision, epoch=EPOCH, tables=tables)


def replies(actions: list[Action] | tuple[Action, ...]) -> list[Stopped | Started | Goodbye]:
    return [action.message for action in actions if isinstance(action, Reply)]


def stopped(revision: int, next_offsets: dict[TopicPartition, int | None]) -> Stopped:
    return Stopped(slot=SLOT, epoch=EPOCH, revision=revision, next=next_offsets, stopped_ms=NOW_MS)


def started(revision: int, offsets: dict[TopicPartition, int], *tables: str) -> Started:
    return Started(slot=SLOT, epoch=EPOCH, revision=revision, offsets=offsets, tables=tables)


def goodbye(next_offsets: dict[TopicPartition, int]) -> Goodbye:
    return Goodbye(slot=SLOT, epoch=EPOCH, next=next_offsets)


# --- which commands it obeys ---------------------------------------------------------------------


def test_a_command_of_a_lower_term_is_ignored() -> None:
    consumer = fresh()
    assert handled(consumer, start({P: 3}, term=TERM - 1)) == (consumer, [])


def test_a_state_query_gets_a_report_and_ends_older_terms() -> None:
    consumer, actions = handled(fresh(), StateQuery(term=TERM + 1))
    assert actions == [ReportNow()]
    assert handled(consumer, start({P: 3})) == (consumer, [])


def test_a_command_to_an_older_process_is_ignored() -> None:
    command = replace(start({P: 3}), epoch=EPOCH - 1)
    assert handled(fresh(), command) == (fresh(), [])


def test_a_command_to_a_newer_process_ends_a_superseded_one() -> None:
    _, actions = handled(fresh(), replace(start({P: 3}), epoch=EPOCH + 1))
    assert actions == [Exit(f"superseded by epoch {EPOCH + 1}")]


def test_a_leave_command_ends_the_process() -> None:
    _, (action,) = handled(fresh(), Leave(term=TERM, epoch=EPOCH))
    assert isinstance(action, Exit)


def test_it_reports_once_staged_files_can_be_written() -> None:
    consumer, actions = machine.staging_ready(Consumer(SLOT, EPOCH))
    assert (consumer.ready, actions) == (True, (ReportNow(),))


# --- starting ------------------------------------------------------------------------------------


def test_reading_begins_at_the_commanded_offset() -> None:
    consumer, actions = handled(fresh(), start({P: 3}))
    assert actions == [Fetch(P, 3, 1), Reply(started(1, {P: 3}))]
    assert consumer.next_offsets() == {P: 3}
    assert consumer.busy


def test_without_an_offset_it_replies_once_the_offset_is_located() -> None:
    consumer, actions = handled(fresh(), start({P: None}))
    assert actions == [Fetch(P, None, 1)]
    assert consumer.next_offsets() == {}
    _, found = machine.position_found(consumer, P, 5)
    assert found == (Reply(started(1, {P: 5})),)


def test_a_repeated_start_gets_a_reply_and_changes_nothing() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    consumer = replace(consumer, partitions={P: Reading(1, 8)})
    assert handled(consumer, start({P: 3})) == (consumer, [Reply(started(1, {P: 8}))])


def test_a_start_without_an_offset_does_not_move_a_partition_that_is_read() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    again, actions = handled(consumer, start({P: None}, revision=5))
    assert actions == [Reply(started(5, {P: 3}))]
    assert again.partitions == consumer.partitions


def test_a_file_being_written_counts_after_a_start_without_an_offset() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    consumer = machine.staging_started(consumer, {P: 9})
    consumer, _ = handled(consumer, start({P: None}, revision=5))
    consumer, _ = machine.file_announced(consumer, [P])
    assert consumer.next_offsets() == {P: 9}


def test_two_starts_without_an_offset_get_one_reply_with_the_later_revision() -> None:
    consumer, actions = handled(fresh(), start({P: None}), start({P: None}, revision=5))
    assert actions == [Fetch(P, None, 1)]
    _, found = machine.located(consumer, P, 7)
    assert replies(found) == [started(5, {P: 7})]


def test_a_start_at_another_offset_moves_a_partition_that_is_read() -> None:
    consumer, _ = handled(fresh(), start({P: 8}))
    consumer, actions = handled(consumer, start({P: 3}, revision=5))
    assert actions == [StopFetching(P), Fetch(P, 3, 5), Reply(started(5, {P: 3}))]
    assert consumer.next_offsets() == {P: 3}


@pytest.mark.parametrize(
    "consumer",
    [
        fresh(),
        fresh(partitions={P: Reading(5, 9)}),
        fresh(partitions={P: Reading(5, None)}, ended=True),
    ],
)
def test_an_offset_that_is_located_too_late_is_ignored(consumer: Consumer) -> None:
    """It was stopped, restarted, or has ended meanwhile."""
    assert machine.located(consumer, P, 5) == (consumer, ())


def test_an_ended_consumer_starts_nothing() -> None:
    consumer = fresh(ended=True, leaving=True)
    assert handled(consumer, start({P: 3}), write("t")) == (consumer, [])


# --- stopping ------------------------------------------------------------------------------------


def test_it_stops_at_once_and_replies_with_the_next_offsets() -> None:
    consumer, actions = handled(fresh(), start({P: 3, Q: None}), stop(P, Q))
    assert actions[-3:] == [StopFetching(P), StopFetching(Q), Reply(stopped(2, {P: 3, Q: None}))]
    assert not consumer.busy


def test_a_stop_of_a_partition_that_is_not_read_gets_a_reply() -> None:
    assert handled(fresh(), stop(P)) == (fresh(), [Reply(stopped(2, {P: None}))])


def test_a_file_being_written_counts_as_staged() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    _, actions = handled(machine.staging_started(consumer, {P: 9}), stop(P))
    assert replies(actions) == [stopped(2, {P: 9})]


def test_a_file_being_written_before_a_restart_does_not_count() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    consumer, _ = handled(machine.staging_started(consumer, {P: 9}), start({P: 1}, revision=5))
    _, actions = handled(consumer, stop(P, revision=6))
    assert replies(actions) == [stopped(6, {P: 1})]


def test_the_next_file_begins_after_an_announced_one() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    consumer, actions = machine.file_announced(machine.staging_started(consumer, {P: 9}), [P])
    assert (consumer.next_offsets(), consumer.staging, actions) == ({P: 9}, {}, ())


def test_an_announcement_does_not_change_stopped_or_restarted_partitions() -> None:
    consumer, _ = handled(fresh(), start({P: 3, Q: 4}))
    consumer = machine.staging_started(consumer, {P: 9, Q: 9})
    consumer, _ = handled(consumer, stop(P), start({Q: 2}, revision=5))
    consumer, _ = machine.file_announced(consumer, [P, Q])
    assert consumer.next_offsets() == {Q: 2}


def test_after_a_reset_a_file_being_written_does_not_count() -> None:
    consumer, _ = handled(fresh(), start({P: 3, Q: 4}))
    consumer = machine.staging_started(consumer, {P: 9, Q: 9})
    consumer = machine.offset_reset(consumer, P, 5)
    consumer, _ = machine.file_announced(consumer, [P, Q])
    assert consumer.next_offsets() == {P: 5, Q: 9}
    assert machine.offset_reset(fresh(), P, 5) == fresh()


def test_a_position_that_was_looked_up_again_moves_a_partition_that_is_read() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    moved, actions = machine.position_found(consumer, P, 5)
    assert (moved.next_offsets(), actions) == ({P: 5}, ())
    cut, _ = machine.position_found(consumer, P, 1, cut=True)
    assert cut.next_offsets() == {P: 3}, "until the cut is announced"
    assert machine.position_found(fresh(), P, 5) == (fresh(), ())


def test_a_file_of_a_deleted_topic_is_not_waited_for() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    consumer, actions = machine.dropped(machine.staging_started(consumer, {P: 9}), [P])
    assert (consumer.staging, consumer.next_offsets(), actions) == ({}, {P: 3}, ())


# --- writing -------------------------------------------------------------------------------------


def test_it_starts_the_writers_of_granted_tables() -> None:
    consumer, actions = handled(fresh(), write("t", "u"))
    assert actions == [StartWriter(("t", "u")), Reply(started(3, {}, "t", "u"))]
    assert consumer.busy


def test_a_repeated_grant_gets_a_reply_and_starts_no_writer() -> None:
    consumer, actions = handled(fresh(), write("t"), write("t", revision=5))
    assert actions[2:] == [Reply(started(5, {}, "t"))]
    assert consumer.tables == {"t": 5}


def test_it_stops_writing_after_the_commit_in_flight() -> None:
    consumer, actions = handled(fresh(), write("t"), stop_writing("t"))
    assert actions[2:] == [StopWriter(("t",))]
    consumer, found = machine.writing_stopped(consumer, {"t"})
    assert replies(found) == [Stopped(slot=SLOT, epoch=EPOCH, revision=4, next={}, tables=("t",))]
    assert not consumer.busy


def test_a_stop_of_a_table_that_is_not_written_gets_a_reply_at_once() -> None:
    _, actions = handled(fresh(), stop_writing("t"))
    assert replies(actions) == [Stopped(slot=SLOT, epoch=EPOCH, revision=4, next={}, tables=("t",))]


def test_a_repeated_stop_gets_one_reply_with_the_last_revision() -> None:
    consumer, actions = handled(
        fresh(), write("t"), stop_writing("t"), stop_writing("t", revision=9)
    )
    assert actions[2:] == [StopWriter(("t",))]
    _, found = machine.writing_stopped(consumer, {"t"})
    assert [m.revision for m in replies(found) if isinstance(m, Stopped)] == [9]


def test_a_grant_during_a_stop_counts() -> None:
    consumer, actions = handled(fresh(), write("t"), stop_writing("t"), write("t", revision=5))
    assert actions[3:] == [StartWriter(("t",)), Reply(started(5, {}, "t"))]
    consumer, found = machine.writing_stopped(consumer, {"t"})
    assert (consumer.tables, found) == ({"t": 5}, ())


def test_a_consumer_that_loses_a_table_reports_without_it() -> None:
    consumer, _ = handled(fresh(), write("t"))
    assert machine.table_lost(consumer, "t") == (fresh(), (ReportNow(),))


def test_losing_a_table_during_a_stop_replies_to_the_stop() -> None:
    consumer, _ = handled(fresh(), write("t"), stop_writing("t"))
    _, actions = machine.table_lost(consumer, "t")
    assert actions[-1] == ReportNow()
    assert len(replies(actions)) == 1


# --- exit ----------------------------------------------------------------------------------------


def test_a_consumer_without_partitions_and_tables_leaves_at_once() -> None:
    consumer, actions = machine.leave(fresh())
    assert actions == (Reply(goodbye({})), Exit("shutdown requested"))
    assert consumer.ended
    assert machine.leave(consumer) == (consumer, ())


def test_a_leaving_consumer_reports_it_and_continues_to_read() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    consumer, actions = machine.leave(consumer)
    assert actions == (ReportNow(),)
    _, actions_ = handled(consumer, stop(P))
    assert replies(actions_) == [stopped(2, {P: 3}), goodbye({})]
    assert isinstance(actions_[-1], Exit)


def test_a_consumer_that_is_not_ready_exits_without_a_message() -> None:
    for leave in (machine.leave, machine.drain):
        _, (action,) = leave(Consumer(SLOT, EPOCH))
        assert isinstance(action, Exit)


def test_a_drain_stops_everything_and_the_goodbye_has_the_next_offsets() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    consumer, actions = machine.drain(consumer)
    assert actions == (StopFetching(P), Reply(goodbye({P: 3})), Exit("shutdown requested"))
    assert machine.drain(consumer) == (consumer, ())


def test_a_goodbye_waits_for_files_being_written() -> None:
    consumer, _ = handled(fresh(), start({P: 3}))
    consumer, actions = machine.drain(machine.staging_started(consumer, {P: 9}))
    assert actions == (StopFetching(P),)
    _, found = machine.file_announced(consumer, [P])
    assert replies(found) == [goodbye({P: 9})]


def test_a_goodbye_waits_for_the_commit_in_flight() -> None:
    consumer, _ = handled(fresh(), write("t"))
    consumer, actions = machine.drain(consumer)
    assert actions == (StopWriter(("t",)),)
    _, found = machine.writing_stopped(consumer, {"t"})
    assert replies(found)[-1] == goodbye({})


def test_a_leaving_consumer_that_still_writes_a_table_sends_no_goodbye() -> None:
    consumer, _ = handled(fresh(), write("t"), start({P: 3}))
    consumer, _ = machine.leave(consumer)
    _, actions = handled(consumer, stop(P))
    assert replies(actions) == [stopped(2, {P: 3})]


def test_the_old_offset_is_reported_until_a_cut_is_announced() -> None:
    """A new owner that takes over before that must detect the cut itself."""
    consumer, _ = handled(fresh(), start({P: 3}))
    consumer = machine.offset_reset(machine.staging_started(consumer, {P: 9}), P, 2, cut=True)
    consumer, _ = machine.file_announced(consumer, [P])
    assert consumer.next_offsets() == {P: 3}
    consumer, _ = machine.file_announced(machine.staging_started(consumer, {P: 4}), [P])
    assert consumer.next_offsets() == {P: 4}


def test_a_command_names_all_split_partitions_of_a_consumer() -> None:
    partitions = {P: (SLOT, Slot(3))}
    command = SplitReading(term=TERM, epoch=EPOCH, partitions=partitions)
    consumer, actions = handled(fresh(), command)
    assert actions == [Share(partitions), ReportNow()]
    assert consumer == fresh()


def test_a_piece_that_joins_on_advances_the_position_and_no_other_does() -> None:
    """After a stop or a start elsewhere a piece of before must not count."""
    consumer = fresh(partitions={P: Reading(1, 10)})
    after = machine.part_announced(consumer, P, OffsetRange(10, 20))
    assert after.next_offsets() == {P: 20}
    assert machine.part_announced(consumer, P, OffsetRange(11, 20)) == consumer
    assert machine.part_announced(consumer, Q, OffsetRange(10, 20)) == consumer
