"""Work on a table that a person orders, by its writer and in turns with landing: a replay.

A replay takes bad records in portions. The rows of those that decode now are appended; the commit's
stamp names the operation and the portion (†). Then those records leave the table of bad records. In
between both tables have them: whoever claims the table then reads that from the stamp, and removes
what the table has before anything else is done (†). Without the rules marked † rows are lost or
doubled (docs/design/protocol.md).
"""

from collections.abc import Mapping
from dataclasses import replace

from binwright.consumer.decide.land.states import (
    ChangeBad,
    Committed,
    DeleteFiles,
    Done,
    Effect,
    Landing,
    OperationRequest,
    Outcome,
    Portion,
    PortionStaged,
    Refused,
    SettleBad,
    StagePortion,
    Unreadable,
    WriterConfig,
)
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.orders import OperationOrder
from binwright.tables.operations import MOST_WORDS, REPLAY, Operation, added, ordered
from binwright.tables.ports import BadQuery, Batch, FileSlice

OPERATION_STARTED = LogEvent.info(
    "operation.started", "A table's writer begins a piece of work that a person has ordered."
)
OPERATION_ENDED = LogEvent.info(
    "operation.ended", "A piece of work on a table, as a person has ordered, is done."
)
OPERATION_FAILED = LogEvent.error(
    "operation.failed", "A piece of work on a table cannot be done; the table lands as before."
)
OPERATION_DELAYED = LogEvent.warning(
    "operation.delayed", "A piece of work on a table does not go on; it is tried again every 10 s."
)

PATIENCE_S = 10.0  # after which a step is taken though rows may land later for it
NEWEST_WEIGHT = 0.3  # of the newest step's duration in their mean
NO_BAD_RECORDS = "the table has raw records, so it has no bad ones: nothing is decoded for it"

Step = tuple[Landing, tuple[Effect, ...]]


def follow(state: Landing, config: WriterConfig, order: OperationOrder, read_at: float) -> Step:
    """Begin what is ordered, unless it is known or another work is not ended; a stamp records it.

    Args:
        state: Of the writer; no commit is under way.
        config: The writer's.
        order: The newest about the table.
        read_at: As of when that is known, s, monotonic. What was read before the claim was resolved
            may be older than what the stamp has.
    """
    known = state.operation
    if read_at < state.resolved_at or (known and (known.id == order.id or is_running(known))):
        return state, ()
    begun = replace(state, operation=ordered(order), stamp_due=True)
    if config.table.columns is None:
        return _failed(begun, ordered(order), NO_BAD_RECORDS)
    return begun, (Log(OPERATION_STARTED, _facts(ordered(order))),)


def is_running(operation: Operation | None) -> bool:
    """Whether there is something to do; a later version's work is not known here."""
    return operation is not None and operation.state == "running" and operation.work == REPLAY


def may_begin(state: Landing, commit_at: float | None, now: float) -> bool:
    """Whether a step may begin: rows that wait land in time all the same, or it has waited long.

    Args:
        state: Of the writer; no commit is due.
        commit_at: When the next one is due; None: no rows wait.
        now: Seconds, monotonic.
    """
    if not is_running(state.operation) or now < state.step_at:
        return False
    in_time = commit_at is None or now + state.step_s <= commit_at
    return in_time or now >= state.step_at + PATIENCE_S


def due_at(state: Landing, commit_at: float | None, now: float) -> float | None:
    """Return when the next step may begin; None: there is none to take."""
    if not is_running(state.operation):
        return None
    if now < state.step_at or may_begin(state, commit_at, now):
        return max(state.step_at, now)
    return state.step_at + PATIENCE_S


def next_step(
    state: Landing, config: WriterConfig, now: float
) -> tuple[Landing, OperationRequest | tuple[Batch, Operation]]:
    """Return what is done next: a request, or a batch to append with this in its stamp."""
    operation, portion = state.operation, state.portion
    if operation is None:
        raise ValueError("there is no operation")
    note = f"binwright {operation.work} {operation.id}"
    request: OperationRequest
    if portion is None and operation.unsettled:
        request = SettleBad(operation.unsettled, note)
    elif portion is None:
        chain = state.chain
        query = BadQuery(
            topic_ids={t: chain.topic_ids.get(t) for t in config.table.topics},
            below=chain.committed,
            after=operation.after,
            classes=operation.classes,
            since_ms=operation.since_ms,
        )
        request = StagePortion(query, operation.dry_run)
    elif portion.rows and not operation.unsettled:
        unsettled = replace(
            operation, moved=added(operation.moved, portion.moved), unsettled=portion.places
        )
        return state, (_batch(portion), unsettled)
    else:
        request = ChangeBad(note)
    return replace(state, asked=request, asked_at=now), request


