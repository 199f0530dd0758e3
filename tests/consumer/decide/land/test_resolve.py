"""Where a writer continues: by stamps, or by rows and offsets."""

from dataclasses import replace

import pytest

from binwright.consumer.decide.land import machine
from binwright.consumer.decide.land.states import (
    Append,
    CommitOffsets,
    Committed,
    Contradicted,
    DeleteFiles,
    HistoryRead,
    KafkaState,
    LandedOffsets,
    Landing,
    QueryKafka,
    ReadAnnouncements,
    ReadHistory,
    ReadLandedOffsets,
    RereadPartitions,
    Resolving,
    Unclear,
)
from binwright.protocol.log_events import Log
from binwright.tables.ports import Commit
from binwright.tables.stamp import Stamp

from .scene import (
    CONFIG,
    ID,
    NOTHING_LANDED,
    TOPIC,
    Scene,
    at,
    claim,
    claimed,
    effects_of,
    history,
    landed_offsets,
    part,
    staged,
    stamp,
    topic_state,
)


def resolved(*stamps: Stamp | None, state: KafkaState | None = None) -> Scene:
    scene = claimed()
    scene.complete(state or topic_state())
    scene.complete(HistoryRead(history(None, *stamps), complete=True))
    return scene


def test_it_continues_after_the_last_stamp() -> None:
    scene = resolved(stamp({0: 5}, full=True, needed_from=7), claim("me-1"))
    assert scene.committed == {0: 5}
    assert not scene.landing.stamp_due
    assert effects_of(scene.effects, CommitOffsets) == [CommitOffsets(at({0: 5}))]
    assert effects_of(scene.effects, ReadAnnouncements) == [ReadAnnouncements(7)]


def test_the_file_of_a_cut_that_has_landed_counts_no_more_after_a_restart() -> None:
    cut = staged("0-1-3-0a1b2c3d.parquet", {0: (5, 8)}, cut=(0,))
    before = replace(stamp({0: 9}, full=True, cuts={0: 2}), cut_files={part(0): (cut.file,)})
    scene = resolved(before)
    scene.announce(cut, 7)
    assert (scene.landing.chain.pending, scene.committed) == ((), {0: 9})


def test_a_partition_without_a_stamp_begins_at_its_first_record() -> None:
    scene = resolved(stamp({0: 5}, full=True), state=topic_state({0: (0, 9), 1: (3, 9)}))
    assert scene.committed == {0: 5, 1: 3}
    assert scene.landing.stamp_due


def test_what_was_staged_before_the_first_claim_counts_though_kafka_no_longer_has_it() -> None:
    facts = topic_state({0: (20, 30), 1: (4, 9)}, landing_end=3)
    scene = claimed()
    scene.complete(facts)
    scene.complete(HistoryRead(history(None, claim("me-1")), complete=True))
    scene.complete(NOTHING_LANDED)
    assert scene.committed == {}
    assert scene.next_request() is None  # nothing is stamped before it is known
    scene.announce(staged("a", {0: (0, 30)}), 1)
    assert scene.committed == {0: 0}
    scene.writer = machine.apply_read_up_to(scene.writer, 3)
    assert scene.committed == {0: 0, 1: 4}
    first = scene.next_request()
    assert isinstance(first, Append)
    assert first.batch.slices == ()
    scene.complete(Committed())
    assert scene.appends().batch.files == ("a",)


def test_where_the_group_or_the_end_states_where_to_begin_no_announcement_does() -> None:
    latest = claimed(replace(CONFIG, from_latest=True))
    for scene, group in ((latest, {}), (claimed(), at({0: 25}))):
        scene.complete(replace(topic_state({0: (20, 30)}, landing_end=3), group=group))
        scene.complete(HistoryRead(history(None, claim("me-1")), complete=True))
        scene.complete(NOTHING_LANDED)
        scene.announce(staged("a", {0: (0, 30)}), 1)
        assert scene.committed == {0: 25 if group else 30}


def test_new_decisions_are_committed_to_kafka_once_a_stamp_has_them() -> None:
    scene = resolved(stamp({0: 5}, full=True), state=topic_state({0: (0, 9), 1: (3, 9)}))
    assert effects_of(scene.effects, CommitOffsets) == [CommitOffsets(at({0: 5}))]
    assert scene.next_request() is not None
    assert effects_of(scene.complete(Committed()), CommitOffsets) == [
        CommitOffsets(at({0: 5, 1: 3}))
    ]


def test_with_latest_existing_partitions_of_a_new_group_begin_at_their_end() -> None:
    scene = claimed(replace(CONFIG, from_latest=True))
    scene.complete(topic_state({0: (0, 9)}))
    scene.complete(HistoryRead(history(None), complete=True))
    scene.complete(NOTHING_LANDED)
    assert scene.committed == {0: 9}


