"""Several topics in one table: one claim, one pace, and a chain for each."""

from collections.abc import Mapping
from dataclasses import replace

from binwright.consumer.decide.land import machine
from binwright.consumer.decide.land.chain import Announcement, begin_new_topic
from binwright.consumer.decide.land.commits import resolve
from binwright.consumer.decide.land.states import (
    Append,
    CommitOffsets,
    Committed,
    DeleteFiles,
    HistoryRead,
    KafkaState,
    QueryKafka,
    ReadLandedOffsets,
    RereadPartitions,
    Resolving,
    Unclear,
    WriterConfig,
)
from binwright.protocol.landing import Staged
from binwright.protocol.log_events import Log
from binwright.tables.ports import PartitionOffsets
from binwright.tables.stamp import Stamp, read_stamp

from .scene import (
    CONFIG,
    ID,
    TABLE,
    TOPIC,
    Scene,
    at,
    claimed,
    effects_of,
    history,
    landed_offsets,
    landing,
    part,
    staged,
    stamp,
    topic_state,
)
from .test_chain import chain_of

MORE = "clicks"
BOTH = replace(CONFIG, table=replace(TABLE, more_topics=(MORE,)))
MORE_ID = "id-c"


def state(
    more: Mapping[int, tuple[int, int]] | None = None,
    *,
    more_id: str = MORE_ID,
    group: Mapping[int, int] | None = None,
    leaderless: frozenset[int] = frozenset(),
) -> KafkaState:
    """Return what Kafka says of both topics; the first has one partition of ten records."""
    own = topic_state()
    bounds = {part(p, MORE): bound for p, bound in (more or {0: (0, 10)}).items()}
    return replace(
        own,
        topic_ids={**own.topic_ids, MORE: more_id},
        bounds={**own.bounds, **bounds},
        leaderless=frozenset(part(p, MORE) for p in leaderless),
        group=at(group or {}, MORE),
    )


def both(config: WriterConfig = BOTH, facts: KafkaState | None = None) -> Scene:
    """Return a writer of a new table of both topics, whose first stamp is committed."""
    scene = claimed(config)
    scene.complete(facts or state())
    scene.complete(HistoryRead(history(None), complete=True))
    assert isinstance(scene.next_request(), ReadLandedOffsets)
    scene.complete(landed_offsets())
    assert isinstance(scene.next_request(), Append)
    scene.complete(Committed())
    scene.effects.clear()
    return scene


def of_more(file: str, ranges: Mapping[int, tuple[int, int]], topic_id: str = MORE_ID) -> Staged:
    """Return the announcement of a file of the second topic, to the table of the first one."""
    return replace(staged(file, ranges, topic=MORE, topic_id=topic_id), table=TABLE.name)


def committed(scene: Scene) -> PartitionOffsets:
    return scene.landing.chain.committed


def of_both(committed: Mapping[int, int], more: Mapping[int, int], **fields: object) -> Stamp:
    found = stamp(committed, **fields)  # type: ignore[arg-type]
    return replace(
        found,
        several=True,
        topic_ids={**found.topic_ids, MORE: MORE_ID},
        committed={**found.committed, **at(more, MORE)},
    )


def query(scene: Scene) -> QueryKafka:
    wanted = scene.next_request(CONFIG.check_s)
    assert isinstance(wanted, QueryKafka)
    return wanted


# --- landing -------------------------------------------------------------------------------------


def test_files_of_both_topics_land_in_one_commit_each_joined_to_its_own_topic() -> None:
    scene = both()
    scene.announce(staged("a", {0: (0, 3)}))
    scene.announce(of_more("b", {0: (0, 2)}))
    append = scene.appends()
    assert append.batch.files == ("a", "b")
    assert append.batch.ends == {**at({0: 3}), **at({0: 2}, MORE)}
    assert [part.topic for part in append.batch.slices] == [TOPIC, MORE]
    effects = scene.complete(Committed())
    assert CommitOffsets({**at({0: 3}), **at({0: 2}, MORE)}) in effects
    assert DeleteFiles(("a", "b")) in effects


