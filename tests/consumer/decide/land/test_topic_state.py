"""A topic's state by Kafka: new partitions, a recreated topic, rows that were not announced."""

from binwright.consumer.decide.land import machine
from binwright.consumer.decide.land.states import (
    Append,
    Committed,
    DeleteFiles,
    QueryKafka,
    ReadAnnouncements,
    RereadPartitions,
    Unclear,
)
from binwright.protocol.log_events import Log

from .scene import CONFIG, TOPIC, Scene, at, effects_of, landing, staged, topic_state

CHECK_S = CONFIG.check_s


def with_query(scene: Scene, after_s: float = CHECK_S) -> Scene:
    assert isinstance(scene.next_request(after_s), QueryKafka)
    return scene


# --- partitions ----------------------------------------------------------------------------------


def test_a_new_partition_begins_at_its_first_record_after_a_stamp_fixes_that() -> None:
    scene = landing()
    scene.announce(staged("a", {1: (2, 3)}))
    with_query(scene, 1.0).complete(topic_state({0: (0, 0), 1: (2, 3)}))
    assert scene.committed == {0: 0, 1: 2}
    assert machine.due_at(scene.writer, scene.now) == scene.now
    stamp = scene.next_request()
    assert isinstance(stamp, Append)
    assert stamp.batch.slices == ()
    scene.complete(Committed())
    assert scene.appends().batch.files == ("a",)


def test_a_file_before_a_begin_that_no_stamp_has_is_not_deleted() -> None:
    """Another writer may decide that the partition begins earlier."""
    scene = landing()
    with_query(scene).complete(topic_state({0: (0, 0), 1: (2, 3)}))
    assert effects_of(scene.announce(staged("a", {1: (0, 2)})), DeleteFiles) == []
    scene.next_request()
    scene.complete(Committed())
    b = staged("b", {1: (0, 2)})
    assert effects_of(scene.announce(b), DeleteFiles) == [DeleteFiles(("b",), (b,))]


def test_what_was_staged_of_a_new_partition_counts_though_kafka_no_longer_has_it() -> None:
    scene = landing()
    scene.announce(staged("a", {1: (2, 9)}))
    with_query(scene, 1.0).complete(topic_state({0: (0, 0), 1: (7, 9)}, landing_end=1))
    assert scene.committed == {0: 0, 1: 2}


def test_a_new_partition_begins_once_all_that_may_be_announced_of_it_is_read() -> None:
    scene = landing()
    facts = topic_state({0: (0, 0), 1: (7, 9)}, landing_end=5)
    with_query(scene).complete(facts)
    assert scene.committed == {0: 0}
    scene.announce(staged("of another topic", {1: (1, 2)}, topic_id="id-0"))
    scene.announce(staged("other", {0: (0, 1)}))
    assert scene.committed == {0: 0}
    scene.announce(staged("a", {1: (2, 9)}), 3)
    assert scene.committed == {0: 0, 1: 2}


def test_a_partition_of_which_nothing_is_announced_begins_at_its_first_record() -> None:
    scene = landing()
    with_query(scene).complete(topic_state({0: (0, 0), 1: (7, 9)}, landing_end=5))
    scene.writer = machine.apply_read_up_to(scene.writer, 4)
    assert scene.committed == {0: 0}
    scene.writer = machine.apply_read_up_to(scene.writer, 5)
    assert scene.committed == {0: 0, 1: 7}
    assert scene.landing.stamp_due


def test_a_begin_that_is_decided_during_a_commit_is_stamped_after_it() -> None:
    scene = landing()
    with_query(scene).complete(topic_state({0: (0, 3), 1: (7, 9)}, landing_end=5))
    scene.announce(staged("a", {0: (0, 3)}))
    scene.appends()
    scene.announce(staged("b", {1: (2, 9)}))
    scene.complete(Committed())
    stamp = scene.next_request()
    assert isinstance(stamp, Append)
    assert stamp.batch.slices == ()
    scene.complete(Committed())
    assert scene.appends().batch.files == ("b",)