def _batch(portion: Portion) -> Batch:
    ranges = {p.partition: ends for p, ends in portion.places.items()}
    (topic,) = {p.topic for p in portion.places}
    part = FileSlice(portion.file, ranges, whole=True, bytes=portion.bytes, topic=topic)
    return Batch(slices=(part,), rows=portion.rows, bytes=portion.bytes, replayed=True)


def apply_verdict(
    state: Landing, config: WriterConfig, outcome: Committed | Unreadable | Refused, now: float
) -> Step:
    """Apply that the portion's rows are in the table, or that it does not take them.

    Then, or if its file is lost, it is staged again later, when a person may have mended something.
    """
    flight, portion, operation = state.flight, state.portion, state.operation
    if flight is None or portion is None or operation is None:
        raise ValueError("nothing is in flight")
    state = replace(state, flight=None)
    if isinstance(outcome, Committed):
        done = replace(
            state,
            operation=flight.stamp.operation,
            since_full=1,
            full_at=now,
            commits=state.commits + 1,
        )
        return _timed(done, flight.sent_at, now), ()
    state, effects = _delayed(replace(state, portion=None), operation, config, outcome.reason, now)
    return state, (*effects, DeleteFiles((portion.file,)))


def apply_outcome(state: Landing, config: WriterConfig, outcome: Outcome, now: float) -> Step:
    """Apply the outcome of a step's request."""
    operation, asked = state.operation, state.asked
    if operation is None or asked is None:
        raise ValueError("no step was requested")
    state = replace(state, asked=None)
    match asked, outcome, state.portion:
        case StagePortion(), PortionStaged(portion=portion), _:
            return _staged(_timed(state, state.asked_at, now), operation, portion)
        case StagePortion(), Refused(reason=reason), _:
            return _failed(state, operation, reason)
        case SettleBad(), Done(), _:
            return replace(state, operation=replace(operation, unsettled={}, fault="")), ()
        case ChangeBad(), Done(), Portion() as portion:
            done = replace(state, portion=None, operation=_after(operation, portion))
            files = (portion.file,) if portion.file else ()
            return _timed(done, state.asked_at, now), (DeleteFiles(files),) if files else ()
        case _:
            return _delayed(state, operation, config, getattr(outcome, "reason", ""), now)


def _staged(state: Landing, operation: Operation, portion: Portion) -> Step:
    if portion.after is None:
        ended = replace(_after(operation, portion), state="done")
        log = Log(OPERATION_ENDED, {**_facts(ended), **_counts(ended)})
        return replace(state, operation=ended, stamp_due=True), (log,)
    if operation.dry_run:
        moved = added(operation.moved, portion.moved)
        return replace(state, operation=_after(replace(operation, moved=moved), portion)), ()
    return replace(state, portion=portion), ()


def _after(operation: Operation, portion: Portion) -> Operation:
    return replace(
        operation,
        unsettled={},
        after=portion.after,
        left=added(operation.left, portion.left),
        skipped=operation.skipped + portion.skipped,
        masked=operation.masked + portion.masked,
        fault="",
    )


def _failed(state: Landing, operation: Operation, reason: str) -> Step:
    """End it; a stamp records that, so that no later writer begins it again."""
    failed = replace(operation, state="failed", fault=reason[:MOST_WORDS], after=None)
    log = Log(OPERATION_FAILED, {**_facts(operation), "fault": reason})
    return replace(state, operation=failed, stamp_due=True), (log,)


def _delayed(
    state: Landing, operation: Operation, config: WriterConfig, reason: str, now: float
) -> Step:
    fault = reason[:MOST_WORDS]
    delayed = replace(operation, fault=fault)
    state = replace(state, operation=delayed, step_at=now + config.refused_s)
    if fault == operation.fault:
        return state, ()
    return state, (Log(OPERATION_DELAYED, {**_facts(operation), "fault": fault}),)


def _timed(state: Landing, began_at: float, now: float) -> Landing:
    step_s = state.step_s + NEWEST_WEIGHT * (now - began_at - state.step_s)
    return replace(state, step_s=step_s, step_at=now)


def _facts(operation: Operation) -> Mapping[str, object]:
    facts = {"operation": operation.id, "work": operation.work, "by": operation.by}
    return {**facts, "reason": operation.reason, "dry_run": operation.dry_run}


def _counts(operation: Operation) -> Mapping[str, object]:
    """Return what became of the records, for logs."""
    return {
        "moved": operation.moved,
        "left": operation.left,
        "skipped": operation.skipped,
        "masked": operation.masked,
    }
