"""A consumer stops at once, starts where it is told, and answers everything."""

from dataclasses import replace

import pytest

from binwright.core.consumer import handover
from binwright.core.consumer.handover import (
    Action,
    Consumer,
    Exit,
    Fetch,
    Reading,
    Reply,
    ReportNow,
    StopFetching,
    StopWrite,
    Write,
)
from binwright.core.messages import (
    Command,
    Goodbye,
    Leave,
    Started,
    StartReading,
    StartWriting,
    StateQuery,
    Stopped,
    StopReading,
    StopWriting,
)
from binwright.core.model import Slot, TopicPartition

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
SLOT, EPOCH, TERM = Slot(2), 40, 7
NOW_MS = 1_000


def fresh(**fields: object) -> Consumer:
    return Consumer(SLOT, EPOCH, term=TERM, ready=True, **fields)  # type: ignore[arg-type]


def obeyed(consumer: Consumer, *commands: Command) -> tuple[Consumer, list[Action]]:
    """Return the consumer afterwards, and all that it is to do."""
    found: list[Action] = []
    for command in commands:
        consumer, actions = handover.obey(consumer, command, NOW_MS)
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


def said(actions: list[Action] | tuple[Action, ...]) -> list[Stopped | Started | Goodbye]:
    return [action.message for action in actions if isinstance(action, Reply)]


def stopped(revision: int, following: dict[TopicPartition, int | None]) -> Stopped:
    return Stopped(slot=SLOT, epoch=EPOCH, revision=revision, next=following, quit_ms=NOW_MS)


def started(revision: int, offsets: dict[TopicPartition, int], *tables: str) -> Started:
    return Started(slot=SLOT, epoch=EPOCH, revision=revision, offsets=offsets, tables=tables)


def goodbye(following: dict[TopicPartition, int]) -> Goodbye:
    return Goodbye(slot=SLOT, epoch=EPOCH, next=following)


# --- whom it obeys -------------------------------------------------------------------------------


def test_a_command_of_a_lower_term_is_dropped() -> None:
    consumer = fresh()
    assert obeyed(consumer, start({P: 3}, term=TERM - 1)) == (consumer, [])


def test_a_state_query_is_answered_and_ends_older_terms() -> None:
    consumer, actions = obeyed(fresh(), StateQuery(term=TERM + 1))
    assert actions == [ReportNow()]
    assert obeyed(consumer, start({P: 3})) == (consumer, [])


def test_a_command_for_an_older_process_is_dropped() -> None:
    command = replace(start({P: 3}), epoch=EPOCH - 1)
    assert obeyed(fresh(), command) == (fresh(), [])


def test_a_command_for_a_newer_process_means_that_it_is_superseded() -> None:
    _, actions = obeyed(fresh(), replace(start({P: 3}), epoch=EPOCH + 1))
    assert actions == [Exit(f"superseded by epoch {EPOCH + 1}")]


def test_who_is_told_to_leave_ends() -> None:
    _, (action,) = obeyed(fresh(), Leave(term=TERM, epoch=EPOCH))
    assert isinstance(action, Exit)


def test_it_reports_once_its_staging_place_can_be_written() -> None:
    consumer, actions = handover.prepared(Consumer(SLOT, EPOCH))
    assert (consumer.ready, actions) == (True, (ReportNow(),))


# --- starting ------------------------------------------------------------------------------------


def test_it_begins_where_it_is_told() -> None:
    consumer, actions = obeyed(fresh(), start({P: 3}))
    assert actions == [Fetch(P, 3, 1), Reply(started(1, {P: 3}))]
    assert consumer.next_offsets() == {P: 3}
    assert consumer.busy


def test_without_an_offset_it_answers_once_it_knows_where_it_begins() -> None:
    consumer, actions = obeyed(fresh(), start({P: None}))
    assert actions == [Fetch(P, None, 1)]
    assert consumer.next_offsets() == {}
    _, found = handover.located(consumer, Fetch(P, None, 1), 5)
    assert found == (Fetch(P, 5, 1), Reply(started(1, {P: 5})))


def test_the_same_start_again_is_answered_and_changes_nothing() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3}))
    consumer = replace(consumer, parts={P: Reading(1, 8)})
    assert obeyed(consumer, start({P: 3})) == (consumer, [Reply(started(1, {P: 8}))])


def test_a_start_without_an_offset_changes_nothing_of_what_is_read() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3}))
    again, actions = obeyed(consumer, start({P: None}, revision=5))
    assert actions == [Reply(started(5, {P: 3}))]
    assert again.parts == consumer.parts