def test_with_latest_a_reader_that_began_before_the_claim_decides_where_rows_begin() -> None:
    """Its first offset is the group's: what it staged while Spark was away lands."""
    scene = claimed(replace(CONFIG, from_latest=True))
    scene.complete(topic_state({0: (0, 9), 1: (0, 7)}))
    scene.complete(HistoryRead(history(None), complete=True))
    scene.complete(landed_offsets(highest={}, group={0: 4}))
    assert scene.committed == {0: 4, 1: 7}


def test_with_latest_a_partition_without_a_leader_begins_at_its_end_once_that_is_known() -> None:
    scene = claimed(replace(CONFIG, from_latest=True))
    scene.complete(topic_state({0: (0, 9)}, leaderless=frozenset({1})))
    scene.complete(HistoryRead(history(None), complete=True))
    scene.complete(NOTHING_LANDED)
    assert scene.committed == {0: 9}
    assert isinstance(scene.next_request(), Append)
    scene.complete(Committed())
    assert isinstance(scene.next_request(CONFIG.check_s), QueryKafka)
    scene.complete(topic_state({0: (0, 9), 1: (0, 6)}))
    assert scene.committed == {0: 9, 1: 6}


def test_with_latest_partitions_that_are_added_later_begin_at_their_first_record() -> None:
    scene = claimed(replace(CONFIG, from_latest=True))
    scene.complete(topic_state({0: (0, 9), 1: (0, 4)}))
    scene.complete(HistoryRead(history(None, stamp({0: 9}, full=True)), complete=True))
    assert scene.committed == {0: 9, 1: 0}


def test_the_history_is_read_further_back_until_it_is_whole() -> None:
    scene = claimed()
    scene.complete(topic_state())
    first = scene.next_request()
    assert isinstance(first, ReadHistory)
    scene.complete(HistoryRead([Commit(9, None)], complete=False))
    further = scene.next_request()
    assert isinstance(further, ReadHistory)
    assert further.limit > first.limit


def test_the_history_is_read_up_to_a_limit() -> None:
    scene = claimed(replace(CONFIG, max_history=100))
    scene.complete(topic_state())
    scene.complete(HistoryRead([Commit(9, None)], complete=False))
    assert isinstance(scene.next_request(), ReadLandedOffsets)


def test_requests_without_a_reply_are_repeated() -> None:
    scene = claimed()
    scene.complete(Unclear("Kafka is away"))
    assert isinstance(scene.next_request(), QueryKafka)
    scene.complete(topic_state())
    scene.complete(Unclear("Spark is away"))
    assert isinstance(scene.next_request(), ReadHistory)


# --- the landing topic ---------------------------------------------------------------------------


def test_a_recreated_landing_topic_is_read_from_its_beginning() -> None:
    last = stamp({0: 5}, full=True, needed_from=7, cuts={0: 6})
    scene = resolved(last, state=topic_state(landing_id="landing-2"))
    assert effects_of(scene.effects, ReadAnnouncements) == [ReadAnnouncements(0)]
    assert scene.landing.chain.cuts == at({})


def test_an_unknown_landing_topic_is_read_from_its_beginning() -> None:
    scene = resolved(stamp({0: 5}, full=True, needed_from=7, landing_id=None))
    assert effects_of(scene.effects, ReadAnnouncements) == [ReadAnnouncements(0)]


def test_a_truncated_landing_topic_is_read_from_its_end() -> None:
    last = stamp({0: 5}, full=True, needed_from=7, cuts={0: 6, 1: 2})
    scene = resolved(last, state=topic_state(landing_end=4))
    assert effects_of(scene.effects, ReadAnnouncements) == [ReadAnnouncements(4)]
    assert scene.landing.chain.cuts == at({0: 3, 1: 2})


def test_cuts_that_have_landed_are_remembered() -> None:
    last = stamp({0: 5}, full=True, needed_from=7, cuts={0: 6})
    scene = resolved(last, state=topic_state(landing_end=9))
    assert scene.landing.chain.cuts == at({0: 6})


# --- no full stamp -------------------------------------------------------------------------------


def without_full_stamp(
    *stamps: Stamp, config: object = CONFIG, state: KafkaState | None = None, first: int = 9
) -> Scene:
    scene = claimed(config)  # type: ignore[arg-type]
    scene.complete(state or topic_state({0: (0, 20), 1: (0, 20)}))
    commits = [Commit(c.version + first, c.metadata) for c in history(*stamps)]
    scene.complete(HistoryRead(commits, complete=True))
    return scene


