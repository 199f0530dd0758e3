"""What is sent, when, and what its verdict means."""

from dataclasses import replace

import pytest

from binwright.core.writer import landing as landings
from binwright.core.writer import machine
from binwright.core.writer.landing import LOOK_S, RETRY_S, Landing
from binwright.core.writer.machine import Looking, Lost
from binwright.core.writer.requests import (
    Append,
    AskKafka,
    Committed,
    Conflict,
    Delete,
    Log,
    Offsets,
    ReadAgain,
    ReadHistory,
    Refused,
    Rows,
    Skipped,
    Told,
    Unclear,
    Unreadable,
)
from binwright.core.writer.stamp import Stamp, app_id, read_stamp, txn_version

from .scene import RULES, TABLE, Scene, caused, claim, claimed, facts, history, landing, staged

SECOND = 2  # the first commit said where partitions begin
AFTER_S = 10.0


def stamped(wanted: Append) -> Stamp:
    found = read_stamp(wanted.stamp, TABLE)
    assert isinstance(found, Stamp)
    return found


def sent(rules: object = RULES) -> tuple[Scene, Append]:
    """Return a writer whose first batch is on its way."""
    scene = landing(rules=rules)  # type: ignore[arg-type]
    scene.hear(staged("a", {0: (0, 3)}))
    return scene, scene.appends(AFTER_S)


# --- what is sent --------------------------------------------------------------------------------


def test_a_batch_goes_under_the_next_version_of_the_tables_app_id() -> None:
    _, wanted = sent()
    assert (wanted.app, wanted.version) == (app_id(TABLE), txn_version(1, SECOND))
    assert wanted.batch.files == ("a",)
    assert stamped(wanted).writer == "me"


def test_the_first_stamp_is_full_and_the_next_name_what_changed() -> None:
    scene = claimed()
    scene.answer(facts({0: (0, 9), 1: (0, 9)}))
    scene.answer(Told(history(None, claim(1, "me")), complete=True))
    first = scene.ask()
    assert isinstance(first, Append)
    assert (stamped(first).full, dict(stamped(first).committed)) == (True, {0: 0, 1: 0})
    assert first.batch.slices == ()
    scene.answer(Committed())
    scene.hear(staged("a", {0: (0, 3)}))
    second = stamped(scene.appends())
    assert (second.full, dict(second.committed)) == (False, {0: 3})


def test_every_so_many_commits_the_stamp_is_full() -> None:
    scene = landing(rules=replace(RULES, full_stamp_every=3))
    full = []
    for n in range(5):
        scene.hear(staged(f"f{n}", {0: (n, n + 1)}))
        full.append(stamped(scene.appends()).full)
        scene.answer(Committed())
    assert full == [False, False, True, False, False]


def test_a_stamp_tells_what_of_the_landing_topic_is_needed() -> None:
    scene = landing()
    scene.hear(staged("a", {0: (0, 3)}), 4)
    assert stamped(scene.appends()).needed_from == 5
    scene.answer(Committed())
    scene.hear(staged("later", {0: (9, 10)}), 5)
    scene.hear(staged("b", {0: (3, 4)}), 6)
    assert stamped(scene.appends()).needed_from == 5


def test_a_table_that_rests_is_stamped_before_its_log_is_cleaned() -> None:
    scene = landing(rules=replace(RULES, idle_stamp_s=60.0, check_s=1_000.0))
    assert scene.ask(59.0) is None
    assert machine.due_at(scene.writer, scene.now) == 60.0
    wanted = scene.ask(1.0)
    assert isinstance(wanted, Append)
    assert stamped(wanted).full


# --- when ----------------------------------------------------------------------------------------


def test_a_commit_begins_as_late_as_its_oldest_row_allows() -> None:
    scene = landing()
    scene.hear(staged("a", {0: (0, 3)}, age_s=1.0))
    assert scene.ask(2.9) is None  # 5 s fresh, 1 s old, and a commit is guessed to take 1 s
    assert machine.due_at(scene.writer, scene.now) == 3.0
    assert isinstance(scene.ask(0.1), Append)


