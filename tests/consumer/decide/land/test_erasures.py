"""What a writer does of an erasure: it waits, notes places, deletes, and says until when."""

from dataclasses import replace
from functools import partial
from math import inf

import pytest

from binwright.consumer.decide.land import erasures, machine
from binwright.consumer.decide.land.states import (
    Append,
    Committed,
    Conflict,
    ErasedNoted,
    EraseNoted,
    KafkaState,
    Landing,
    NoteErased,
    QueryKafka,
    Refused,
    RowsErased,
    Unclear,
)
from binwright.protocol.log_events import Log
from binwright.protocol.orders import OperationOrder
from binwright.tables.columns import parse_columns
from binwright.tables.conditions import parse_condition
from binwright.tables.operations import Operation, ordered
from binwright.tables.ports import ErasedCounts
from binwright.tables.stamp import read_stamp

from .scene import CONFIG, TABLE, TOPIC, Scene, effects_of, landing, part, staged, topic_state

TYPED = replace(
    CONFIG, table=replace(TABLE, columns=parse_columns("id BIGINT")), retention_s=604_800.0
)
ORDER = OperationOrder(
    table=TOPIC, id="1" * 32, work="erase", where="id = 5", by="ann", reason="asked to", at_ms=5
)
OTHER = replace(ORDER, id="2" * 32, work="replay", where="")
SOME = ErasedCounts(3, 0, 7)
NOTE = f"binwright erase {ORDER.id}"


kafka = partial(topic_state, landing_end=0)


def give(scene: Scene, order: OperationOrder = ORDER) -> list[object]:
    scene.writer, effects = machine.apply_operation(scene.writer, order, inf)
    return [each.event for each in effects_of(list(effects), Log)]


def erasing(
    order: OperationOrder = ORDER, committed: int = 10, end: int = 10, begin: int = 0
) -> Scene:
    """Return a writer whose stamp has the order, and that knows where the log ended since."""
    scene = landing(config=TYPED)
    scene.change(chain=replace(scene.landing.chain, committed={part(0): committed}))
    assert give(scene, order) == ["operation.started"]
    wanted = scene.next_request()
    assert isinstance(wanted, Append)
    assert order.where not in wanted.stamp or not order.where
    scene.complete(Committed())
    assert isinstance(scene.next_request(), QueryKafka)
    scene.complete(kafka({0: (begin, end)}))
    return scene


def operation(scene: Scene) -> Operation:
    found = scene.landing.operation
    assert found is not None
    return found


def noted(scene: Scene, counts: ErasedCounts = SOME) -> NoteErased:
    wanted = scene.next_request()
    assert isinstance(wanted, NoteErased)
    scene.complete(ErasedNoted(counts, 900))
    return wanted


def test_places_are_noted_before_rows_go_and_the_end_is_stamped() -> None:
    scene = erasing()
    wanted = noted(scene)
    assert (wanted.note, wanted.dry_run, wanted.query.operation) == (NOTE, False, ORDER.id)
    assert wanted.query.where is not None
    assert (wanted.query.where.text, wanted.query.bad_where) == ("`id` = 5", None)
    assert (wanted.query.below, wanted.query.ordered_ms) == ({part(0): 10}, 5)
    assert (operation(scene).erased, operation(scene).bad_left) == (3, 7)
    assert scene.next_request() == EraseNoted(ORDER.id, NOTE)
    (log,) = effects_of(scene.complete(RowsErased(1_000)), Log)
    assert (log.event, log.facts["erased"], log.facts["bad_left"]) == ("operation.ended", 3, 7)
    wanted_stamp = scene.next_request()
    assert isinstance(wanted_stamp, Append)
    stamp = read_stamp(wanted_stamp.stamp, TABLE)
    assert stamp is not None
    assert stamp.operation == operation(scene)
    done = operation(scene)
    assert (done.state, done.ended_ms, done.files_until_ms) == ("done", 1_000, 604_801_000)
    assert scene.landing.erasure is None


def test_nothing_is_erased_before_all_has_landed_that_kafka_had() -> None:
    scene = erasing(committed=7, end=10)
    assert erasures.waits(scene.landing)
    assert not isinstance(scene.next_request(), NoteErased)
    scene.change(chain=replace(scene.landing.chain, committed={part(0): 10}))
    assert not erasures.waits(scene.landing)


def known(scene: Scene, facts: KafkaState) -> Landing:
    return erasures.with_ends(scene.landing, facts)