def test_what_was_being_staged_counts_after_such_a_start() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3}))
    consumer = handover.staging(consumer, {P: 9})
    consumer, _ = obeyed(consumer, start({P: None}, revision=5))
    consumer, _ = handover.announced(consumer, [P])
    assert consumer.next_offsets() == {P: 9}


def test_two_starts_without_an_offset_are_answered_once_as_the_later() -> None:
    consumer, actions = obeyed(fresh(), start({P: None}), start({P: None}, revision=5))
    assert actions == [Fetch(P, None, 1)]
    _, found = handover.located(consumer, Fetch(P, None, 1), 7)
    assert said(found) == [started(5, {P: 7})]


def test_a_gap_makes_it_go_on_elsewhere() -> None:
    consumer, _ = obeyed(fresh(), start({P: 8}))
    consumer, actions = obeyed(consumer, start({P: 3}, revision=5))
    assert actions == [StopFetching(P), Fetch(P, 3, 5), Reply(started(5, {P: 3}))]
    assert consumer.next_offsets() == {P: 3}


@pytest.mark.parametrize(
    "consumer",
    [fresh(), fresh(parts={P: Reading(5, 9)}), fresh(parts={P: Reading(5, None)}, ended=True)],
)
def test_where_to_begin_comes_too_late(consumer: Consumer) -> None:
    """It was stopped, started anew, or has ended meanwhile."""
    assert handover.located(consumer, Fetch(P, None, 1), 5) == (consumer, ())


def test_who_has_ended_starts_nothing() -> None:
    consumer = fresh(ended=True, leaving=True)
    assert obeyed(consumer, start({P: 3}), write("t")) == (consumer, [])


# --- stopping ------------------------------------------------------------------------------------


def test_it_stops_at_once_and_says_what_is_to_be_staged_next() -> None:
    consumer, actions = obeyed(fresh(), start({P: 3, Q: None}), stop(P, Q))
    assert actions[-3:] == [StopFetching(P), StopFetching(Q), Reply(stopped(2, {P: 3, Q: None}))]
    assert not consumer.busy


def test_a_stop_of_what_is_not_read_is_answered() -> None:
    assert obeyed(fresh(), stop(P)) == (fresh(), [Reply(stopped(2, {P: None}))])


def test_what_is_being_staged_counts_as_staged() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3}))
    _, actions = obeyed(handover.staging(consumer, {P: 9}), stop(P))
    assert said(actions) == [stopped(2, {P: 9})]


def test_what_was_being_staged_before_another_start_does_not() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3}))
    consumer, _ = obeyed(handover.staging(consumer, {P: 9}), start({P: 1}, revision=5))
    _, actions = obeyed(consumer, stop(P, revision=6))
    assert said(actions) == [stopped(6, {P: 1})]


def test_once_announced_the_next_file_begins_behind_it() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3}))
    consumer, actions = handover.announced(handover.staging(consumer, {P: 9}), [P])
    assert (consumer.next_offsets(), consumer.staging, actions) == ({P: 9}, {}, ())


def test_an_announcement_changes_nothing_of_what_was_stopped_or_begun_elsewhere() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3, Q: 4}))
    consumer = handover.staging(consumer, {P: 9, Q: 9})
    consumer, _ = obeyed(consumer, stop(P), start({Q: 2}, revision=5))
    consumer, _ = handover.announced(consumer, [P, Q])
    assert consumer.next_offsets() == {Q: 2}


def test_after_a_cut_it_goes_on_elsewhere_whatever_is_being_staged() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3, Q: 4}))
    consumer = handover.staging(consumer, {P: 9, Q: 9})
    consumer = handover.moved(consumer, P, 5)
    consumer, _ = handover.announced(consumer, [P, Q])
    assert consumer.next_offsets() == {P: 5, Q: 9}
    assert handover.moved(fresh(), P, 5) == fresh()


def test_a_file_of_a_topic_that_is_no_more_is_not_waited_for() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3}))
    consumer, actions = handover.dropped(handover.staging(consumer, {P: 9}), [P])
    assert (consumer.staging, consumer.next_offsets(), actions) == ({}, {P: 3}, ())


# --- writing -------------------------------------------------------------------------------------


def test_it_writes_the_tables_that_it_is_told_to() -> None:
    consumer, actions = obeyed(fresh(), write("t", "u"))
    assert actions == [Write(("t", "u"), TERM), Reply(started(3, {}, "t", "u"))]
    assert consumer.busy


def test_the_same_grant_again_is_answered_and_changes_nothing() -> None:
    consumer, actions = obeyed(fresh(), write("t"), write("t", revision=5))
    assert actions[2:] == [Reply(started(5, {}, "t"))]
    assert consumer.tables == {"t": 5}