def test_a_gap_of_one_topic_holds_no_other() -> None:
    scene = both()
    scene.announce(staged("late", {0: (4, 6)}))
    scene.announce(of_more("b", {0: (0, 2)}))
    assert scene.appends().batch.files == ("b",)
    scene.complete(Committed())
    query(scene)
    again = effects_of(scene.complete(state()), RereadPartitions)
    assert again == [RereadPartitions(at({0: 0}))]


def test_stamps_have_the_topics_of_their_offsets_and_full_ones_all() -> None:
    scene = both()
    scene.announce(of_more("b", {0: (0, 2)}))
    found = read_stamp(scene.appends().stamp, TABLE)
    assert found is not None
    assert (found.topic_ids, found.committed) == ({MORE: MORE_ID}, at({0: 2}, MORE))
    assert (found.several, found.full) == (True, False)
    scene.complete(Committed())
    scene.now += BOTH.idle_stamp_s
    wanted = scene.next_request()
    assert isinstance(wanted, Append)
    full = read_stamp(wanted.stamp, TABLE)
    assert full is not None
    assert full.committed == {**at({0: 0}), **at({0: 2}, MORE)}
    assert full.topic_ids == {TOPIC: ID, MORE: MORE_ID}


def test_a_topic_recreated_leaves_the_other_as_it_is() -> None:
    scene = both()
    scene.announce(staged("a", {0: (0, 3)}))
    scene.appends()
    scene.complete(Committed())
    scene.announce(of_more("new", {0: (0, 1)}, "id-d"))
    query(scene)
    effects = scene.complete(state({0: (0, 1)}, more_id="id-d"))
    assert [log.event for log in effects_of(effects, Log)] == ["topic.recreated"]
    assert committed(scene) == {**at({0: 3}), **at({0: 0}, MORE)}
    assert scene.landing.chain.topic_ids == {TOPIC: ID, MORE: "id-d"}


def test_a_busy_neighbour_hides_no_topic_recreated() -> None:
    """Some range of the other topic always joins, as where files come faster than commits end."""
    scene = both()
    scene.announce(of_more("new", {0: (0, 1)}, "id-d"))
    scene.announce(staged("a", {0: (0, 3)}))
    query(scene)
    effects = scene.complete(state({0: (0, 1)}, more_id="id-d"))
    assert [log.event for log in effects_of(effects, Log)] == ["topic.recreated"]
    stamped = scene.next_request()
    assert isinstance(stamped, Append)
    assert stamped.batch.slices == ()
    scene.complete(Committed())
    assert scene.appends().batch.files == ("new", "a")


def test_what_joins_of_a_topic_that_was_recreated_lands_first_beside_a_busy_neighbour() -> None:
    scene = both(replace(BOTH, batch_bytes=1))
    scene.announce(staged("a", {0: (0, 3)}))
    scene.announce(of_more("old", {0: (0, 2)}))
    scene.announce(of_more("new", {0: (0, 1)}, "id-d"))
    query(scene)
    assert scene.complete(state({0: (0, 1)}, more_id="id-d")) == []
    landed: list[str] = []
    for _ in range(2):
        landed += scene.appends().batch.files
        scene.complete(Committed())
    assert landed == ["a", "old"]


def test_a_chain_of_another_topic_survives_a_topic_recreated() -> None:
    chain = replace(chain_of(committed={0: 5}), cuts={**at({0: 1}), **at({0: 2}, MORE)}, pending=())
    chain, _ = begin_new_topic(chain, MORE, "id-d", before=9)
    assert chain.committed == at({0: 5})
    assert chain.cuts == at({0: 1})


def test_a_topic_that_kafka_does_not_have_holds_no_other() -> None:
    scene = claimed(BOTH)
    scene.complete(topic_state())
    scene.complete(HistoryRead(history(None, of_both({0: 4}, {0: 7}, full=True)), complete=True))
    assert committed(scene) == {**at({0: 4}), **at({0: 7}, MORE)}
    scene.announce(staged("a", {0: (4, 6)}))
    assert scene.appends().batch.files == ("a",)


