"""What a writer does of the work on its table that a person orders."""

from dataclasses import replace
from math import inf

import pytest

from binwright.consumer.decide.land import machine, operations, replays
from binwright.consumer.decide.land.states import (
    Append,
    ChangeBad,
    Committed,
    Conflict,
    DeleteFiles,
    Done,
    Effect,
    HistoryRead,
    LeaseGone,
    Lost,
    Portion,
    PortionStaged,
    QueryKafka,
    ReadHistory,
    Refused,
    SettleBad,
    StagePortion,
    Unclear,
    Unreadable,
)
from binwright.protocol.log_events import Log
from binwright.protocol.orders import OperationOrder
from binwright.tables.columns import parse_columns
from binwright.tables.operations import REPLAY, Cursor, Operation, ordered
from binwright.tables.ports import Batch, FileSlice
from binwright.tables.stamp import read_stamp

from .scene import (
    CONFIG,
    ID,
    TABLE,
    TOPIC,
    Scene,
    claimed,
    effects_of,
    history,
    landing,
    part,
    staged,
    stamp,
    topic_state,
)

TYPED = replace(CONFIG, table=replace(TABLE, columns=parse_columns("id BIGINT")))
ORDER = OperationOrder(table=TOPIC, id="1" * 32, work="replay", by="ann", reason="mended")
OTHER = replace(ORDER, id="2" * 32)
NOTE = f"binwright replay {ORDER.id}"
PORTION = Portion(
    after=Cursor(TOPIC, 0, 7),
    file="portion",
    bytes=100,
    rows=2,
    places={part(0): (3, 8)},
    moved={"malformed": 2},
    left={"malformed": 1},
    skipped=1,
    masked=4,
)
LAST = PortionStaged(Portion())


def give(scene: Scene, order: OperationOrder = ORDER, read_at: float = inf) -> list[Effect]:
    scene.writer, effects = machine.apply_operation(scene.writer, order, read_at)
    return list(effects)


def replaying(order: OperationOrder = ORDER) -> Scene:
    """Return a writer whose stamp has the order; the table has committed up to offset 10."""
    scene = landing(config=TYPED)
    scene.change(chain=replace(scene.landing.chain, committed={part(0): 10}))
    assert [each.event for each in effects_of(give(scene, order), Log)] == ["operation.started"]
    wanted = scene.next_request()
    assert isinstance(wanted, Append)
    assert wanted.batch == Batch()
    scene.complete(Committed())
    return scene


def operation(scene: Scene) -> Operation:
    found = scene.landing.operation
    assert found is not None
    return found


def stamped(wanted: object) -> Operation:
    """Return what the stamp of an append has of the work."""
    assert isinstance(wanted, Append)
    found = read_stamp(wanted.stamp, TABLE)
    assert found is not None
    assert found.operation is not None
    assert found.full
    return found.operation


def sent(scene: Scene) -> Append:
    """Let a portion be staged; return the append of its rows."""
    assert isinstance(scene.next_request(), StagePortion)
    assert not scene.complete(PortionStaged(PORTION))
    wanted = scene.next_request()
    assert isinstance(wanted, Append)
    return wanted


def appended() -> Scene:
    """Return a writer that has appended a portion's rows."""
    scene = replaying()
    sent(scene)
    assert not scene.complete(Committed())
    return scene


# --- order ----------------------------------------------------------------------------------------


def test_an_order_is_stamped_before_anything_is_done() -> None:
    scene = landing(config=TYPED)
    give(scene)
    found = stamped(scene.next_request())
    assert (found.id, found.by, found.reason) == (ORDER.id, "ann", "mended")
    assert give(scene, OTHER) == []  # while the stamp is under way
    scene.complete(Committed())
    assert isinstance(scene.next_request(), StagePortion)


def test_an_order_counts_once_and_another_one_when_it_has_ended() -> None:
    scene = replaying()
    assert give(scene) == []
    assert give(scene, OTHER) == []
    assert operation(scene).id == ORDER.id
    scene.next_request()
    scene.complete(LAST)
    assert give(scene) == []
    assert give(scene, OTHER)
    assert operation(scene).id == OTHER.id


def test_what_was_read_before_the_claim_was_resolved_does_not_count() -> None:
    scene = landing(config=TYPED)
    scene.change(resolved_at=5.0)
    assert give(scene, read_at=4.0) == []
    assert give(scene, read_at=5.0)


def test_outside_the_landing_phase_an_order_has_no_effect() -> None:
    assert give(Scene(TYPED)) == []