def test_what_is_announced_before_a_begin_that_was_decided_here_is_reported() -> None:
    scene = landing({0: (5, 9)})
    effects = scene.announce(staged("a", {0: (2, 7)}))
    assert [(log.event, log.facts) for log in effects_of(effects, Log)] == [
        ("rows.passed_over", {"ranges": {"orders-0": (2, 5)}})
    ]


def test_what_was_staged_of_a_topic_recreated_counts_though_kafka_no_longer_has_it() -> None:
    scene = landing()
    scene.announce(staged("new", {0: (0, 5)}, topic_id="id-2"))
    facts = topic_state({0: (3, 5)}, topic_id="id-2", landing_end=1)
    with_query(scene, 1.0).complete(facts)
    assert scene.committed == {0: 0}


# --- rows that were not announced ----------------------------------------------------------------


def test_a_reread_of_a_gap_is_requested_at_each_check() -> None:
    scene = landing()
    scene.announce(staged("b", {0: (3, 5)}))
    with_query(scene, CONFIG.gap_s)
    assert scene.complete(topic_state({0: (0, 5)})) == [RereadPartitions(at({0: 0}))]
    with_query(scene)
    assert scene.complete(topic_state({0: (0, 5)})) == [RereadPartitions(at({0: 0}))]


def test_rows_whose_announcements_are_not_read_yet_are_not_read_again() -> None:
    scene = with_query(landing())
    facts = topic_state({0: (0, 5)}, landing_end=40)
    assert scene.complete(facts) == []
    assert with_query(scene).complete(facts) == []
    scene.writer = machine.apply_read_up_to(scene.writer, 39)
    assert with_query(scene).complete(facts) == []
    scene.writer = machine.apply_read_up_to(scene.writer, 40)
    assert with_query(scene).complete(facts) == [RereadPartitions(at({0: 0}))]


def test_a_reread_of_a_gap_is_not_requested_between_checks() -> None:
    scene = landing()
    scene.announce(staged("b", {0: (3, 5)}))
    with_query(scene, CONFIG.gap_s).complete(topic_state({0: (0, 5)}))
    scene.announce(staged("c", {2: (3, 5)}))
    with_query(scene, 1.0)
    assert scene.complete(topic_state({0: (0, 5)})) == []


def test_rows_that_were_not_announced_between_two_checks_are_read_again() -> None:
    scene = landing()
    assert with_query(scene).complete(topic_state({0: (0, 5)})) == []
    assert with_query(scene).complete(topic_state({0: (0, 9)})) == [RereadPartitions(at({0: 0}))]


def test_a_partition_with_progress_between_two_checks_is_not_read_again() -> None:
    scene = landing()
    with_query(scene).complete(topic_state({0: (0, 5)}))
    scene.announce(staged("a", {0: (0, 3)}))
    scene.appends()
    scene.complete(Committed())
    assert with_query(scene).complete(topic_state({0: (0, 9)})) == []


# --- ranges that exceed their log ----------------------------------------------------------------


def test_a_range_of_fewer_rows_beyond_the_known_end_is_compared_with_kafka_before_it_lands() -> (
    None
):
    scene = landing({0: (0, 2)})
    scene.announce(staged("a", {0: (0, 5)}, rows=3))  # of a compacted topic
    with_query(scene, 4.0).complete(topic_state({0: (0, 5)}))
    wanted = scene.next_request()
    assert isinstance(wanted, Append)
    assert wanted.batch.ends == at({0: 5})


def test_a_range_beyond_the_end_of_its_log_never_lands() -> None:
    scene = landing({0: (0, 2)})
    scene.announce(staged("forged", {0: (0, 1 << 62)}, rows=3))
    effects = with_query(scene, 4.0).complete(topic_state({0: (0, 5)}))
    assert [log.event for log in effects_of(effects, Log)] == ["announcement.refused"]
    assert scene.landing.chain.pending == ()
    assert scene.committed == {0: 0}


