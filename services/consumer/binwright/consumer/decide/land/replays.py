"""A replay: a table's bad records are decoded again, in portions and in turns with landing.

The rows of those that decode now are appended; the commit's stamp names the operation and the
portion (†). Then those records leave the table of bad records. In between both tables have them:
whoever claims the table then reads that from the stamp, and removes what the table has before
anything else is done (†). Without the rules marked † rows are lost or doubled
(docs/design/protocol.md).
"""

from dataclasses import replace

from binwright.consumer.decide.land.progress import Asked, Step, delayed, ended, failed, timed
from binwright.consumer.decide.land.states import (
    ChangeBad,
    Committed,
    DeleteFiles,
    Done,
    Landing,
    OperationRequest,
    Outcome,
    Portion,
    PortionStaged,
    Refused,
    SettleBad,
    StagePortion,
    WriterConfig,
)
from binwright.protocol.orders import OperationOrder
from binwright.tables.operations import REPLAY, Operation, added, ordered
from binwright.tables.ports import BadQuery, Batch, FileSlice

NO_BAD_RECORDS = "the table has raw records, so it has no bad ones: nothing is decoded for it"


def begin(state: Landing, config: WriterConfig, order: OperationOrder) -> Step:
    """Begin a replay, if there may be something to decode."""
    if config.table.columns is None:
        return failed(state, ordered(order), NO_BAD_RECORDS)
    return state, ()


def go_on(state: Landing, _order: OperationOrder) -> Step:
    """Go on: the stamp has all of the order."""
    return state, ()


def waits(_state: Landing) -> bool:
    """Wait for nothing."""
    return False


def next_step(
    state: Landing, operation: Operation, config: WriterConfig
) -> OperationRequest | tuple[Batch, Operation]:
    """Return what is done next; see `operations.next_step`."""
    portion = state.portion if isinstance(state.portion, Portion) else None
    note = operation.note
    if portion is None and operation.unsettled:
        return SettleBad(operation.unsettled, note)
    if portion is None:
        chain = state.chain
        query = BadQuery(
            topic_ids={t: chain.topic_ids.get(t) for t in config.table.topics},
            below=chain.committed,
            but=operation.given_up,
            after=operation.after,
            classes=operation.classes,
            since_ms=operation.since_ms,
        )
        return StagePortion(query, operation.dry_run)
    if portion.rows and not operation.unsettled:
        moved = added(operation.moved, portion.moved)
        return _batch(portion), replace(operation, moved=moved, unsettled=portion.places)
    return ChangeBad(note)


def _batch(portion: Portion) -> Batch:
    ranges = {p.partition: ends for p, ends in portion.places.items()}
    (topic,) = {p.topic for p in portion.places}
    part = FileSlice(portion.file, ranges, whole=True, bytes=portion.bytes, topic=topic)
    return Batch(slices=(part,), rows=portion.rows, bytes=portion.bytes, work=REPLAY)


def apply_outcome(
    state: Landing, config: WriterConfig, asked: Asked, outcome: Outcome, now: float
) -> Step:
    """Apply the outcome of a step's request."""
    operation, request = asked
    match request, outcome, state.portion:
        case StagePortion(), PortionStaged(portion=portion), _:
            return _staged(timed(state, state.asked_at, now), operation, portion)
        case Batch(), Committed(), _:
            return state, ()  # its records leave the bad ones next
        case StagePortion(), Refused(reason=reason), _:
            return failed(state, operation, reason)
        case SettleBad(), Done(), _:
            return replace(state, operation=replace(operation, unsettled={}, fault="")), ()
        case ChangeBad(), Done(), Portion() as portion:
            done = replace(state, portion=None, operation=_after(operation, portion))
            files = (portion.file,) if portion.file else ()
            return timed(done, state.asked_at, now), (DeleteFiles(files),) if files else ()
        case _:
            return delayed(state, operation, config, getattr(outcome, "reason", ""), now)


def _staged(state: Landing, operation: Operation, portion: Portion) -> Step:
    if portion.after is None:
        return ended(state, _after(operation, portion))
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