def test_a_table_of_raw_records_has_no_bad_ones() -> None:
    scene = landing()
    assert [each.event for each in effects_of(give(scene), Log)] == ["operation.failed"]
    found = stamped(scene.next_request())
    assert (found.state, found.fault) == ("failed", replays.NO_BAD_RECORDS)
    scene.complete(Committed())
    assert not isinstance(scene.next_request(), StagePortion)


def test_work_of_a_later_version_is_left_to_it() -> None:
    scene = replaying()
    scene.change(operation=replace(operation(scene), work="restate"))
    assert scene.next_request() is None
    assert operations.due_at(scene.landing, None, scene.now) is None


# --- steps ----------------------------------------------------------------------------------------


def test_only_records_are_read_that_nothing_lands_again() -> None:
    wanted = replaying(replace(ORDER, classes=("malformed",), since_ms=9)).next_request()
    assert isinstance(wanted, StagePortion)
    query = wanted.query
    assert (query.topic_ids, query.below) == ({TOPIC: ID}, {part(0): 10})
    assert (query.after, query.classes, query.since_ms) == (None, ("malformed",), 9)


def test_rows_are_appended_before_their_records_leave_and_the_stamp_names_them() -> None:
    scene = replaying()
    wanted = sent(scene)
    slices = (FileSlice("portion", {0: (3, 8)}, whole=True, bytes=100, topic=TOPIC),)
    assert wanted.batch == Batch(slices, rows=2, bytes=100, work=REPLAY)
    found = stamped(wanted)
    assert (found.unsettled, found.moved) == ({part(0): (3, 8)}, {"malformed": 2})
    assert (found.after, found.left) == (None, {})
    assert not operation(scene).unsettled  # not before it is committed
    scene.complete(Committed())
    assert operation(scene).unsettled == {part(0): (3, 8)}
    assert scene.next_request() == ChangeBad(NOTE)
    assert effects_of(scene.complete(Done()), DeleteFiles) == [DeleteFiles(("portion",))]
    after = operation(scene)
    assert (after.unsettled, after.after) == ({}, Cursor(TOPIC, 0, 7))
    assert (after.moved, after.left) == ({"malformed": 2}, {"malformed": 1})
    assert (after.skipped, after.masked) == (1, 4)
    wanted_next = scene.next_request()
    assert isinstance(wanted_next, StagePortion)
    assert wanted_next.query.after == Cursor(TOPIC, 0, 7)


def test_the_end_is_stamped() -> None:
    scene = appended()
    scene.next_request()
    scene.complete(Done())
    scene.next_request()
    (log,) = effects_of(scene.complete(LAST), Log)
    assert (log.event, log.facts["moved"]) == ("operation.ended", 2)
    found = stamped(scene.next_request())
    assert (found.state, found.after, found.unsettled) == ("done", None, {})
    scene.complete(Committed())
    assert scene.next_request() is None


def test_a_portion_without_rows_needs_no_append() -> None:
    scene = replaying()
    scene.next_request()
    scene.complete(PortionStaged(replace(PORTION, file="", rows=0, places={}, moved={})))
    assert scene.next_request() == ChangeBad(NOTE)
    assert not scene.complete(Done())
    assert operation(scene).left == {"malformed": 1}


def test_a_dry_run_counts_alone() -> None:
    scene = replaying(replace(ORDER, dry_run=True))
    wanted = scene.next_request()
    assert isinstance(wanted, StagePortion)
    assert wanted.dry_run
    scene.complete(PortionStaged(replace(PORTION, file="")))
    assert operation(scene).moved == {"malformed": 2}
    assert isinstance(scene.next_request(), StagePortion)
    scene.complete(LAST)
    assert (operation(scene).state, operation(scene).masked) == ("done", 4)


# --- resolve --------------------------------------------------------------------------------------


def test_the_next_writer_removes_first_what_the_table_has() -> None:
    unsettled = replace(ordered(ORDER), unsettled={part(0): (3, 8)}, moved={"malformed": 2})
    scene = claimed(TYPED)
    assert isinstance(scene.next_request(), QueryKafka)
    scene.complete(topic_state())
    assert isinstance(scene.next_request(), ReadHistory)
    newest = replace(stamp({0: 10}, full=True), operation=unsettled)
    scene.complete(HistoryRead(history(None, newest), complete=True))
    wanted = scene.next_request()
    assert wanted == SettleBad({part(0): (3, 8)}, NOTE)
    scene.complete(Done())
    assert (operation(scene).unsettled, operation(scene).moved) == ({}, {"malformed": 2})
    assert isinstance(scene.next_request(), StagePortion)