def test_a_range_announced_after_the_query_is_compared_by_the_next_one() -> None:
    scene = with_query(landing({0: (0, 2)}))
    scene.announce(staged("a", {0: (0, 5)}, rows=3))
    assert effects_of(scene.complete(topic_state({0: (0, 4)})), Log) == []
    with_query(scene, 4.0).complete(topic_state({0: (0, 5)}))
    assert isinstance(scene.next_request(), Append)


def test_a_range_of_as_many_rows_as_offsets_lands_without_a_query() -> None:
    scene = landing({0: (0, 2)})
    scene.announce(staged("a", {0: (0, 5)}))
    assert isinstance(scene.next_request(4.0), Append)


def test_a_range_beyond_the_end_waits_for_a_query_that_kafka_answers() -> None:
    scene = landing({0: (0, 2)})
    scene.announce(staged("forged", {0: (0, 1 << 62)}, rows=3))
    with_query(scene, 4.0).complete(Unclear("no answer"))
    assert scene.next_request() is None
    assert machine.due_at(scene.writer, scene.now) > scene.now  # not in a loop
    with_query(scene, 1.0).complete(Unclear("no answer"))
    effects = with_query(scene, 1.0).complete(topic_state({0: (0, 5)}))
    assert [log.event for log in effects_of(effects, Log)] == ["announcement.refused"]


# --- a recreated topic ---------------------------------------------------------------------------


def test_files_of_the_previous_topic_that_join_land_first() -> None:
    scene = landing()
    scene.announce(staged("old", {0: (0, 3)}))
    scene.announce(staged("new", {0: (0, 1)}, topic_id="id-2"))
    with_query(scene, 1.0).complete(topic_state({0: (0, 1)}, topic_id="id-2"))
    assert scene.landing.chain.topic_ids[TOPIC] == "id-1"
    assert scene.appends().batch.files == ("old",)


def test_then_a_new_chain_begins() -> None:
    scene = landing()
    scene.announce(staged("old", {0: (2, 3)}))
    scene.announce(staged("new", {0: (0, 1)}, topic_id="id-2"))
    effects = with_query(scene, 1.0).complete(topic_state({0: (0, 1)}, topic_id="id-2"))
    assert [each.files for each in effects_of(effects, DeleteFiles)] == [("old",)]
    assert [log.event for log in effects_of(effects, Log)] == ["topic.recreated"]
    assert scene.landing.chain.topic_ids[TOPIC] == "id-2"
    stamp = scene.next_request()
    assert isinstance(stamp, Append)
    assert stamp.batch.slices == ()


def test_files_of_a_previous_topic_are_deleted() -> None:
    scene = landing()
    scene.announce(staged("old", {0: (2, 3)}, topic_id="id-0"))
    old = staged("old", {0: (2, 3)}, topic_id="id-0")
    assert with_query(scene, 1.0).complete(topic_state()) == [DeleteFiles(("old",), (old,))]


def test_a_file_announced_after_the_query_is_not_deleted() -> None:
    """Kafka replied `id-1` before the topic was recreated and the file announced."""
    scene = with_query(landing())
    scene.announce(staged("new", {0: (0, 1)}, topic_id="id-2"))
    assert effects_of(scene.complete(topic_state()), DeleteFiles) == []
    assert scene.landing.chain.pending != ()


# --- a recreated landing topic -------------------------------------------------------------------


def test_a_recreated_landing_topic_is_read_from_its_beginning() -> None:
    scene = landing()
    scene.announce(staged("b", {0: (3, 5)}), 7)
    effects = with_query(scene, CONFIG.gap_s).complete(
        topic_state({0: (0, 5)}, landing_id="landing-2")
    )
    assert effects_of(effects, ReadAnnouncements) == [ReadAnnouncements(0)]
    scene.announce(staged("c", {0: (0, 5)}), 0)
    stamp = scene.next_request()
    assert isinstance(stamp, Append)
    assert "landing-2" in stamp.stamp
    scene.complete(Committed())
    assert scene.appends().batch.files == ("c",)