def test_without_a_history_it_continues_after_the_rows_and_the_groups_offsets() -> None:
    scene = without_full_stamp(stamp({0: 8}))
    assert isinstance(scene.next_request(), ReadLandedOffsets)
    scene.complete(landed_offsets(highest={0: 4, 1: 6}, group={0: 2, 1: 9}))
    assert scene.committed == {0: 8, 1: 9}
    assert scene.landing.stamp_due


@pytest.mark.parametrize("stamps", [(), (claim("me-1"),)])
def test_a_whole_history_without_a_stamp_of_ours_is_continued_after_its_rows(
    stamps: tuple[Stamp, ...],
) -> None:
    """Version 0 may be the rows: of a clone, of a CTAS, of a group that was renamed."""
    scene = without_full_stamp(*stamps, first=0)
    assert isinstance(scene.next_request(), ReadLandedOffsets)
    scene.complete(landed_offsets(highest={0: 4}, group={1: 9}))
    assert scene.committed == {0: 5, 1: 9}


def test_stamps_of_another_group_do_not_hide_the_rows() -> None:
    scene = without_full_stamp(replace(stamp({0: 8}, full=True), group="renamed"), first=0)
    scene.complete(landed_offsets(highest={0: 7}, group={}))
    assert scene.committed == {0: 8, 1: 0}


def test_a_table_with_rows_is_not_new() -> None:
    """Its partitions without rows begin at their first record, not at their current end."""
    scene = without_full_stamp(config=replace(CONFIG, from_latest=True))
    scene.complete(landed_offsets(highest={0: 4}, group={}))
    assert scene.committed == {0: 5, 1: 0}


def test_an_empty_table_without_history_is_new() -> None:
    scene = without_full_stamp(config=replace(CONFIG, from_latest=True))
    scene.complete(NOTHING_LANDED)
    assert scene.committed == {0: 20, 1: 20}


def test_rows_that_cannot_be_read_are_requested_again() -> None:
    scene = without_full_stamp()
    scene.complete(Unclear())
    assert isinstance(scene.next_request(), ReadLandedOffsets)
    assert isinstance(scene.writer.phase, Resolving)


@pytest.mark.parametrize(
    "landed",
    [landed_offsets({0: 999_999}, {}), landed_offsets({}, {0: 1_000_000})],
)
def test_rows_above_the_end_of_the_log_are_refused(landed: LandedOffsets) -> None:
    """They are of another cluster: what is written next would count as landed."""
    scene = without_full_stamp(state=topic_state({0: (0, 300)}))
    effects = scene.complete(landed)
    assert isinstance(scene.writer.phase, Contradicted)
    assert "partition orders-0 reach up to offset 1000000" in scene.writer.phase.reason
    assert [log.event for log in effects_of(effects, Log)] == ["table.contradicted"]
    assert scene.next_request() is None


def test_a_stamp_above_the_end_of_the_log_counts() -> None:
    """The log was truncated: its reader says so, and goes on at its end."""
    scene = without_full_stamp(stamp({0: 400}), state=topic_state({0: (0, 300)}))
    scene.complete(landed_offsets({0: 399}, {}))
    assert scene.committed == {0: 400}


def test_a_recreated_topic_begins_at_its_first_record() -> None:
    scene = resolved(stamp({0: 90}, topic_id="id-0", full=True), state=topic_state({0: (2, 5)}))
    assert scene.committed == {0: 2}
    assert scene.landing.chain.topic_ids[TOPIC] == ID
    assert isinstance(scene.writer.phase, Landing)


def test_a_table_of_a_later_version_is_refused() -> None:
    scene = claimed()
    scene.complete(topic_state({0: (0, 9)}))
    later = stamp({0: 5}, full=True).encode().replace("stamp/3", "stamp/5")
    effects = scene.complete(HistoryRead(history(later), complete=True))
    assert isinstance(scene.writer.phase, Contradicted)
    assert "a later version of binwright (binwright-stamp/5)" in scene.writer.phase.reason
    assert [log.event for log in effects_of(effects, Log)] == ["table.contradicted"]
    assert scene.next_request() is None


# --- stamps that no writer has made --------------------------------------------------------------

FAR = 1 << 62


def reason_of(scene: Scene) -> str:
    assert isinstance(scene.writer.phase, Contradicted)
    return scene.writer.phase.reason


def doubted(end: int = 10, landing_end: int = 9) -> Scene:
    """Return a writer of a table whose stamp says that more has landed than Kafka has."""
    return resolved(
        stamp({0: FAR, 1: 5}, full=True, needed_from=7),
        state=topic_state({0: (0, end), 1: (0, 10)}, landing_end=landing_end),
    )


def asks(scene: Scene) -> None:
    assert isinstance(scene.next_request(1.0), QueryKafka)