# --- failures -------------------------------------------------------------------------------------


def test_a_lost_lease_ends_the_writer() -> None:
    scene = replaying()
    sent(scene)
    scene.complete(LeaseGone())
    assert isinstance(scene.writer.phase, Lost)


def test_after_an_append_without_a_verdict_the_table_is_claimed_again() -> None:
    scene = replaying()
    sent(scene)
    scene.complete(Unclear("no reply"))
    assert scene.writer.claim == 2


def test_after_a_conflict_the_same_portion_is_appended() -> None:
    scene = replaying()
    first = sent(scene)
    scene.complete(Conflict("altered"))
    again = scene.next_request(2.0)
    assert isinstance(again, Append)
    assert again.batch == first.batch


@pytest.mark.parametrize("outcome", [Refused("no"), Unreadable(frozenset(["portion"]), "no")])
def test_a_portion_that_does_not_land_is_staged_again(outcome: Refused | Unreadable) -> None:
    scene = replaying()
    sent(scene)
    effects = scene.complete(outcome)
    assert effects_of(effects, DeleteFiles) == [DeleteFiles(("portion",))]
    assert [each.event for each in effects_of(effects, Log)] == ["operation.delayed"]
    assert (operation(scene).fault, scene.landing.fault) == ("no", "")
    assert scene.next_request(5.0) is None
    assert isinstance(scene.next_request(5.0), StagePortion)


@pytest.mark.parametrize("outcome", [Conflict("no"), Unclear("no"), Refused("no")])
def test_records_leave_later_if_they_do_not_now(outcome: Conflict | Unclear | Refused) -> None:
    scene = appended()
    for logged in (1, 0):  # the same fault is logged once
        scene.change(checked_at=scene.now + 10.0)
        assert scene.next_request(10.0) == ChangeBad(NOTE)
        assert len(effects_of(scene.complete(outcome), Log)) == logged
        assert operation(scene).unsettled
    scene.next_request(10.0)
    scene.complete(Done())
    assert operation(scene).fault == ""


def test_a_portion_that_cannot_be_read_is_read_later() -> None:
    scene = replaying()
    scene.next_request()
    scene.complete(Unclear("Spark is away"))
    assert (operation(scene).state, operation(scene).fault) == ("running", "Spark is away")
    assert machine.due_at(scene.writer, scene.now) == scene.now + 10.0
    assert isinstance(scene.next_request(10.0), StagePortion)


def test_what_is_refused_fails() -> None:
    scene = replaying()
    scene.next_request()
    (log,) = effects_of(scene.complete(Refused("masked")), Log)
    assert (log.event, log.facts["fault"]) == ("operation.failed", "masked")
    assert stamped(scene.next_request()).state == "failed"


def test_nothing_is_done_that_was_not_asked() -> None:
    scene = landing(config=TYPED)
    state = scene.landing
    with pytest.raises(ValueError, match="no operation"):
        operations.next_step(state, TYPED, 0.0)
    with pytest.raises(ValueError, match="no step"):
        operations.apply_outcome(state, TYPED, Done(), 0.0)
    with pytest.raises(ValueError, match="in flight"):
        operations.apply_verdict(state, TYPED, Committed(), 0.0)


# --- beside landing -------------------------------------------------------------------------------


def test_rows_that_are_due_land_first() -> None:
    scene = replaying()
    scene.announce(staged("a", {0: (10, 12)}))
    scene.change(checked_at=scene.now + 10.0)
    wanted = scene.next_request(10.0)
    assert isinstance(wanted, QueryKafka | Append), wanted  # whether they are in its log
    assert not scene.landing.asked


def test_a_step_waits_for_rows_that_it_would_make_late_but_not_for_ever() -> None:
    scene = replaying()
    now, state = scene.now, replace(scene.landing, step_s=2.0, step_at=scene.now)
    assert operations.may_begin(state, None, now)
    assert operations.may_begin(state, now + 2.0, now)
    assert not operations.may_begin(state, now + 1.9, now)
    assert operations.may_begin(state, now + 1.9, now + operations.PATIENCE_S)
    assert operations.due_at(state, None, now) == now
    assert operations.due_at(state, now + 1.9, now) == now + operations.PATIENCE_S


def test_a_pause_in_between_is_stamped() -> None:
    scene = replaying()
    sent(scene)
    scene.order(paused=True)
    scene.complete(Committed())
    found = scene.next_request()
    assert stamped(found).unsettled
    scene.complete(Committed())
    assert scene.next_request(60.0) is None
