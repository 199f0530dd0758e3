"""Which commits are sent, when, and what follows their outcomes."""

from dataclasses import replace

import pytest

from binwright.consumer.decide.writer import landing as landings
from binwright.consumer.decide.writer import machine
from binwright.consumer.decide.writer.landing import BATCH_RETRY_S, RETRY_S
from binwright.consumer.decide.writer.states import (
    Append,
    CommitOffsets,
    Committed,
    Conflict,
    DeleteFiles,
    HistoryRead,
    LandedOffsets,
    Landing,
    Log,
    Lost,
    QueryKafka,
    ReadHistory,
    ReadingHistory,
    Refused,
    RereadPartitions,
    Skipped,
    Unclear,
    Unreadable,
)
from binwright.protocol.stamp import Stamp, app_id, read_stamp, txn_version

from .scene import (
    CONFIG,
    TABLE,
    Scene,
    claim,
    claimed,
    effects_of,
    history,
    landing,
    staged,
    topic_state,
)

SECOND = 2  # the first commit fixes where partitions begin
AFTER_S = 10.0


def stamped(wanted: Append) -> Stamp:
    found = read_stamp(wanted.stamp, TABLE)
    assert isinstance(found, Stamp)
    return found


def sent(config: object = CONFIG) -> tuple[Scene, Append]:
    """Return a writer whose first batch is in flight."""
    scene = landing(config=config)  # type: ignore[arg-type]
    scene.announce(staged("a", {0: (0, 3)}))
    return scene, scene.appends(AFTER_S)


# --- what is sent --------------------------------------------------------------------------------


def test_a_batch_is_sent_under_the_next_version_of_the_tables_app_id() -> None:
    _, wanted = sent()
    assert (wanted.app, wanted.version) == (app_id(TABLE), txn_version(1, SECOND))
    assert wanted.batch.files == ("a",)
    assert stamped(wanted).writer == "me"


def test_the_first_stamp_is_full_and_later_ones_have_changes() -> None:
    scene = claimed()
    scene.complete(topic_state({0: (0, 9), 1: (0, 9)}))
    scene.complete(HistoryRead(history(None, claim(1, "me")), complete=True))
    first = scene.next_request()
    assert isinstance(first, Append)
    assert (stamped(first).full, dict(stamped(first).committed)) == (True, {0: 0, 1: 0})
    assert first.batch.slices == ()
    scene.complete(Committed())
    scene.announce(staged("a", {0: (0, 3)}))
    second = stamped(scene.appends())
    assert (second.full, dict(second.committed)) == (False, {0: 3})


def test_the_stamp_is_full_at_regular_intervals() -> None:
    scene = landing(config=replace(CONFIG, full_stamp_every=3))
    full = []
    for n in range(5):
        scene.announce(staged(f"f{n}", {0: (n, n + 1)}))
        full.append(stamped(scene.appends()).full)
        scene.complete(Committed())
    assert full == [False, False, True, False, False]


def test_a_stamp_has_the_first_announcement_that_is_needed() -> None:
    scene = landing()
    scene.announce(staged("a", {0: (0, 3)}), 4)
    assert stamped(scene.appends()).needed_from == 5
    scene.complete(Committed())
    scene.announce(staged("later", {0: (9, 10)}), 5)
    scene.announce(staged("b", {0: (3, 4)}), 6)
    assert stamped(scene.appends()).needed_from == 5


def test_an_idle_table_gets_a_stamp_before_its_log_is_cleaned_up() -> None:
    scene = landing(config=replace(CONFIG, idle_stamp_s=60.0, check_s=1_000.0))
    assert scene.next_request(59.0) is None
    assert machine.due_at(scene.writer, scene.now) == 60.0
    wanted = scene.next_request(1.0)
    assert isinstance(wanted, Append)
    assert stamped(wanted).full


# --- when ----------------------------------------------------------------------------------------


def test_a_commit_begins_as_late_as_the_freshness_of_its_oldest_row_allows() -> None:
    scene = landing()
    scene.announce(staged("a", {0: (0, 3)}, age_s=1.0))
    assert (
        scene.next_request(2.9) is None
    )  # 5 s fresh, 1 s old, and a commit is guessed to take 1 s
    assert machine.due_at(scene.writer, scene.now) == 3.0
    assert isinstance(scene.next_request(0.1), Append)