def test_it_stops_writing_once_the_commit_in_flight_has_ended() -> None:
    consumer, actions = obeyed(fresh(), write("t"), stop_writing("t"))
    assert actions[2:] == [StopWrite(("t",))]
    consumer, found = handover.written(consumer, {"t"})
    assert said(found) == [Stopped(slot=SLOT, epoch=EPOCH, revision=4, next={}, tables=("t",))]
    assert not consumer.busy


def test_a_stop_of_a_table_that_is_not_written_is_answered_at_once() -> None:
    _, actions = obeyed(fresh(), stop_writing("t"))
    assert said(actions) == [Stopped(slot=SLOT, epoch=EPOCH, revision=4, next={}, tables=("t",))]


def test_a_stop_that_is_sent_again_is_answered_once_under_its_last_revision() -> None:
    consumer, actions = obeyed(
        fresh(), write("t"), stop_writing("t"), stop_writing("t", revision=9)
    )
    assert actions[2:] == [StopWrite(("t",))]
    _, found = handover.written(consumer, {"t"})
    assert [m.revision for m in said(found) if isinstance(m, Stopped)] == [9]


def test_a_grant_that_crosses_a_stop_counts() -> None:
    consumer, actions = obeyed(fresh(), write("t"), stop_writing("t"), write("t", revision=5))
    assert actions[3:] == [Write(("t",), TERM), Reply(started(5, {}, "t"))]
    consumer, found = handover.written(consumer, {"t"})
    assert (consumer.tables, found) == ({"t": 5}, ())


def test_who_loses_a_table_reports_without_it() -> None:
    consumer, _ = obeyed(fresh(), write("t"))
    assert handover.lost(consumer, "t") == (fresh(), (ReportNow(),))


def test_who_loses_a_table_that_it_was_told_to_stop_answers_that() -> None:
    consumer, _ = obeyed(fresh(), write("t"), stop_writing("t"))
    _, actions = handover.lost(consumer, "t")
    assert actions[-1] == ReportNow()
    assert len(said(actions)) == 1


# --- leaving -------------------------------------------------------------------------------------


def test_who_has_nothing_leaves_at_once() -> None:
    consumer, actions = handover.leave(fresh())
    assert actions == (Reply(goodbye({})), Exit("asked to"))
    assert consumer.ended
    assert handover.leave(consumer) == (consumer, ())


def test_who_reads_says_that_it_leaves_and_reads_on() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3}))
    consumer, actions = handover.leave(consumer)
    assert actions == (ReportNow(),)
    _, actions_ = obeyed(consumer, stop(P))
    assert said(actions_) == [stopped(2, {P: 3}), goodbye({})]
    assert isinstance(actions_[-1], Exit)


def test_before_it_is_ready_it_leaves_without_a_word() -> None:
    for leave in (handover.leave, handover.drain):
        _, (action,) = leave(Consumer(SLOT, EPOCH))
        assert isinstance(action, Exit)


def test_when_it_is_drained_it_stops_everything_and_says_where_others_go_on() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3}))
    consumer, actions = handover.drain(consumer)
    assert actions == (StopFetching(P), Reply(goodbye({P: 3})), Exit("asked to"))
    assert handover.drain(consumer) == (consumer, ())


def test_a_goodbye_waits_for_what_is_being_staged() -> None:
    consumer, _ = obeyed(fresh(), start({P: 3}))
    consumer, actions = handover.drain(handover.staging(consumer, {P: 9}))
    assert actions == (StopFetching(P),)
    _, found = handover.announced(consumer, [P])
    assert said(found) == [goodbye({P: 9})]


def test_a_goodbye_waits_for_the_commit_in_flight() -> None:
    consumer, _ = obeyed(fresh(), write("t"))
    consumer, actions = handover.drain(consumer)
    assert actions == (StopWrite(("t",)),)
    _, found = handover.written(consumer, {"t"})
    assert said(found)[-1] == goodbye({})


def test_who_leaves_and_writes_a_table_still_says_no_goodbye() -> None:
    consumer, _ = obeyed(fresh(), write("t"), start({P: 3}))
    consumer, _ = handover.leave(consumer)
    _, actions = obeyed(consumer, stop(P))
    assert said(actions) == [stopped(2, {P: 3})]


def test_of_a_cut_nobody_is_told_an_offset_until_it_is_announced() -> None:
    """Who takes over before that is to see the cut, too."""
    consumer, _ = obeyed(fresh(), start({P: 3}))
    consumer = handover.moved(handover.staging(consumer, {P: 9}), P, 2, cut=True)
    consumer, _ = handover.announced(consumer, [P])
    assert consumer.next_offsets() == {P: 3}
    consumer, _ = handover.announced(handover.staging(consumer, {P: 4}), [P])
    assert consumer.next_offsets() == {P: 4}