def test_the_last_rows_of_a_topic_that_is_gone_land() -> None:
    """With a marker a range has fewer rows than offsets, and nothing says where its log ended."""
    scene = both()
    query(scene)
    scene.complete(topic_state({0: (0, 12)}))
    scene.announce(replace(of_more("last", {0: (0, 11)}), rows=10))
    assert scene.appends().batch.files == ("last",)


# --- a topic that is added -----------------------------------------------------------------------


def test_a_table_of_one_topic_goes_on_with_a_second_one() -> None:
    """Its stamps are of an older version, and name no topic."""
    old = stamp({0: 5}, full=True).encode().replace(f'"topic":"{TOPIC}",', "")
    assert TOPIC not in old
    scene = claimed(BOTH)
    scene.complete(state({0: (3, 9)}))
    scene.complete(HistoryRead(history(None, old), complete=True))
    assert committed(scene) == {**at({0: 5}), **at({0: 3}, MORE)}
    assert scene.landing.stamp_due


def test_stamps_that_name_no_topic_are_of_the_first_that_the_table_took() -> None:
    old = stamp({0: 5}, full=True).encode().replace(f'"topic":"{TOPIC}",', "")
    found = read_stamp(old, replace(TABLE, unnamed_topic="first"))
    assert found is not None
    assert found.committed == at({0: 5}, "first")


def test_a_topic_that_is_new_to_the_table_begins_where_the_group_stands() -> None:
    scene = claimed(BOTH)
    scene.complete(state({0: (0, 9), 1: (0, 9)}, group={0: 4, 1: 30}))
    scene.complete(HistoryRead(history(None, stamp({0: 5}, full=True)), complete=True))
    assert committed(scene) == {**at({0: 5}), **at({0: 4, 1: 9}, MORE)}


def test_with_latest_a_new_topic_begins_at_its_end_and_a_known_one_at_its_first_record() -> None:
    scene = claimed(replace(BOTH, from_latest=True))
    facts = state({0: (0, 9)}, leaderless=frozenset({1}))
    scene.complete(replace(facts, bounds={**facts.bounds, part(1): (2, 8)}))
    scene.complete(HistoryRead(history(None, stamp({0: 5}, full=True)), complete=True))
    assert committed(scene) == {**at({0: 5, 1: 2}), **at({0: 9}, MORE)}
    assert scene.landing.begin_at_end == {part(1, MORE)}


def test_a_topic_that_is_announced_before_its_role_comes_is_asked_for_and_stamped_first() -> None:
    scene = landing()
    scene.announce(of_more("b", {0: (0, 2)}))
    wanted = scene.next_request(1.0)
    assert isinstance(wanted, QueryKafka)
    assert wanted == QueryKafka(frozenset({TOPIC, MORE}), begins_of=frozenset({MORE}))
    scene.complete(state())
    begun = scene.next_request()
    assert isinstance(begun, Append)
    assert begun.batch.slices == ()
    found = read_stamp(begun.stamp, TABLE)
    assert found is not None
    assert found.committed == {**at({0: 0}), **at({0: 0}, MORE)}
    scene.complete(Committed())
    assert scene.appends().batch.files == ("b",)


def test_a_topic_without_partitions_is_stamped_too() -> None:
    scene = landing(config=BOTH)
    query(scene)
    facts = state()
    scene.complete(replace(facts, bounds={part(0): (0, 10)}))
    assert scene.landing.chain.topic_ids == {TOPIC: ID, MORE: MORE_ID}
    assert scene.landing.stamp_due


def test_topics_that_are_granted_later_are_asked_for_at_once() -> None:
    scene = landing()
    scene.writer = machine.with_topics(scene.writer, {TOPIC, MORE})
    assert scene.writer.config.table.topics == (TOPIC, MORE)
    wanted = scene.next_request()
    assert isinstance(wanted, QueryKafka)
    assert wanted.topics == {TOPIC, MORE}