def test_a_batch_that_is_large_enough_is_sent_at_once() -> None:
    scene = landing(config=replace(CONFIG, batch_bytes=10))
    scene.announce(staged("a", {0: (0, 3)}, size=10))
    assert isinstance(scene.next_request(), Append)


def test_slower_commits_begin_earlier() -> None:
    scene, _ = sent()
    scene.now += 3.0
    scene.complete(Committed())
    assert scene.landing.commit_s == pytest.approx(1.6)


def test_kafka_is_asked_at_intervals_when_nothing_is_pending() -> None:
    scene = landing()
    assert scene.next_request(14.9) is None
    assert machine.due_at(scene.writer, scene.now) == 15.0
    assert isinstance(scene.next_request(0.1), QueryKafka)


def test_ranges_that_do_not_join_are_tried_each_second() -> None:
    scene = landing()
    scene.announce(staged("b", {0: (3, 5)}))
    assert scene.next_request(4.5) is None
    assert machine.due_at(scene.writer, scene.now) == scene.now + BATCH_RETRY_S


def test_rows_land_while_kafka_does_not_reply() -> None:
    scene = landing()
    scene.announce(staged("a", {0: (0, 3)}))
    assert isinstance(scene.next_request(20.0), QueryKafka)
    scene.complete(Unclear("away"))
    assert isinstance(scene.next_request(), Append)


# --- what follows the outcome --------------------------------------------------------------------


def test_after_a_commit_offsets_are_committed_to_kafka_and_files_deleted() -> None:
    scene, _ = sent()
    effects = scene.complete(Committed())
    assert effects == [CommitOffsets({0: 3}), DeleteFiles(("a",))]
    assert scene.committed == {0: 3}
    assert (scene.landing.rows, scene.landing.commits) == (3, 2)


@pytest.mark.parametrize("outcome", [Conflict("between"), Unclear("no reply")])
def test_a_commit_with_an_unknown_result_is_sent_again_unchanged(
    outcome: Conflict | Unclear,
) -> None:
    scene, wanted = sent()
    scene.announce(staged("b", {0: (3, 4)}))
    scene.complete(outcome)
    assert scene.next_request() is None
    assert machine.due_at(scene.writer, scene.now) == scene.now + RETRY_S
    assert scene.next_request(RETRY_S) == wanted


def test_a_commit_that_is_skipped_at_its_first_try_means_that_the_table_is_lost() -> None:
    scene, _ = sent()
    scene.complete(Skipped())
    assert isinstance(scene.writer.phase, Lost)


def unclear_and_skipped() -> tuple[Scene, Append]:
    scene, wanted = sent()
    scene.complete(Unclear())
    scene.next_request(RETRY_S)
    assert scene.complete(Skipped()) == []
    assert isinstance(scene.next_request(), ReadHistory)
    return scene, wanted


def test_a_skipped_repeat_with_its_own_stamp_in_the_history_was_committed() -> None:
    scene, wanted = unclear_and_skipped()
    effects = scene.complete(HistoryRead(history(None, stamped(wanted), None), complete=False))
    assert effects_of(effects, CommitOffsets) == [CommitOffsets({0: 3})]
    assert scene.committed == {0: 3}


def test_a_skipped_repeat_with_a_later_claim_in_the_history_was_not_committed() -> None:
    scene, _ = unclear_and_skipped()
    scene.complete(HistoryRead(history(None, claim(2, "you")), complete=False))
    assert isinstance(scene.writer.phase, Lost)


def test_the_writers_own_stamp_is_searched_further_back() -> None:
    scene, wanted = unclear_and_skipped()
    first = scene.next_request()
    scene.complete(HistoryRead(history(None), complete=False))
    further = scene.next_request()
    assert isinstance(first, ReadHistory)
    assert isinstance(further, ReadHistory)
    assert further.limit > first.limit
    scene.complete(HistoryRead(history(None, stamped(wanted)), complete=True))
    assert scene.committed == {0: 3}