def test_what_a_log_has_no_more_is_not_waited_for() -> None:
    scene = erasing(committed=7, end=10)
    facts = kafka({0: (0, 10)})
    cut = known(scene, replace(facts, bounds={part(0): (0, 6)}))
    assert not erasures.waits(cut)
    grown = erasures.with_ends(cut, replace(facts, bounds={part(0): (0, 20)}))
    assert not erasures.waits(grown), "it was cut meanwhile"
    assert not erasures.waits(known(scene, replace(facts, bounds={})))  # the topic is gone
    nothing = replace(facts, bounds={})
    for unknown in (
        replace(nothing, leaderless=frozenset({part(0)})),
        replace(nothing, unknown=frozenset({TOPIC})),
    ):
        assert erasures.waits(known(scene, unknown))


def test_what_retention_took_from_an_empty_log_is_waited_for() -> None:
    """It may be staged, or read: rows that a topic has no more land all the same."""
    scene = erasing(committed=7, begin=10)
    assert erasures.waits(scene.landing)
    scene.change(chain=replace(scene.landing.chain, committed={part(0): 10}))
    assert not erasures.waits(scene.landing)
    assert not erasures.waits(erasing(committed=10, begin=10).landing)


def test_what_was_announced_lands_first_where_its_topic_is_gone() -> None:
    scene = erasing(committed=7)
    assert scene.landing.erasure is not None
    scene.change(erasure=replace(scene.landing.erasure, begun=None))
    gone = replace(kafka(), topic_ids={}, bounds={}, landing_end=1)
    scene.change(erasure=known(scene, replace(gone, landing_end=None)).erasure)
    assert erasures.waits(scene.landing), "how much was announced is not known"
    scene.change(erasure=known(scene, gone).erasure)
    assert erasures.waits(scene.landing), "it is not read"
    scene.announce(staged("a-1.parquet", {0: (7, 10)}))
    assert erasures.waits(scene.landing), "it has not landed"
    scene.announce(staged("b-1.parquet", {0: (12, 15)}))
    scene.change(chain=replace(scene.landing.chain, committed={part(0): 10}))
    assert not erasures.waits(scene.landing), "what is behind a gap does not land now"


def test_announcements_that_are_gone_are_not_waited_for() -> None:
    scene = erasing()
    assert scene.landing.erasure is not None
    scene.change(erasure=replace(scene.landing.erasure, announced=9))
    assert erasures.waits(scene.landing)
    assert erasures.waits(known(scene, kafka({0: (0, 10)}, landing_end=None)))
    assert not erasures.waits(known(scene, kafka({0: (0, 10)})))


def test_ends_count_once_all_are_known_and_up_to_what_can_be_read() -> None:
    scene = erasing(committed=7, end=10)
    assert scene.landing.erasure is not None
    scene.change(erasure=replace(scene.landing.erasure, begun=None))
    facts = kafka({0: (0, 10), 1: (5, 5)})
    for lacking in (
        replace(facts, leaderless=frozenset({part(1)})),
        replace(facts, unknown=frozenset({"more"})),
    ):
        after = known(scene, lacking)
        assert after.erasure is not None
        assert after.erasure.begun is None
        assert erasures.waits(after)
    after = known(scene, replace(facts, readable={part(0): 7}))
    assert after.erasure is not None
    assert after.erasure.begun == {part(0): 7}
    assert not erasures.waits(after)
    assert erasures.with_ends(landing(config=TYPED).landing, facts).erasure is None


def test_a_dry_run_and_what_finds_nothing_change_nothing() -> None:
    scene = erasing(replace(ORDER, dry_run=True))
    assert noted(scene).dry_run
    assert (operation(scene).state, operation(scene).erased) == ("done", 3)
    assert operation(scene).files_until_ms == operation(scene).ended_ms == 0
    scene = erasing()
    noted(scene, ErasedCounts(0, 0))
    assert (operation(scene).state, operation(scene).ended_ms) == ("done", 0)


@pytest.mark.parametrize(
    ("where", "bad_where", "of_bad"),
    [
        ("_kafka.offset = 5", "", "_kafka.offset = 5"),
        ("id = 5", "kind = 'malformed'", "kind = 'malformed'"),
        ("_kafka.offset = 5", "_kafka.offset = 6", "_kafka.offset = 6"),
        ("", "_kafka.offset = 6", "_kafka.offset = 6"),
    ],
)
def test_a_condition_on_records_is_of_bad_ones_too(where: str, bad_where: str, of_bad: str) -> None:
    query = noted(erasing(replace(ORDER, where=where, bad_where=bad_where))).query
    assert query.where == (parse_condition(where) if where else None)
    assert query.bad_where == parse_condition(of_bad)


def test_a_table_of_raw_records_has_no_bad_ones() -> None:
    scene = erasing()
    state, config = scene.landing, replace(TYPED, table=TABLE)
    wanted = erasures.next_step(state, operation(scene), config)
    assert isinstance(wanted, NoteErased)
    assert wanted.query.bad_where is None