def test_topics_that_are_granted_during_a_resolve_are_resolved_too() -> None:
    scene = claimed()
    scene.complete(topic_state())
    scene.writer = machine.with_topics(scene.writer, {MORE, TOPIC})
    assert scene.writer.phase == Resolving()
    wanted = scene.next_request()
    assert isinstance(wanted, QueryKafka)
    assert wanted.begins_of == {TOPIC, MORE}


def test_other_topics_may_take_the_place_of_a_tables_own() -> None:
    scene = Scene()
    scene.writer = machine.with_topics(scene.writer, {"b", "a"})
    assert scene.writer.config.table.topics == ("a", "b")


# --- resolve -------------------------------------------------------------------------------------


def test_a_topic_recreated_does_not_end_the_search_for_the_others() -> None:
    found = resolve(
        history(of_both({0: 3}, {0: 9}, full=True), of_both({}, {0: 11}, sequence=2)),
        TABLE,
        {TOPIC: ID, MORE: "id-d"},
    )
    assert (found.committed, found.whole) == (at({0: 3}), True)
    assert found.written == {TOPIC, MORE}


def test_a_topic_that_is_not_asked_for_keeps_its_newest_id() -> None:
    found = resolve(history(of_both({0: 3}, {0: 9}, full=True)), TABLE, {TOPIC: ID})
    assert found.topic_ids == {TOPIC: ID, MORE: MORE_ID}
    assert found.committed == {**at({0: 3}), **at({0: 9}, MORE)}


def test_rows_of_one_topic_make_no_other_one_old() -> None:
    scene = claimed(replace(BOTH, from_latest=True))
    scene.complete(state())
    scene.complete(HistoryRead(history("OPTIMIZE"), complete=True))
    scene.complete(landed_offsets({0: 4}))
    assert committed(scene) == {**at({0: 5}), **at({0: 10}, MORE)}


def test_an_announcement_has_the_partitions_of_its_topic() -> None:
    announced = Announcement(0, staged("b", {0: (0, 2)}, topic=MORE), 0.0)
    assert announced.partition(0) == part(0, MORE)


def without_more() -> KafkaState:
    """Return what Kafka says when nothing is known of the second topic."""
    return replace(topic_state(), unknown=frozenset({MORE}))


def test_ranges_of_a_topic_that_is_not_known_for_now_are_not_above_its_end() -> None:
    """The ends of before say nothing of what was written until its leader went."""
    scene = both()
    scene.complete(Committed())
    scene.announce(replace(of_more("b", {0: (0, 13)}), rows=4))
    assert isinstance(scene.next_request(CONFIG.check_s), QueryKafka)
    effects = scene.complete(without_more())
    assert not [each for each in effects if isinstance(each, Log) and each.event.level == "error"]
    assert scene.landing.chain.pending


def test_without_stamps_kafka_is_asked_again_about_topics_that_were_not_known() -> None:
    scene = claimed(BOTH)
    scene.complete(without_more())
    scene.complete(HistoryRead(history(None), complete=True))
    assert isinstance(scene.next_request(), ReadLandedOffsets)
    scene.complete(Unclear("there are rows of a topic that is not known"))
    assert isinstance(scene.next_request(), QueryKafka)


def test_records_behind_an_open_transaction_are_not_missing() -> None:
    scene = both()
    scene.complete(Committed())
    for readable, again in ((4, {}), (9, {part(0, MORE): 0})):
        for _ in range(2):
            scene.next_request(CONFIG.check_s)
            facts = state({0: (0, 9)})
            open_from = {part(0): 0, part(0, MORE): 0 if readable == 4 else readable}
            effects = scene.complete(replace(facts, readable=open_from))
        reread = [each.committed for each in effects if isinstance(each, RereadPartitions)]
        assert reread == ([again] if again else [])