def test_a_history_that_cannot_be_read_is_read_again() -> None:
    scene, _ = unclear_and_skipped()
    scene.complete(Unclear("Spark is away"))
    assert isinstance(scene.next_request(), ReadHistory)


@pytest.mark.parametrize("most", [128, 1 << 16])
def test_with_neither_in_the_history_the_table_is_given_up(most: int) -> None:
    scene, _ = sent(replace(CONFIG, max_history=most))
    scene.complete(Unclear())
    scene.complete(Skipped())
    scene.complete(HistoryRead(history(None), complete=most > 128))
    assert isinstance(scene.writer.phase, Lost)


# --- failures ------------------------------------------------------------------------------------


def test_missing_files_are_read_again() -> None:
    scene, _ = sent()
    effects = scene.complete(Unreadable(frozenset({"a"}), "gone"))
    assert effects_of(effects, RereadPartitions) == [RereadPartitions({0: 0})]
    assert effects_of(effects, DeleteFiles) == [DeleteFiles(("a",))]
    assert scene.landing.chain.pending == ()
    assert scene.landing.flight is None


def test_a_missing_file_without_rows_to_land_is_not_read_again() -> None:
    scene = landing()
    scene.announce(staged("a", {1: (0, 1)}))
    _, effects = landings.unreadable(scene.landing, {"a"}, "gone")
    assert effects_of(list(effects), RereadPartitions) == []


@pytest.mark.parametrize("outcome", [Refused("a constraint"), Unreadable(frozenset(), "torn")])
def test_a_table_that_refuses_a_batch_is_tried_again_later(outcome: Refused | Unreadable) -> None:
    scene, _ = sent()
    effects = scene.complete(outcome)
    assert [(log.event, log.fault) for log in effects_of(effects, Log)] == [("table.refused", True)]
    assert scene.landing.fault == outcome.reason
    assert scene.next_request(CONFIG.refused_s - 0.1) is None
    assert scene.appends(0.1).batch.files == ("a",)


def test_a_refusal_and_its_end_are_logged_once() -> None:
    scene, _ = sent()
    scene.complete(Refused("a constraint"))
    scene.appends(CONFIG.refused_s)
    assert scene.complete(Refused("a constraint")) == []
    scene.appends(CONFIG.refused_s)
    effects = scene.complete(Committed())
    assert [log.event for log in effects_of(effects, Log)] == ["table.recovered"]
    assert scene.landing.fault == ""


@pytest.mark.parametrize("outcome", [Refused("no right"), Unreadable(frozenset({"a"}), "gone")])
def test_a_new_claim_prevents_a_late_commit_of_an_earlier_call(
    outcome: Refused | Unreadable,
) -> None:
    """The earlier call may still be committed, so nothing else may be sent instead."""
    scene, _ = sent()
    scene.complete(Unclear())
    effects = scene.complete(outcome)
    assert isinstance(scene.writer.phase, ReadingHistory)
    assert [log.event for log in effects_of(effects, Log)] == ["table.reclaimed"]


def test_commits_that_are_slower_than_the_freshness_are_logged_once() -> None:
    scene = landing()
    events = []
    for n in range(3):
        scene.announce(staged(f"f{n}", {0: (n, n + 1)}))
        scene.appends()
        scene.now += 30.0
        events += [log.event for log in effects_of(scene.complete(Committed()), Log)]
    assert events == ["table.behind"]
    assert scene.landing.late


# --- misuse --------------------------------------------------------------------------------------


def test_an_outcome_of_another_request_raises() -> None:
    scene, _ = sent()
    with pytest.raises(ValueError, match="not an outcome of a commit"):
        scene.complete(LandedOffsets({}, {}))


def test_an_outcome_without_a_commit_raises() -> None:
    scene = landing()
    phase = scene.landing
    with pytest.raises(ValueError, match="in flight"):
        landings.committed(phase, CONFIG, 0.0)
    with pytest.raises(ValueError, match="in flight"):
        landings.unclear(phase, "", 0.0)
    assert isinstance(scene.writer.phase, Landing)