def test_a_batch_that_is_large_enough_goes_at_once() -> None:
    scene = landing(rules=replace(RULES, batch_bytes=10))
    scene.hear(staged("a", {0: (0, 3)}, size=10))
    assert isinstance(scene.ask(), Append)


def test_what_takes_longer_is_begun_earlier() -> None:
    scene, _ = sent()
    scene.now += 3.0
    scene.answer(Committed())
    assert scene.landing.commit_s == pytest.approx(1.6)


def test_with_nothing_pending_it_asks_kafka_from_time_to_time() -> None:
    scene = landing()
    assert scene.ask(14.9) is None
    assert machine.due_at(scene.writer, scene.now) == 15.0
    assert isinstance(scene.ask(0.1), AskKafka)


def test_what_does_not_join_on_is_looked_at_each_second() -> None:
    scene = landing()
    scene.hear(staged("b", {0: (3, 5)}))
    assert scene.ask(4.5) is None
    assert machine.due_at(scene.writer, scene.now) == scene.now + LOOK_S


def test_kafka_that_does_not_tell_holds_no_rows_up() -> None:
    scene = landing()
    scene.hear(staged("a", {0: (0, 3)}))
    assert isinstance(scene.ask(20.0), AskKafka)
    scene.answer(Unclear("away"))
    assert isinstance(scene.ask(), Append)


# --- what its verdict means ----------------------------------------------------------------------


def test_what_is_committed_is_told_to_kafka_and_its_files_are_deleted() -> None:
    scene, _ = sent()
    effects = scene.answer(Committed())
    assert effects == [Offsets({0: 3}), Delete(("a",))]
    assert scene.committed == {0: 3}
    assert (scene.landing.rows, scene.landing.commits) == (3, 2)


@pytest.mark.parametrize("outcome", [Conflict("between"), Unclear("no answer")])
def test_without_a_verdict_the_same_goes_again_after_a_while(outcome: Conflict | Unclear) -> None:
    scene, wanted = sent()
    scene.hear(staged("b", {0: (3, 4)}))
    scene.answer(outcome)
    assert scene.ask() is None
    assert machine.due_at(scene.writer, scene.now) == scene.now + RETRY_S
    assert scene.ask(RETRY_S) == wanted


def test_skipped_at_its_first_try_it_has_lost_the_table() -> None:
    scene, _ = sent()
    scene.answer(Skipped())
    assert isinstance(scene.writer.phase, Lost)


def unclear_and_skipped() -> tuple[Scene, Append]:
    scene, wanted = sent()
    scene.answer(Unclear())
    scene.ask(RETRY_S)
    assert scene.answer(Skipped()) == []
    assert isinstance(scene.ask(), ReadHistory)
    return scene, wanted


def test_skipped_after_no_answer_the_own_stamp_tells_that_it_landed() -> None:
    scene, wanted = unclear_and_skipped()
    effects = scene.answer(Told(history(None, stamped(wanted), None), complete=False))
    assert caused(effects, Offsets) == [Offsets({0: 3})]
    assert scene.committed == {0: 3}


def test_without_the_own_stamp_a_later_claim_tells_that_it_did_not() -> None:
    scene, _ = unclear_and_skipped()
    scene.answer(Told(history(None, claim(2, "you")), complete=False))
    assert isinstance(scene.writer.phase, Lost)


def test_the_own_stamp_is_looked_for_further_back() -> None:
    scene, wanted = unclear_and_skipped()
    first = scene.ask()
    scene.answer(Told(history(None), complete=False))
    further = scene.ask()
    assert isinstance(first, ReadHistory)
    assert isinstance(further, ReadHistory)
    assert further.limit > first.limit
    scene.answer(Told(history(None, stamped(wanted)), complete=True))
    assert scene.committed == {0: 3}