@pytest.mark.parametrize(
    ("order", "fault"),
    [
        (replace(ORDER, where=""), "no condition"),
        (replace(ORDER, where="id = rand('Ann')"), "no condition for this version"),
        (replace(ORDER, bad_where="1; DROP TABLE Ann"), "no condition for this version"),
    ],
)
def test_what_is_no_condition_fails(order: OperationOrder, fault: str) -> None:
    """No stamp and no log says what was meant: it may name a person."""
    scene = landing(config=TYPED)
    scene.writer, effects = machine.apply_operation(scene.writer, order, inf)
    (log,) = effects_of(list(effects), Log)
    assert (log.event, operation(scene).state) == ("operation.failed", "failed")
    assert fault in operation(scene).fault
    wanted = scene.next_request()
    assert isinstance(wanted, Append)
    assert "Ann" not in f"{wanted.stamp} {log.facts}"


def test_an_order_that_the_next_writer_cannot_read_fails() -> None:
    """An older version may have begun it, by rules of its own."""
    order = replace(ORDER, where="id = rand()")
    scene = claimed_again(ordered(order))
    assert give(scene, order) == ["operation.failed"]


def test_a_refusal_ends_it_and_what_is_unclear_is_tried_again() -> None:
    scene = erasing()
    for outcome in (Unclear("lost"), Conflict("a compaction")):
        assert isinstance(scene.next_request(), NoteErased)
        scene.complete(outcome)
        assert operation(scene).fault == outcome.reason
        assert scene.next_request() is None
        scene.change(step_at=scene.now)  # it is tried again later
    assert isinstance(scene.next_request(), NoteErased)
    (log,) = effects_of(scene.complete(Refused("no column id")), Log)
    assert (log.event, operation(scene).state) == ("operation.failed", "failed")
    assert operation(scene).fault == "no column id"


def claimed_again(begun: Operation) -> Scene:
    """Return a writer that has the work from a stamp, and its order not yet."""
    scene = landing(config=TYPED)
    scene.change(operation=begun, chain=replace(scene.landing.chain, committed={part(0): 10}))
    return scene


def test_the_next_writer_takes_the_condition_from_the_order() -> None:
    scene = claimed_again(ordered(ORDER))
    assert erasures.waits(scene.landing)
    with pytest.raises(ValueError, match="not known"):
        erasures.next_step(scene.landing, operation(scene), TYPED)
    assert give(scene) == []
    assert isinstance(scene.next_request(), QueryKafka)
    scene.complete(kafka({0: (0, 10)}))
    assert give(scene) == []
    assert give(scene, OTHER) == []  # one is not ended
    assert noted(scene).query.where is not None


def test_without_its_order_it_fails() -> None:
    scene = claimed_again(ordered(ORDER))
    assert give(scene, OTHER) == ["operation.failed"]
    assert "order it again" in operation(scene).fault


def test_one_whose_steps_fail_gives_way_to_a_newer_order() -> None:
    """Its condition may take for ever; what has noted something goes on, so that it ends."""
    scene = erasing()
    assert give(scene, OTHER) == []
    assert isinstance(scene.next_request(), NoteErased)
    assert give(scene, OTHER) == [], "a step is under way"
    scene.complete(Unclear("no answer within 1800 s"))
    assert give(scene, OTHER) == ["operation.failed"]
    assert scene.landing.erasure is None
    assert give(scene, OTHER) == ["operation.started"]
    assert operation(scene).id == OTHER.id

    scene = erasing()
    noted(scene)
    assert isinstance(scene.next_request(), EraseNoted)
    scene.complete(Unclear("lost"))
    assert give(scene, OTHER) == []


def test_what_is_ordered_next_remembers_what_older_versions_have() -> None:
    done = replace(ordered(ORDER), state="done", files_until_ms=7, earlier_until_ms=5)
    scene = claimed_again(done)
    assert give(scene) == []
    give(scene, OTHER)
    begun = operation(scene)
    assert (begun.id, begun.files_until_ms, begun.earlier_until_ms) == (OTHER.id, 7, 5)


def test_one_that_fails_behind_its_notes_has_the_time_of_older_versions() -> None:
    """Rows may be gone, and their bad records are not."""
    scene = erasing()
    scene.change(operation=replace(operation(scene), files_until_ms=1_000))
    noted(scene)
    assert isinstance(scene.next_request(), EraseNoted)
    scene.complete(Refused("DELTA_CANNOT_MODIFY_APPEND_ONLY"))
    failed = operation(scene)
    assert (failed.state, failed.files_until_ms) == ("failed", 604_800_900)
    assert failed.earlier_until_ms == 1_000


def test_nothing_is_taken_where_there_is_no_work() -> None:
    state = landing(config=TYPED).landing
    assert erasures.go_on(state, ORDER) == (state, ())
