"""Which commits are sent, when, and what follows their outcomes."""

from dataclasses import replace

import pytest

from binwright.consumer.decide.land import landing as landings
from binwright.consumer.decide.land import machine
from binwright.consumer.decide.land.landing import BATCH_RETRY_S, GATHER_S, RETRY_S
from binwright.consumer.decide.land.states import (
    Append,
    CommitOffsets,
    Committed,
    Conflict,
    DeleteFiles,
    HistoryRead,
    LeaseGone,
    Lost,
    QueryKafka,
    Refused,
    RereadPartitions,
    Unclear,
    Unreadable,
    WriteLease,
)
from binwright.protocol.log_events import Log
from binwright.protocol.names import lease_name
from binwright.tables.stamp import Stamp, read_stamp

from .scene import (
    CONFIG,
    NOTHING_LANDED,
    TABLE,
    Scene,
    at,
    claim,
    claimed,
    effects_of,
    history,
    landed_offsets,
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


def test_a_batch_is_sent_under_the_lease_of_the_claim() -> None:
    _, wanted = sent()
    assert (wanted.lease, wanted.number) == (lease_name("me", 1), SECOND)
    assert wanted.batch.files == ("a",)
    assert stamped(wanted).writer == "me-1"


def test_the_first_stamp_is_full_and_later_ones_have_changes() -> None:
    scene = claimed()
    scene.complete(topic_state({0: (0, 9), 1: (0, 9)}))
    scene.complete(HistoryRead(history(None, claim("me-1")), complete=True))
    scene.complete(NOTHING_LANDED)
    first = scene.next_request()
    assert isinstance(first, Append)
    assert (stamped(first).full, stamped(first).committed) == (True, at({0: 0, 1: 0}))
    assert first.batch.slices == ()
    scene.complete(Committed())
    scene.announce(staged("a", {0: (0, 3)}))
    second = stamped(scene.appends())
    assert (second.full, second.committed) == (False, at({0: 3}))


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


def test_a_table_of_few_commits_gets_a_full_stamp_in_time() -> None:
    """The log is kept for two days; by the number of commits alone a full one is days old."""
    scene = landing(config=replace(CONFIG, idle_stamp_s=60.0, check_s=1_000.0))
    for n in range(3):
        scene.announce(staged(f"f{n}", {0: (n, n + 1)}))
        assert not stamped(scene.appends(19.0)).full
        scene.complete(Committed())
    wanted = scene.next_request(3.0)
    assert isinstance(wanted, Append)
    assert stamped(wanted).full


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


STAGING = replace(CONFIG, staging_s=2.0)


def test_a_commit_begins_once_all_is_announced_that_lands_in_time() -> None:
    """Consumers stage each 2 s: what they stage next would be late."""
    scene = landing(config=STAGING)
    scene.announce(staged("a", {0: (0, 3)}, age_s=2.0))
    assert machine.due_at(scene.writer, scene.now) == 2.0  # the next files come in time
    scene.now = 1.5
    scene.announce(staged("b", {0: (3, 5)}))
    assert machine.due_at(scene.writer, scene.now) == 1.5 + GATHER_S
    scene.now = 1.9
    scene.announce(staged("c", {0: (5, 6)}))
    assert machine.due_at(scene.writer, scene.now) == 2.0  # never later than in time


@pytest.mark.parametrize(("waited_s", "late"), [(5.0, False), (5.1, True)])
def test_a_batch_whose_oldest_row_is_older_than_wanted_is_late(
    waited_s: float, *, late: bool
) -> None:
    scene = landing()
    scene.announce(staged("a", {0: (0, 3)}))
    request = scene.next_request(waited_s)
    assert isinstance(request, Append)
    assert request.late is late


def test_a_batch_that_is_large_enough_is_sent_at_once() -> None:
    scene = landing(config=replace(CONFIG, batch_bytes=10))
    scene.announce(staged("a", {0: (0, 3)}, size=10))
    assert isinstance(scene.next_request(), Append)


def test_slower_commits_begin_earlier() -> None:
    scene, _ = sent()
    scene.now += 3.0
    scene.complete(Committed())
    assert scene.landing.commit_s == pytest.approx(1.6)


def test_commits_whose_duration_varies_begin_earlier() -> None:
    scene = landing()
    for n, took_s in enumerate([3.0, 0.2, 3.0, 0.2]):
        scene.announce(staged(f"f{n}", {0: (n, n + 1)}))
        scene.appends()
        scene.now += took_s
        scene.complete(Committed())
    assert scene.landing.commit_spread_s > 0.5
    scene.announce(staged("a", {0: (4, 5)}))
    reserve = scene.landing.commit_s + scene.landing.commit_spread_s
    expected = scene.now + CONFIG.freshness_s - reserve
    assert machine.due_at(scene.writer, scene.now) == pytest.approx(expected)


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
    assert effects == [CommitOffsets(at({0: 3})), DeleteFiles(("a",))]
    assert scene.committed == {0: 3}
    assert (scene.landing.rows, scene.landing.commits) == (3, 2)


def test_rows_whose_commit_met_a_conflict_go_again_under_the_same_lease() -> None:
    scene, wanted = sent()
    scene.announce(staged("b", {0: (3, 4)}))
    effects = scene.complete(Conflict("between"))
    assert [log.event for log in effects_of(effects, Log)] == ["commit.conflicted"]
    assert scene.next_request() is None
    assert machine.due_at(scene.writer, scene.now) == scene.now + RETRY_S
    again = scene.appends(RETRY_S)
    assert (again.lease, again.number) == (wanted.lease, wanted.number + 1)
    assert again.batch.files == ("a", "b")


def test_a_commit_without_a_result_is_followed_by_a_claim_with_another_lease() -> None:
    scene, wanted = sent()
    effects = scene.complete(Unclear("no reply"))
    assert [log.event for log in effects_of(effects, Log)] == ["table.reclaimed"]
    assert scene.next_request() == WriteLease(lease_name("me", 2))
    assert scene.writer.lease != wanted.lease
    assert scene.writer.name == "me-2"


def test_a_lease_that_is_gone_means_that_the_table_is_lost() -> None:
    scene, _ = sent()
    effects = scene.complete(LeaseGone())
    assert isinstance(scene.writer.phase, Lost)
    assert [log.event for log in effects_of(effects, Log)] == ["table.lost"]
    assert scene.next_request() is None
    with pytest.raises(ValueError, match="not an outcome of a request in Lost"):
        scene.complete(Committed())


def test_nothing_is_requested_while_a_commit_is_in_flight() -> None:
    scene, _ = sent()
    with pytest.raises(ValueError, match="in flight"):
        scene.next_request()


# --- failures ------------------------------------------------------------------------------------


def test_missing_files_are_read_again() -> None:
    scene, _ = sent()
    effects = scene.complete(Unreadable(frozenset({"a"}), "gone"))
    assert effects_of(effects, RereadPartitions) == [RereadPartitions(at({0: 0}))]
    assert scene.landing.chain.pending == ()
    assert scene.landing.flight is None


def test_a_file_that_cannot_be_read_is_not_deleted() -> None:
    """The verdict may be wrong, and Kafka may not have its rows any more."""
    scene, _ = sent()
    assert effects_of(scene.complete(Unreadable(frozenset({"a"}), "torn")), DeleteFiles) == []


def test_a_missing_file_without_rows_to_land_is_not_read_again() -> None:
    scene = landing()
    scene.announce(staged("a", {1: (0, 1)}))
    _, effects = landings.unreadable(scene.landing, {"a"}, "gone")
    assert effects_of(list(effects), RereadPartitions) == []


@pytest.mark.parametrize("outcome", [Refused("a constraint"), Unreadable(frozenset(), "torn")])
def test_a_table_that_refuses_a_batch_is_tried_again_later(outcome: Refused | Unreadable) -> None:
    scene, _ = sent()
    effects = scene.complete(outcome)
    assert [log.event for log in effects_of(effects, Log)] == ["table.refused"]
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
        scene.complete(landed_offsets({}, {}))


def test_an_outcome_without_a_commit_raises() -> None:
    with pytest.raises(ValueError, match="in flight"):
        landings.committed(landing().landing, CONFIG, 0.0, Committed())


# --- announcements that nobody may trust ---------------------------------------------------------


def test_an_announcement_that_differs_from_that_of_a_file_that_waits_is_logged() -> None:
    scene = landing()
    scene.announce(staged("late", {0: (5, 9)}))
    effects = scene.announce(staged("late", {0: (5, 9)}, cut=(0,)))
    assert [log.event for log in effects_of(effects, Log)] == ["announcement.refused"]


def test_of_what_does_not_join_the_newest_announcements_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(landings, "MOST_WAITING", 3)
    scene = landing()
    for n in range(3):
        scene.announce(staged(f"far{n}", {0: (50 + n, 60)}))
        scene.announce(staged(f"next{n}", {0: (n, n + 1)}))
    dropped = effects_of(scene.effects, Log)
    assert dropped == []
    scene.announce(staged("far3", {0: (53, 60)}))
    assert [log.facts for log in effects_of(scene.effects, Log)] == [{"files": 1}]
    files = [a.staged.file for a in scene.landing.chain.pending]
    assert files == ["next0", "far1", "next1", "far2", "next2", "far3"]