def test_a_stamp_beyond_the_end_of_a_log_without_a_cut_is_refused_by_version() -> None:
    scene = doubted()
    assert effects_of(scene.effects, CommitOffsets) == []
    assert scene.next_request() is None
    assert machine.due_at(scene.writer, scene.now) == scene.now + 1
    assert scene.announce(staged("true", {0: (0, 10), 1: (5, 9)}), 7) == []
    asks(scene)
    scene.complete(Unclear("no answer"))
    asks(scene)
    facts = topic_state({0: (0, 10), 1: (0, 10)}, landing_end=9)
    assert scene.complete(facts) == []  # not all is read
    scene.writer = machine.apply_read_up_to(scene.writer, 9)
    asks(scene)
    assert [log.event for log in effects_of(scene.complete(facts), Log)] == ["table.contradicted"]
    assert "version 1 " in reason_of(scene)
    assert "orders-0" in reason_of(scene)
    assert effects_of(scene.effects, DeleteFiles) == []


def test_a_cut_that_is_announced_makes_such_a_stamp_true() -> None:
    scene = doubted()
    scene.announce(staged("before", {1: (5, 6)}), 7)
    effects = scene.announce(staged("cut", {0: (9, 10)}, cut=(0,)), 8)
    assert effects == [ReadAnnouncements(7)]
    stamped = scene.next_request()
    assert isinstance(stamped, Append)
    assert stamped.batch.slices == ()
    scene.complete(Committed())
    scene.announce(staged("before", {1: (5, 6)}), 7)
    scene.announce(staged("cut", {0: (9, 10)}, cut=(0,)), 8)
    assert scene.appends().batch.files == ("before", "cut")


def test_a_log_that_has_grown_makes_such_a_stamp_true() -> None:
    scene = doubted()
    asks(scene)
    facts = topic_state({0: (0, FAR), 1: (0, 10)}, landing_end=9)
    assert scene.complete(facts) == [ReadAnnouncements(7)]
    assert scene.committed == {0: FAR, 1: 5}


def test_a_stamp_beyond_the_end_of_two_logs_needs_both_cuts() -> None:
    scene = resolved(
        stamp({0: FAR, 1: FAR}, full=True), state=topic_state({0: (0, 9), 1: (0, 9)}, landing_end=2)
    )
    assert scene.announce(staged("cut", {0: (8, 9)}, cut=(0,)), 0) == []
    assert scene.announce(staged("other", {1: (8, 9)}, cut=(1,)), 1) == [ReadAnnouncements(0)]


def test_a_topic_recreated_meanwhile_settles_it() -> None:
    scene = doubted()
    scene.writer = machine.apply_read_up_to(scene.writer, 9)
    asks(scene)
    facts = topic_state({0: (0, 3), 1: (0, 3)}, topic_id="id-2", landing_end=9)
    assert scene.complete(facts) == [ReadAnnouncements(7)]


def test_of_a_log_without_a_leader_nothing_is_false() -> None:
    scene = doubted()
    scene.writer = machine.apply_read_up_to(scene.writer, 9)
    asks(scene)
    assert scene.complete(topic_state({1: (0, 10)}, landing_end=9)) == []
    assert isinstance(scene.writer.phase, Landing)


def test_where_partitions_begin_is_not_decided_while_there_are_doubts() -> None:
    facts = topic_state({0: (0, 10), 1: (4, 10)}, landing_end=9)
    scene = resolved(stamp({0: FAR}, full=True), state=facts)
    scene.writer = machine.apply_read_up_to(scene.writer, 9)
    assert scene.committed == {0: FAR}


def test_a_cut_that_no_announcement_can_have_reported_is_refused_by_version() -> None:
    false = stamp({0: 3}, full=True, cuts={0: FAR})
    scene = resolved(false, state=topic_state(landing_end=9))
    assert "version 1 " in reason_of(scene)
    other = resolved(replace(false, landing_id="l"), state=topic_state(landing_end=9))
    assert isinstance(other.writer.phase, Landing)


def test_a_stamp_without_a_full_one_before_it_is_refused_by_version() -> None:
    assert "version 1 " in reason_of(resolved(stamp({0: 500}), claim("me-1")))
    scene = claimed()
    scene.complete(topic_state())
    cleaned_up = [Commit(9, stamp({0: 5}).encode()), Commit(8, None)]
    scene.complete(HistoryRead(cleaned_up, complete=True))
    assert isinstance(scene.next_request(), ReadLandedOffsets)


def test_a_stamp_that_needs_announcements_that_are_not_there_loses_nothing() -> None:
    scene = resolved(stamp({0: 0}, full=True, needed_from=FAR), state=topic_state(landing_end=9))
    for _ in range(2):
        assert isinstance(scene.next_request(CONFIG.check_s), QueryKafka)
        effects = scene.complete(topic_state(landing_end=9))
    assert effects == [RereadPartitions(at({0: 0}))]
