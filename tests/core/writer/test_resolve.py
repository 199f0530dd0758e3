"""Where a writer goes on: by stamps, after old consumers are fenced, or by rows and offsets."""

from dataclasses import replace

from binwright.core.ports import Commit
from binwright.core.writer.landing import Landing
from binwright.core.writer.machine import Resolving
from binwright.core.writer.requests import (
    AskKafka,
    Committed,
    Facts,
    Fence,
    Offsets,
    ReadAnnouncements,
    ReadHistory,
    ReadRows,
    Rows,
    Skipped,
    Told,
    Unclear,
)
from binwright.core.writer.stamp import COMMITS_PER_EPOCH, Stamp, txn_version

from .scene import ID, RULES, Scene, caused, claim, claimed, facts, history, stamp
from .test_stamp import old


def resolved(*stamps: Stamp | str | None, told: Facts | None = None) -> Scene:
    scene = claimed()
    scene.answer(told or facts())
    scene.answer(Told(history(None, *stamps), complete=True))
    return scene


def test_it_goes_on_where_the_stamps_end() -> None:
    scene = resolved(stamp({0: 5}, full=True, needed_from=7), claim(2, "me"))
    assert scene.committed == {0: 5}
    assert not scene.landing.stamp_due
    assert caused(scene.effects, Offsets) == [Offsets({0: 5})]
    assert caused(scene.effects, ReadAnnouncements) == [ReadAnnouncements(7)]


def test_a_partition_that_no_stamp_knows_begins_at_its_first_record() -> None:
    scene = resolved(stamp({0: 5}, full=True), told=facts({0: (0, 9), 1: (3, 9)}))
    assert scene.committed == {0: 5, 1: 3}
    assert scene.landing.stamp_due


def test_what_is_decided_is_told_to_kafka_once_a_stamp_says_it() -> None:
    scene = resolved(stamp({0: 5}, full=True), told=facts({0: (0, 9), 1: (3, 9)}))
    assert caused(scene.effects, Offsets) == [Offsets({0: 5})]
    assert scene.ask() is not None
    assert caused(scene.answer(Committed()), Offsets) == [Offsets({0: 5, 1: 3})]


def test_with_latest_what_was_there_at_first_begins_at_its_end() -> None:
    scene = claimed(replace(RULES, from_latest=True))
    scene.answer(facts({0: (0, 9)}))
    scene.answer(Told(history(None), complete=True))
    assert scene.committed == {0: 9}


def test_with_latest_what_is_added_later_begins_at_its_first_record() -> None:
    scene = claimed(replace(RULES, from_latest=True))
    scene.answer(facts({0: (0, 9), 1: (0, 4)}))
    scene.answer(Told(history(None, stamp({0: 9}, full=True)), complete=True))
    assert scene.committed == {0: 9, 1: 0}


def test_a_history_is_read_further_until_it_says_all() -> None:
    scene = claimed()
    scene.answer(facts())
    first = scene.ask()
    assert isinstance(first, ReadHistory)
    scene.answer(Told([Commit(9, None)], complete=False))
    further = scene.ask()
    assert isinstance(further, ReadHistory)
    assert further.limit > first.limit


def test_an_endless_history_is_not_read_for_ever() -> None:
    scene = claimed(replace(RULES, most_history=100))
    scene.answer(facts())
    scene.answer(Told([Commit(9, None)], complete=False))
    assert isinstance(scene.ask(), ReadRows)


def test_what_does_not_answer_is_asked_again() -> None:
    scene = claimed()
    scene.answer(Unclear("Kafka is away"))
    assert isinstance(scene.ask(), AskKafka)
    scene.answer(facts())
    scene.answer(Unclear("Spark is away"))
    assert isinstance(scene.ask(), ReadHistory)


# --- the landing topic ---------------------------------------------------------------------------


def test_the_place_in_a_landing_topic_made_anew_is_its_beginning() -> None:
    last = stamp({0: 5}, full=True, needed_from=7, cuts={0: 6})
    scene = resolved(last, told=facts(landing_id="landing-2"))
    assert caused(scene.effects, ReadAnnouncements) == [ReadAnnouncements(0)]
    assert scene.landing.chain.cuts == {}


