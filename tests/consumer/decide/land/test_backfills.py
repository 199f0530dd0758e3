"""What a writer does of a back-fill: portions that end where the table begins, from there down."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import pytest

from binwright.consumer.decide.land import backfills, machine, replays
from binwright.consumer.decide.land.states import (
    FIRST_SPAN,
    Append,
    Committed,
    Conflict,
    DeleteFiles,
    Done,
    EarlierFound,
    EarlierPortion,
    EarlierStaged,
    Effect,
    FindEarlier,
    HistoryRead,
    LandedOffsets,
    QueryKafka,
    ReaderBusy,
    ReadHistory,
    ReadLandedOffsets,
    Refused,
    StageEarlier,
    StagePortion,
    TooLarge,
    TopicGone,
    Unclear,
    Unreadable,
)
from binwright.protocol.landing import OffsetRange
from binwright.protocol.log_events import Log
from binwright.protocol.orders import OperationOrder
from binwright.tables.operations import BACKFILL, Operation, ordered
from binwright.tables.ports import Batch, FileSlice
from binwright.tables.stamp import read_stamp

from .scene import (
    CONFIG,
    ID,
    TABLE,
    TOPIC,
    Scene,
    at,
    claim,
    claimed,
    effects_of,
    history,
    landing,
    part,
    staged,
    stamp,
    topic_state,
)

ORDER = OperationOrder(table=TOPIC, id="1" * 32, work="backfill", by="ann", reason="history")
OTHER = replace(ORDER, id="2" * 32, work="replay")
NO_TURN: Mapping[int, int] = {}


def give(scene: Scene, order: OperationOrder = ORDER) -> list[object]:
    scene.writer, effects = machine.apply_operation(scene.writer, order, inf)
    return [each.event for each in effects_of(list(effects), Log)]


def ordered_scene(
    order: OperationOrder = ORDER, committed: Mapping[int, int] | None = None
) -> Scene:
    """Return a writer whose stamp has the order; the table has committed so much."""
    scene = landing(config=replace(CONFIG, freshness_s=5.0))
    committed = committed or {0: 5_000}
    scene.change(chain=replace(scene.landing.chain, committed=at(committed)))
    assert give(scene, order) == ["operation.started"]
    assert isinstance(scene.next_request(), Append)
    scene.complete(Committed())
    return scene


def found(
    lowest: Mapping[int, int] | None = None,
    bounds: Mapping[int, tuple[int, int]] | None = None,
    since: Mapping[int, int] | None = None,
    **state: object,
) -> EarlierFound:
    kafka = topic_state(bounds or {0: (0, 6_000)}, **state)  # type: ignore[arg-type]
    times = None if since is None else at(since)
    return EarlierFound(at(lowest or {0: 4_000}), kafka, times)


def filling(order: OperationOrder = ORDER, outcome: EarlierFound | None = None) -> Scene:
    """Return a writer that knows what is to be back-filled."""
    scene = ordered_scene(order)
    outcome = outcome or found()
    look(scene, outcome)
    scene.complete(outcome)
    return scene


def described(outcome: EarlierFound | None = None) -> EarlierFound:
    """Return what is found before the table is asked."""
    return replace(outcome or found(), lowest=None, since=None)


def look(scene: Scene, outcome: EarlierFound | None = None) -> None:
    """Let Kafka describe what is meant; the table is asked then."""
    wanted = scene.next_request()
    assert isinstance(wanted, FindEarlier)
    assert not wanted.scan
    assert scene.complete(described(outcome)) == []
    wanted = scene.next_request()
    assert isinstance(wanted, FindEarlier)
    assert wanted.scan


def operation(scene: Scene) -> Operation:
    known = scene.landing.operation
    assert known is not None
    return known


def portion(
    first: int, number: int = 0, *, end: int = 4_000, rows: int = 1, **counts: int
) -> EarlierPortion:
    slices = (
        FileSlice(f"portion-{first}", {number: (first, end)}, whole=True, bytes=9, topic=TOPIC),
    )
    return EarlierPortion(
        partition=part(number), first=first, slices=slices if rows else (), rows=rows, **counts
    )


def stage(scene: Scene, after: EarlierPortion, **state: object) -> list[Effect]:
    """Let the portion be staged that is asked for."""
    assert isinstance(scene.next_request(), StageEarlier)
    bounds = state.pop("bounds", {0: (0, 6_000)})
    return scene.complete(EarlierStaged(after, topic_state(bounds, **state)))  # type: ignore[arg-type]


def sent(scene: Scene) -> Append:
    wanted = scene.next_request()
    assert isinstance(wanted, Append), wanted
    return wanted


def stamped(wanted: Append) -> Operation:
    known = read_stamp(wanted.stamp, TABLE)
    assert known is not None
    assert known.operation is not None
    return known.operation


def end(scene: Scene, effects: list[Effect]) -> Operation:
    """Return what the stamp has of it, since it has ended with these effects."""
    assert effects_of(effects, Log)[0].event == "operation.ended"
    return stamped(sent(scene))


# --- what is back-filled --------------------------------------------------------------------------


def test_a_table_of_keys_is_not_back_filled() -> None:
    """Deletions are noted for a while only, so that earlier changes could bring rows back."""
    keyed = replace(CONFIG, table=replace(TABLE, primary_key=("id",)))
    scene = landing(config=keyed)
    assert give(scene) == ["operation.failed"]
    assert (operation(scene).state, operation(scene).fault) == ("failed", backfills.OF_KEYS)


@pytest.mark.parametrize(
    ("lowest", "bounds", "committed", "ranges"),
    [
        ({0: 40}, {0: (10, 90)}, {0: 80}, {0: (10, 40)}),
        ({}, {0: (10, 90)}, {0: 80}, {0: (10, 80)}),  # it has no rows: where it began
        ({0: 10}, {0: (10, 90)}, {0: 80}, {}),
        ({0: 5}, {0: (10, 90)}, {0: 80}, {}),
        ({0: 60}, {0: (10, 50)}, {0: 80}, {}),  # its log was cut
        ({0: 90}, {0: (10, 100)}, {0: 80}, {0: (10, 80)}),
        ({0: 40}, {0: (10, 90), 1: (0, 9)}, {0: 80}, {0: (10, 40)}),  # it has not begun
    ],
)
def test_what_a_table_has_is_left_alone(
    lowest: dict[int, int],
    bounds: dict[int, tuple[int, int]],
    committed: dict[int, int],
    ranges: dict[int, tuple[int, int]],
) -> None:
    known = EarlierFound(at(lowest), topic_state(bounds))
    expected = {part(n): ends for n, ends in ranges.items()}
    assert backfills.earlier(ordered(ORDER), at(committed), known) == expected


def test_offsets_and_times_limit_what_is_back_filled() -> None:
    bounds, committed = {0: (0, 90), 1: (0, 90), 2: (0, 90)}, at({0: 80, 1: 80, 2: 80})
    named = ordered(replace(ORDER, offsets=at({0: 30, 1: 85})))
    known = found({}, bounds)
    known = replace(known, lowest={})
    assert backfills.earlier(named, committed, known) == {part(0): (30, 80)}
    of_time = replace(known, since=at({0: 70, 1: 0}))  # the last one has none since
    assert backfills.earlier(ordered(ORDER), committed, of_time) == {
        part(0): (70, 80),
        part(1): (0, 80),
    }


def test_where_a_table_begins_is_asked_first_and_what_is_left_is_counted() -> None:
    config = replace(CONFIG, table=replace(TABLE, keep_s=60.0))
    scene = landing(config=config)
    scene.change(chain=replace(scene.landing.chain, committed=at({0: 5_000})))
    give(scene, replace(ORDER, since_ms=7))
    sent(scene)
    scene.complete(Committed())
    assert scene.next_request() == FindEarlier(
        frozenset({TOPIC}), scan=False, since_ms=7, keep_s=60.0
    )
    scene.complete(described())
    assert scene.next_request() == FindEarlier(
        frozenset({TOPIC}), scan=True, since_ms=7, keep_s=60.0
    )
    assert scene.complete(found()) == []
    assert (operation(scene).ranges, operation(scene).to_go) == ({part(0): (0, 4_000)}, 4_000)


def test_with_nothing_to_do_it_ends() -> None:
    scene = ordered_scene()
    look(scene)
    done = end(scene, scene.complete(found({0: 0})))
    assert (done.state, done.to_go) == ("done", 0)


def test_a_dry_run_counts_offsets_and_reads_none() -> None:
    scene = ordered_scene(replace(ORDER, dry_run=True))
    look(scene)
    scene.complete(found())
    done = stamped(sent(scene))
    assert (done.state, done.to_go, done.ranges) == ("done", 4_000, {})


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ({"leaderless": frozenset({0})}, backfills.NOT_DESCRIBED),
        ({"bounds": {0: (0, 6_000), 1: (0, 5)}}, backfills.NOT_BEGUN),
        ({"topic_id": "id-2"}, backfills.RECREATED),
    ],
)
def test_what_kafka_does_not_describe_now_is_asked_again(
    state: dict[str, object], fault: str
) -> None:
    scene = ordered_scene()
    scene.next_request()
    (log,) = effects_of(scene.complete(described(found(**state))), Log)  # type: ignore[arg-type]
    assert log.event == "operation.delayed"
    assert (operation(scene).fault, operation(scene).ranges) == (fault, {})
    assert not isinstance(scene.next_request(), FindEarlier)
    scene.change(checked_at=scene.now + 10.0)
    again = scene.next_request(10.0)
    assert isinstance(again, FindEarlier)
    assert not again.scan, "the table is asked once Kafka describes what is meant"


def test_partitions_that_are_not_meant_need_no_leader() -> None:
    scene = filling(replace(ORDER, offsets=at({0: 10})), found({0: 20}, leaderless=frozenset({1})))
    assert operation(scene).ranges == {part(0): (10, 20)}


def test_topics_of_which_nothing_is_known_are_waited_for() -> None:
    scene = ordered_scene()
    look(scene)
    outcome = found()
    scene.complete(replace(outcome, kafka=replace(outcome.kafka, unknown=frozenset({"others"}))))
    assert operation(scene).fault == backfills.NOT_DESCRIBED


# --- portions -------------------------------------------------------------------------------------


def test_a_portion_ends_where_the_table_begins_and_its_stamp_has_where_it_begins_then() -> None:
    scene = filling()
    wanted = scene.next_request()
    assert wanted == StageEarlier(part(0), OffsetRange(3_000, 4_000), backfills.MOST_BYTES)
    kafka = topic_state({0: (0, 6_000)})
    after = portion(3_000, rows=900, bad=60, skipped=40, bytes=1_000)
    assert scene.complete(EarlierStaged(after, kafka)) == []
    append = sent(scene)
    assert append.batch == Batch(after.slices, rows=960, bytes=9, work=BACKFILL)
    known = stamped(append)
    assert (known.ranges, known.to_go) == ({part(0): (0, 3_000)}, 3_000)
    assert (known.rows, known.bad, known.skipped) == (900, 60, 40)
    assert operation(scene).ranges == {part(0): (0, 4_000)}, "not before it is committed"
    scene.now += 3.0
    (deleted,) = scene.complete(Committed(bad=60, skipped=40))
    assert deleted == DeleteFiles(("portion-3000",))
    assert operation(scene).ranges == {part(0): (0, 3_000)}
    assert (scene.landing.rows, scene.landing.bad, scene.landing.skipped) == (960, 60, 40)
    assert scene.next_request() is None, "half of the time is left to what lands live"
    again = scene.next_request(3.0)
    assert isinstance(again, StageEarlier)
    assert again.range.next == 3_000
    assert scene.committed == {0: 5_000}


def test_the_last_portion_ends_it() -> None:
    scene = filling(outcome=found({0: 600}))
    stage(scene, portion(0, end=600))
    assert stamped(sent(scene)).state == "done", "also if the writer dies behind this commit"
    done = end(scene, scene.complete(Committed()))
    assert (done.state, done.rows) == ("done", 1)


def test_without_rows_nothing_is_committed_before_the_next_stamp() -> None:
    scene = filling(outcome=found({0: 1_600}))
    stage(scene, portion(600, rows=0, skipped=3))
    assert (operation(scene).ranges, operation(scene).skipped) == ({part(0): (0, 600)}, 3)
    known = end(scene, stage(scene, portion(0, rows=0)))
    assert (known.state, known.skipped, known.rows) == ("done", 3, 0)


def test_partitions_take_turns() -> None:
    bounds = {0: (0, 6_000), 1: (0, 6_000)}
    scene = ordered_scene(committed={0: 5_000, 1: 5_000})
    look(scene)
    scene.complete(found({0: 4_000, 1: 4_000}, bounds))
    asked = []
    for _ in range(3):
        wanted = scene.next_request()
        assert isinstance(wanted, StageEarlier)
        asked.append(wanted.partition.partition)
        empty = portion(wanted.range.first, wanted.partition.partition, rows=0)
        scene.complete(EarlierStaged(empty, topic_state(bounds)))
    assert asked == [0, 1, 0]


def two() -> Scene:
    """Return a writer that back-fills two partitions."""
    bounds = {0: (0, 6_000), 1: (0, 6_000)}
    scene = ordered_scene(committed={0: 5_000, 1: 5_000})
    scene.change(checked_at=scene.now + 1_000.0)
    both = found({0: 4_000, 1: 4_000}, bounds)
    look(scene, both)
    scene.complete(both)
    return scene


def asked(scene: Scene, after: float = 0.0) -> int:
    """Return the partition of which a range is asked for next."""
    wanted = scene.next_request(after)
    assert isinstance(wanted, StageEarlier), wanted
    return wanted.partition.partition


def test_a_partition_that_fails_is_left_alone_for_a_while_and_the_fault_stays() -> None:
    scene = two()
    assert asked(scene) == 0
    (log,) = effects_of(scene.complete(Unclear("no leader")), Log)
    assert (log.event, operation(scene).fault) == ("operation.delayed", "no leader")
    bounds = {0: (0, 6_000), 1: (0, 6_000)}
    for first in (3_000, 2_500):
        assert asked(scene, 1.0) == 1, "at once, and again"
        empty = EarlierStaged(portion(first, 1, rows=0), topic_state({1: (0, 6_000)}))
        scene.complete(empty)
        assert operation(scene).fault == "no leader"
    assert asked(scene, 10.0) == 0
    scene.complete(EarlierStaged(portion(3_000, rows=0), topic_state(bounds)))
    assert operation(scene).fault == ""


def test_nothing_is_asked_for_while_all_fail() -> None:
    scene = two()
    for number in (0, 1):
        assert asked(scene) == number
        scene.complete(Unclear(f"fault {number}"))
    assert operation(scene).fault == "fault 0"
    assert scene.next_request(9.0) is None
    assert asked(scene, 1.0) == 0


def test_what_takes_long_and_fails_is_tried_seldom() -> None:
    """Meanwhile the table lands nothing."""
    scene = two()
    assert asked(scene) == 0
    scene.now += 10.0
    scene.complete(Unclear("it does not get on"))
    assert asked(scene) == 1
    scene.complete(EarlierStaged(portion(3_000, 1, rows=0), topic_state({1: (0, 6_000)})))
    assert asked(scene, 90.0) == 1
    scene.complete(EarlierStaged(portion(2_000, 1, rows=0), topic_state({1: (0, 6_000)})))
    assert asked(scene, 10.0) == 0


def test_while_the_process_reads_for_another_table_nothing_is_held_up() -> None:
    scene = two()
    assert asked(scene) == 0
    assert scene.complete(ReaderBusy()) == []
    assert operation(scene).fault == ""
    assert scene.next_request() is None
    assert asked(scene, backfills.BUSY_S) == 0, "its turn is not over"


def test_a_portion_that_is_not_taken_delays_its_partition_alone() -> None:
    scene = two()
    assert asked(scene) == 0
    scene.complete(EarlierStaged(portion(3_000), topic_state({0: (0, 6_000)})))
    assert "bad_share" not in operation(scene).fault
    sent(scene)
    scene.complete(Refused("bad_share allows fewer"))
    assert operation(scene).fault == "bad_share allows fewer"
    assert asked(scene) == 1
    scene.complete(EarlierStaged(portion(3_000, 1), topic_state({1: (0, 6_000)})))
    assert stamped(sent(scene)).fault == "bad_share allows fewer"


def test_what_is_left_of_a_topic_that_was_deleted_is_gone() -> None:
    scene = two()
    assert asked(scene) == 0
    done = end(scene, scene.complete(TopicGone()))
    assert (done.state, done.gone, done.ranges) == ("done", 8_000, {})


def test_a_range_with_too_much_is_asked_for_in_parts_until_it_is_one_record() -> None:
    scene = filling(outcome=found({0: 20}))
    lengths = []
    while True:
        wanted = scene.next_request()
        assert isinstance(wanted, StageEarlier)
        lengths.append(wanted.range.next - wanted.range.first)
        if wanted.most_bytes is None:
            break
        scene.complete(TooLarge())
    assert lengths == [20, 5, 1]


@pytest.mark.parametrize(
    ("took_s", "size", "span"),
    [
        (0.0, 0, 4 * FIRST_SPAN),
        (0.25, 5 << 20, 2 * FIRST_SPAN),
        (1.0, 10 << 20, FIRST_SPAN // 2),
        (60.0, 20 << 20, FIRST_SPAN // 4),
        (60.0, 1_000, 4 * FIRST_SPAN),  # with more in it, it takes no longer
        (0.1, 2 * backfills.AIM_BYTES, FIRST_SPAN // 2),
    ],
)
def test_portions_have_as_much_as_may_be_staged_in_time(
    took_s: float, size: int, span: int
) -> None:
    scene = filling()
    wanted = scene.next_request()
    assert isinstance(wanted, StageEarlier)
    scene.now += took_s
    kafka = topic_state({0: (0, 6_000)})
    scene.complete(EarlierStaged(portion(3_000, bytes=size), kafka))
    assert scene.landing.span == span


def test_a_short_range_does_not_make_the_next_ones_short() -> None:
    scene = filling(outcome=found({0: 20}))
    stage(scene, portion(10, end=20))
    assert scene.landing.span == FIRST_SPAN


def test_what_kafka_has_deleted_is_counted() -> None:
    scene = filling()
    stage(scene, portion(3_400))
    assert (operation(scene).gone, operation(scene).to_go) == (3_400, 600)
    assert stamped(sent(scene)).ranges == {}
    assert end(scene, scene.complete(Committed())).state == "done"

    scene = filling()
    done = end(scene, stage(scene, portion(4_000, rows=0)))
    assert (done.gone, done.state) == (4_000, "done")


def test_what_is_staged_of_a_log_that_was_cut_meanwhile_is_dropped() -> None:
    scene = filling()
    effects = stage(scene, portion(3_000), bounds={0: (0, 3_999)})
    assert effects[-1] == DeleteFiles(("portion-3000",))
    done = end(scene, effects)
    assert (done.ranges, done.gone, done.state) == ({}, 4_000, "done")


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ({"bounds": {1: (0, 1)}}, backfills.NOT_DESCRIBED),
        ({"topic_id": "id-2"}, backfills.RECREATED),
    ],
)
def test_what_is_staged_of_another_topic_is_dropped(state: dict[str, object], fault: str) -> None:
    scene = filling()
    log, deleted = stage(scene, portion(3_000), **state)
    assert deleted == DeleteFiles(("portion-3000",))
    assert isinstance(log, Log)
    assert operation(scene).fault == fault
    assert operation(scene).ranges == {part(0): (0, 4_000)}
    scene = filling()
    assert len(stage(scene, portion(3_000, rows=0), **state)) == 1


@pytest.mark.parametrize("outcome", [Unclear("no reply"), Conflict("x")])
def test_a_step_that_fails_is_taken_again(outcome: Unclear | Conflict) -> None:
    scene = filling()
    scene.next_request()
    (log,) = effects_of(scene.complete(outcome), Log)
    assert (log.event, operation(scene).fault) == ("operation.delayed", outcome.reason)
    scene.change(checked_at=scene.now + 10.0)
    assert isinstance(scene.next_request(10.0), StageEarlier)


def test_a_portion_that_the_table_does_not_take_is_staged_again() -> None:
    for outcome in (Refused("no column"), Unreadable(frozenset(), "damaged")):
        scene = filling()
        stage(scene, portion(3_000))
        sent(scene)
        log, deleted = scene.complete(outcome)
        assert isinstance(log, Log)
        assert deleted == DeleteFiles(("portion-3000",))
        scene.change(checked_at=scene.now + 10.0)
        assert isinstance(scene.next_request(10.0), StageEarlier)


def test_a_topic_that_no_longer_lands_there_ends_it() -> None:
    scene = filling()
    scene.next_request()
    (log,) = effects_of(scene.complete(Refused("no longer lands")), Log)
    assert log.event == "operation.failed"


# --- beside what lands ----------------------------------------------------------------------------


def test_it_waits_until_it_is_decided_where_partitions_begin() -> None:
    scene = ordered_scene()
    scene.change(undecided=at({1: 0}))
    assert not isinstance(scene.next_request(), FindEarlier)
    scene.change(undecided={})
    assert isinstance(scene.next_request(), FindEarlier)


def test_it_waits_until_all_is_read_that_was_announced_before_the_claim() -> None:
    scene = ordered_scene()
    scene.change(undecided_until=3)
    assert not isinstance(scene.next_request(), FindEarlier)
    scene.writer = machine.apply_read_up_to(scene.writer, 3)
    assert isinstance(scene.next_request(), FindEarlier)


def test_a_recreated_landing_topic_has_only_its_own_announcements_to_read() -> None:
    scene = ordered_scene()
    scene.change(undecided_until=300, step_at=scene.now + 100.0)
    assert isinstance(scene.next_request(20.0), QueryKafka)
    scene.complete(topic_state({0: (0, 6_000)}, landing_id="landing-2", landing_end=2))
    assert scene.landing.undecided_until == 2


def test_a_log_that_is_cut_is_back_filled_no_further() -> None:
    """What it has at these offsets now lands by its announcements."""
    scene = filling()
    stage(scene, portion(3_000))
    scene.announce(staged("0-1-1-0a1b2c3d.parquet", {0: (100, 200)}, cut=(0,)))
    assert backfills.waits(scene.landing)
    scene.change(step_at=scene.now + 100.0)
    known = stamped(scene.appends())
    assert (known.ranges, known.gone) == ({}, 4_000)
    scene.complete(Committed())
    assert scene.committed == {0: 200}
    assert scene.landing.portion is None
    assert not backfills.waits(scene.landing)


def test_another_partition_than_that_of_a_cut_goes_on() -> None:
    scene = filling()
    stage(scene, portion(3_000))
    state = backfills.without(scene.landing, [part(1)])
    assert state is scene.landing
    both = replace(operation(scene), ranges={part(0): (0, 10), part(1): (0, 10)})
    scene.change(operation=both)
    left = backfills.without(scene.landing, [part(1)])
    assert left.portion is not None
    assert left.operation is not None
    assert left.operation.ranges == {part(0): (0, 10)}


def test_a_recreated_topic_is_back_filled_no_further() -> None:
    scene = filling()
    stage(scene, portion(3_000))
    scene.change(step_at=scene.now + 100.0)
    assert isinstance(scene.next_request(20.0), QueryKafka)
    scene.complete(topic_state({0: (0, 9)}, topic_id="id-2"))
    assert (scene.landing.portion, operation(scene).ranges) == (None, {})


def test_without_work_there_is_nothing_to_leave_out() -> None:
    scene = landing()
    assert backfills.without(scene.landing, [part(0)]) is scene.landing


# --- orders ---------------------------------------------------------------------------------------


def test_another_order_replaces_it_and_a_dry_run_once_its_steps_fail() -> None:
    dry = replace(OTHER, dry_run=True)
    scene = filling()
    assert give(scene, dry) == []
    scene.next_request()
    assert give(scene, OTHER) == [], "a step is under way"
    scene.complete(Unclear("a batch cannot be decoded"))
    assert give(scene) == []
    assert give(scene, dry) == ["operation.failed"]
    assert operation(scene).fault == backfills.REPLACED
    assert give(scene, dry) == ["operation.failed"], "raw records are never bad"
    assert (operation(scene).id, operation(scene).given_up) == (OTHER.id, {part(0): (0, 4_000)})


def test_what_is_staged_is_deleted_once_another_order_replaces_it() -> None:
    scene = filling()
    stage(scene, portion(3_000))
    scene.writer, effects = machine.apply_operation(scene.writer, OTHER, inf)
    assert effects[-1] == DeleteFiles(("portion-3000",))
    assert scene.landing.portion is None


@pytest.mark.parametrize(
    ("offsets", "fault"),
    [({7: 5}, "no partition orders-7: it has partitions of orders"), ({0: 4_001}, "4001 is not")],
)
def test_offsets_that_cannot_be_meant_are_refused(offsets: dict[int, int], fault: str) -> None:
    scene = ordered_scene(replace(ORDER, offsets=at(offsets)))
    scene.next_request()
    effects = scene.complete(described())
    if 0 in offsets:
        scene.next_request()
        effects = scene.complete(found())
    (log,) = effects_of(effects, Log)
    assert log.event == "operation.failed"
    assert fault in operation(scene).fault


def test_a_replay_takes_no_bad_record_of_what_was_given_up() -> None:
    scene = filling()
    scene.next_request()
    scene.complete(Unclear("a batch cannot be decoded"))
    given_up = operation(scene).followed_by(ordered(OTHER))
    request = replays.next_step(scene.landing, given_up, CONFIG)
    assert isinstance(request, StagePortion)
    assert request.query.but == {part(0): (0, 4_000)}


def test_what_was_given_up_is_forgotten_once_it_has_landed_or_is_gone() -> None:
    scene = ordered_scene()
    given_up = {part(0): (0, 4_000), part(1): (0, 50), part(2): (5, 7)}
    scene.change(operation=replace(operation(scene), given_up=given_up))
    scene.change(chain=replace(scene.landing.chain, committed=at({0: 5_000, 1: 60})))
    look(scene)
    scene.complete(found(bounds={0: (9, 6_000), 1: (60, 70)}))
    assert operation(scene).given_up == {part(0): (9, 4_000), part(2): (5, 7)}
    stage(scene, portion(3_000))
    known = stamped(sent(scene))
    assert known.given_up == {part(0): (9, 3_000), part(2): (5, 7)}
    scene.complete(Committed())
    scene.now += 10
    stage(scene, portion(9))
    known = stamped(sent(scene))
    assert (known.given_up, known.ranges) == ({part(2): (5, 7)}, {})


def test_there_is_nothing_to_go_on_with_without_work() -> None:
    state = landing().landing
    assert backfills.go_on(state, ORDER) == (state, ())


@pytest.mark.parametrize("wanted", [True, False])
def test_a_new_table_is_filled_at_once_if_its_entry_wants_that(wanted: bool) -> None:
    scene = claimed(replace(CONFIG, from_earliest=wanted, from_latest=True))
    scene.next_request()
    scene.complete(topic_state({0: (0, 50)}))
    assert isinstance(scene.next_request(), ReadHistory)
    scene.complete(HistoryRead(history(None, claim("me-1")), complete=True))
    assert isinstance(scene.next_request(), ReadLandedOffsets)
    scene.complete(LandedOffsets({}, {}))
    known = scene.landing.operation
    assert (known is not None) is wanted
    first = read_stamp(sent(scene).stamp, TABLE)
    assert first is not None
    assert (first.operation is not None) is wanted


def test_a_table_that_has_landed_something_is_not_filled_by_itself() -> None:
    scene = claimed(replace(CONFIG, from_earliest=True))
    scene.next_request()
    scene.complete(topic_state({0: (0, 50)}))
    scene.next_request()
    scene.complete(HistoryRead(history(stamp({0: 7}, full=True), claim("me-1")), complete=True))
    assert scene.landing.operation is None
    assert scene.landing.chain.topic_ids == {TOPIC: ID}


def test_what_is_not_known_yet_is_looked_for_again() -> None:
    scene = ordered_scene()
    scene.next_request()
    (log,) = effects_of(scene.complete(Unclear("no reply")), Log)
    assert (log.event, operation(scene).fault) == ("operation.delayed", "no reply")
    scene.change(checked_at=scene.now + 10.0)
    assert isinstance(scene.next_request(10.0), FindEarlier)


def test_an_outcome_that_is_none_of_its_steps_changes_nothing() -> None:
    scene = filling()
    scene.next_request()
    scene.complete(Done())
    assert operation(scene).ranges == {part(0): (0, 4_000)}