def test_a_history_that_cannot_be_read_leaves_the_verdict_open() -> None:
    scene, _ = unclear_and_skipped()
    scene.answer(Unclear("Spark is away"))
    assert isinstance(scene.ask(), ReadHistory)


@pytest.mark.parametrize("most", [128, 1 << 16])
def test_where_neither_is_found_the_table_is_given_up(most: int) -> None:
    scene, _ = sent(replace(RULES, most_history=most))
    scene.answer(Unclear())
    scene.answer(Skipped())
    scene.answer(Told(history(None), complete=most > 128))
    assert isinstance(scene.writer.phase, Lost)


# --- what is refused -----------------------------------------------------------------------------


def test_files_that_are_gone_are_read_again() -> None:
    scene, _ = sent()
    effects = scene.answer(Unreadable(frozenset({"a"}), "gone"))
    assert caused(effects, ReadAgain) == [ReadAgain({0: 0})]
    assert caused(effects, Delete) == [Delete(("a",))]
    assert scene.landing.chain.pending == ()
    assert scene.landing.flight is None


def test_a_file_that_is_gone_after_all_of_it_landed_is_not_read_again() -> None:
    scene = landing()
    scene.hear(staged("a", {1: (0, 1)}))
    _, effects = landings.unreadable(scene.landing, {"a"}, "gone")
    assert caused(list(effects), ReadAgain) == []


@pytest.mark.parametrize("outcome", [Refused("a constraint"), Unreadable(frozenset(), "torn")])
def test_a_table_that_refuses_is_tried_again_later(outcome: Refused | Unreadable) -> None:
    scene, _ = sent()
    effects = scene.answer(outcome)
    assert [(log.event, log.fault) for log in caused(effects, Log)] == [("table.refused", True)]
    assert scene.landing.fault == outcome.reason
    assert scene.ask(RULES.refused_s - 0.1) is None
    assert scene.appends(0.1).batch.files == ("a",)


def test_the_same_refusal_is_said_once_and_its_end_too() -> None:
    scene, _ = sent()
    scene.answer(Refused("a constraint"))
    scene.appends(RULES.refused_s)
    assert scene.answer(Refused("a constraint")) == []
    scene.appends(RULES.refused_s)
    effects = scene.answer(Committed())
    assert [log.event for log in caused(effects, Log)] == ["table.recovered"]
    assert scene.landing.fault == ""


@pytest.mark.parametrize("outcome", [Refused("no right"), Unreadable(frozenset({"a"}), "gone")])
def test_what_was_sent_before_is_shut_out_by_a_new_claim(outcome: Refused | Unreadable) -> None:
    """It may still land: nothing else may be sent in its place."""
    scene, _ = sent()
    scene.answer(Unclear())
    effects = scene.answer(outcome)
    assert isinstance(scene.writer.phase, Looking)
    assert [log.event for log in caused(effects, Log)] == ["table.reclaimed"]


def test_it_says_once_that_commits_take_longer_than_rows_may_wait() -> None:
    scene = landing()
    said = []
    for n in range(3):
        scene.hear(staged(f"f{n}", {0: (n, n + 1)}))
        scene.appends()
        scene.now += 30.0
        said += [log.event for log in caused(scene.answer(Committed()), Log)]
    assert said == ["table.behind"]
    assert scene.landing.late


# --- our own faults ------------------------------------------------------------------------------


def test_an_answer_to_what_was_not_asked_is_our_own_fault() -> None:
    scene, _ = sent()
    with pytest.raises(ValueError, match="no answer to a commit"):
        scene.answer(Rows({}, {}))


def test_a_verdict_without_a_commit_is_our_own_fault() -> None:
    scene = landing()
    phase = scene.landing
    with pytest.raises(ValueError, match="in flight"):
        landings.committed(phase, RULES, 0.0)
    with pytest.raises(ValueError, match="in flight"):
        landings.unclear(phase, "", 0.0)
    assert isinstance(scene.writer.phase, Landing)