def test_without_a_known_landing_topic_it_is_read_from_its_beginning() -> None:
    scene = resolved(stamp({0: 5}, full=True, needed_from=7, landing_id=None))
    assert caused(scene.effects, ReadAnnouncements) == [ReadAnnouncements(0)]


def test_a_landing_topic_that_was_cut_is_read_from_its_end() -> None:
    last = stamp({0: 5}, full=True, needed_from=7, cuts={0: 6, 1: 2})
    scene = resolved(last, told=facts(landing_end=4))
    assert caused(scene.effects, ReadAnnouncements) == [ReadAnnouncements(4)]
    assert scene.landing.chain.cuts == {0: 3, 1: 2}


def test_cuts_that_were_taken_stay_taken() -> None:
    last = stamp({0: 5}, full=True, needed_from=7, cuts={0: 6})
    scene = resolved(last, told=facts(landing_end=9))
    assert scene.landing.chain.cuts == {0: 6}


# --- consumers of version 0.1 --------------------------------------------------------------------


def test_old_consumers_are_fenced_before_what_they_wrote_counts() -> None:
    scene = resolved(old({"orders-0": 4}), old({"orders-1": 2}, slot=5), claim(2, "me"))
    last = txn_version(RULES.term, COMMITS_PER_EPOCH - 1)
    assert scene.ask() == Fence("binwright/g/3", last)
    scene.answer(Committed())
    assert scene.ask() == Fence("binwright/g/5", last)
    scene.answer(Skipped())
    assert isinstance(scene.ask(), ReadHistory)
    late = history(None, old({"orders-0": 4}), old({"orders-1": 2}, slot=5), old({"orders-0": 6}))
    scene.answer(Told(late, complete=True))
    assert scene.committed == {0: 6, 1: 2}


def test_a_fence_without_a_verdict_is_raised_again() -> None:
    scene = resolved(old({"orders-0": 4}))
    raised = scene.ask()
    scene.answer(Unclear())
    assert scene.ask() == raised


# --- a history that was cleaned up ---------------------------------------------------------------


def cleaned_up(*stamps: Stamp, rules: object = RULES) -> Scene:
    scene = claimed(rules)  # type: ignore[arg-type]
    scene.answer(facts({0: (0, 20), 1: (0, 20)}))
    commits = [Commit(c.version + 9, c.metadata) for c in history(*stamps)]
    scene.answer(Told(commits, complete=True))
    return scene


def test_where_the_history_is_gone_rows_and_offsets_say_where_to_go_on() -> None:
    scene = cleaned_up(stamp({0: 8}))
    assert isinstance(scene.ask(), ReadRows)
    scene.answer(Rows(newest={0: 4, 1: 6}, group={0: 2, 1: 9}))
    assert scene.committed == {0: 8, 1: 9}
    assert scene.landing.stamp_due


def test_a_table_with_rows_was_begun_before() -> None:
    """So a partition without any begins at its first record, not at what is its end by now."""
    scene = cleaned_up(rules=replace(RULES, from_latest=True))
    scene.answer(Rows(newest={0: 4}, group={}))
    assert scene.committed == {0: 5, 1: 0}


def test_an_empty_table_without_history_is_begun_now() -> None:
    scene = cleaned_up(rules=replace(RULES, from_latest=True))
    scene.answer(Rows(newest={}, group={}))
    assert scene.committed == {0: 20, 1: 20}


def test_rows_that_cannot_be_read_are_asked_for_again() -> None:
    scene = cleaned_up()
    scene.answer(Unclear())
    assert isinstance(scene.ask(), ReadRows)
    assert isinstance(scene.writer.phase, Resolving)


def test_a_topic_made_anew_begins_anew() -> None:
    scene = resolved(stamp({0: 90}, topic_id="id-0", full=True), told=facts({0: (2, 5)}))
    assert scene.committed == {0: 2}
    assert scene.landing.chain.topic_id == ID
    assert isinstance(scene.writer.phase, Landing)
