"""What Kafka tells a writer: new partitions, a topic made anew, rows that nobody announced."""

from binwright.core.writer import machine
from binwright.core.writer.requests import (
    Append,
    AskKafka,
    Committed,
    Delete,
    Log,
    ReadAgain,
    ReadAnnouncements,
)

from .scene import RULES, Scene, caused, facts, landing, staged

CHECK_S = RULES.check_s


def asks(scene: Scene, after_s: float = CHECK_S) -> Scene:
    assert isinstance(scene.ask(after_s), AskKafka)
    return scene


# --- partitions ----------------------------------------------------------------------------------


def test_a_new_partition_begins_at_its_first_record_and_a_stamp_says_so_first() -> None:
    scene = landing()
    scene.hear(staged("a", {1: (2, 3)}))
    asks(scene, 1.0).answer(facts({0: (0, 0), 1: (2, 3)}))
    assert scene.committed == {0: 0, 1: 2}
    assert machine.due_at(scene.writer, scene.now) == scene.now
    said = scene.ask()
    assert isinstance(said, Append)
    assert said.batch.slices == ()
    scene.answer(Committed())
    assert scene.appends().batch.files == ("a",)


def test_what_is_over_by_a_begin_that_no_stamp_says_is_not_deleted() -> None:
    """Another writer may have said that the partition begins earlier."""
    scene = landing()
    asks(scene).answer(facts({0: (0, 0), 1: (2, 3)}))
    assert scene.hear(staged("a", {1: (0, 2)})) == []
    scene.ask()
    scene.answer(Committed())
    assert scene.hear(staged("b", {1: (0, 2)})) == [Delete(("b",))]


# --- rows that nobody announced ------------------------------------------------------------------


def test_a_gap_is_read_again_and_asked_for_once_in_a_while() -> None:
    scene = landing()
    scene.hear(staged("b", {0: (3, 5)}))
    asks(scene, RULES.gap_s)
    assert scene.answer(facts({0: (0, 5)})) == [ReadAgain({0: 0})]
    asks(scene)
    assert scene.answer(facts({0: (0, 5)})) == [ReadAgain({0: 0})]


def test_a_gap_is_not_asked_for_at_every_look() -> None:
    scene = landing()
    scene.hear(staged("b", {0: (3, 5)}))
    asks(scene, RULES.gap_s).answer(facts({0: (0, 5)}))
    scene.hear(staged("c", {2: (3, 5)}))
    asks(scene, 1.0)
    assert scene.answer(facts({0: (0, 5)})) == []


def test_rows_that_nobody_announced_between_two_looks_are_read_again() -> None:
    scene = landing()
    assert asks(scene).answer(facts({0: (0, 5)})) == []
    assert asks(scene).answer(facts({0: (0, 9)})) == [ReadAgain({0: 0})]


def test_where_something_landed_between_two_looks_nothing_is_asked_for() -> None:
    scene = landing()
    asks(scene).answer(facts({0: (0, 5)}))
    scene.hear(staged("a", {0: (0, 3)}))
    scene.appends()
    scene.answer(Committed())
    assert asks(scene).answer(facts({0: (0, 9)})) == []


# --- a topic made anew ---------------------------------------------------------------------------


def test_what_joins_on_of_the_topic_before_lands_first() -> None:
    scene = landing()
    scene.hear(staged("old", {0: (0, 3)}))
    scene.hear(staged("new", {0: (0, 1)}, topic_id="id-2"))
    asks(scene, 1.0).answer(facts({0: (0, 1)}, topic_id="id-2"))
    assert scene.landing.chain.topic_id == "id-1"
    assert scene.appends().batch.files == ("old",)


def test_then_it_begins_a_new_chain() -> None:
    scene = landing()
    scene.hear(staged("old", {0: (2, 3)}))
    scene.hear(staged("new", {0: (0, 1)}, topic_id="id-2"))
    effects = asks(scene, 1.0).answer(facts({0: (0, 1)}, topic_id="id-2"))
    assert caused(effects, Delete) == [Delete(("old",))]
    assert [log.event for log in caused(effects, Log)] == ["topic.recreated"]
    assert scene.landing.chain.topic_id == "id-2"
    said = scene.ask()
    assert isinstance(said, Append)
    assert said.batch.slices == ()


def test_files_of_a_topic_before_this_one_are_deleted() -> None:
    scene = landing()
    scene.hear(staged("old", {0: (2, 3)}, topic_id="id-0"))
    assert asks(scene, 1.0).answer(facts()) == [Delete(("old",))]


def test_a_file_that_is_newer_than_the_answer_is_kept() -> None:
    """Kafka said `id-1` before the topic was made anew, and the file was announced."""
    scene = asks(landing())
    scene.hear(staged("new", {0: (0, 1)}, topic_id="id-2"))
    assert caused(scene.answer(facts()), Delete) == []
    assert scene.landing.chain.pending != ()


# --- the landing topic made anew -----------------------------------------------------------------


def test_a_landing_topic_made_anew_is_read_from_its_beginning() -> None:
    scene = landing()
    scene.hear(staged("b", {0: (3, 5)}), 7)
    effects = asks(scene, RULES.gap_s).answer(facts({0: (0, 5)}, landing_id="landing-2"))
    assert caused(effects, ReadAnnouncements) == [ReadAnnouncements(0)]
    scene.hear(staged("c", {0: (0, 5)}), 0)
    said = scene.ask()
    assert isinstance(said, Append)
    assert "landing-2" in said.stamp
    scene.answer(Committed())
    assert scene.appends().batch.files == ("c",)
