"""A back-fill: what Kafka has of before a table's beginning lands, from that beginning down.

A portion is all that a reader sees in a range of one partition which ends where the table begins.
So a table has no gap, wherever a back-fill ends, and its rows say where it begins: what it has is
left alone (†). The commit of a portion's rows has in its stamp that the table begins before them
now (†). A portion is read of the topic, and of the log, that the table has landed (†). Without the
rules marked † rows are lost or doubled (docs/design/protocol.md).
"""

from collections.abc import Collection
from dataclasses import replace

from binwright.consumer.decide.land import chain as chains
from binwright.consumer.decide.land.progress import Asked, Step, delayed, ended, failed, timed
from binwright.consumer.decide.land.states import (
    FIRST_SPAN,
    Committed,
    DeleteFiles,
    EarlierFound,
    EarlierPortion,
    EarlierStaged,
    FindEarlier,
    KafkaState,
    Landing,
    OperationRequest,
    Outcome,
    ReaderBusy,
    Refused,
    StageEarlier,
    TooLarge,
    TopicGone,
    WriterConfig,
)
from binwright.protocol.landing import OffsetRange
from binwright.protocol.model import TopicPartition
from binwright.protocol.orders import OperationOrder
from binwright.tables.operations import BACKFILL, BY_ENTRY, Operation, Places, gives_way, ordered
from binwright.tables.ports import Batch, PartitionOffsets

REPLACED = "another order about the table came before it was done: order it again for the rest"
NOT_DESCRIBED = "Kafka does not describe all of the table's partitions now"
NOT_BEGUN = "it is not decided yet where all of the table's partitions begin"
OF_KEYS = "the table has one row of each key: earlier changes could bring back what was deleted"
RECREATED = "a topic was deleted and created again, which its table has not followed yet"

LEAST_BYTES, AIM_BYTES, MOST_BYTES = 4 << 20, 16 << 20, 64 << 20
"""Of records in memory, in the files of one portion: below the first, how long it takes hardly
depends on them; the second is aimed at, and no more is staged than the third."""
FRESHNESS_SHARE, MOST_AIM_S = 0.1, 1.0
"""How long it may take to stage a portion: meanwhile nothing lands in the table."""
LEAST_S = 0.001
MOST_CHANGE = 4  # how many times as many offsets the next portion may have, or as few
BUSY_S = 0.5  # until a range is asked for again while the process reads one for another table
TRY_SHARE = 0.1  # of the time that is spent on partitions that do not get on
LONGEST_PAUSE_S = 10.0
"""Behind a portion, as long as it took at most: half of the time is left to what lands live."""


def begin(state: Landing, config: WriterConfig, order: OperationOrder) -> Step:
    """Begin: where the table begins is found first. A table of keys is not back-filled.

    Its deletions are noted for a while only: earlier changes could bring rows back (†).
    """
    if config.table.primary_key:
        return failed(state, ordered(order), OF_KEYS)
    begun = replace(state, portion=None, span=FIRST_SPAN, turn=None)
    return replace(begun, described=False, failing={}), ()


def at_first(config: WriterConfig) -> Operation:
    """Return the work on a new table whose settings say that it begins at Kafka's first records."""
    return Operation(
        id=config.writer,
        work=BACKFILL,
        by=BY_ENTRY,
        reason='begin = "earliest"',
        at_ms=config.made_ms,
        state="running",
    )


def go_on(state: Landing, order: OperationOrder) -> Step:
    """Go on, as the stamp has all of the order; or give way to another one."""
    operation = state.operation
    if operation is None or state.asked is not None or operation.id == order.id:
        return state, ()
    if not gives_way(operation, order):
        return state, ()
    slices = state.portion.slices if isinstance(state.portion, EarlierPortion) else ()
    state, effects = failed(replace(state, portion=None), operation, REPLACED)
    files = tuple(part.file for part in slices)
    return state, (*effects, DeleteFiles(files)) if files else effects


def waits(state: Landing) -> bool:
    """Whether it is not decided where a partition begins, or a cut of a log is to land (†).

    One may be among what was announced before the table was claimed, and is not read yet (†).
    """
    chain = state.chain
    if state.undecided or chain.next_announcement < state.undecided_until:
        return True
    return any(chains.new_cuts(chain, each) for each in chain.pending)


def next_step(
    state: Landing, operation: Operation, config: WriterConfig
) -> OperationRequest | tuple[Batch, Operation]:
    """Return what is done next; see `operations.next_step`."""
    portion = state.portion
    if isinstance(portion, EarlierPortion):
        size, rows = sum(part.bytes for part in portion.slices), portion.rows + portion.bad
        batch = Batch(slices=portion.slices, rows=rows, bytes=size, work=BACKFILL)
        return batch, _after(_got_on(state, portion.partition), operation, portion)
    if not operation.ranges:
        topics = frozenset(config.table.topics)
        return FindEarlier(topics, state.described, operation.since_ms, config.table.keep_s)
    ready = [p for p in operation.ranges if _retry_at(state, p) <= state.step_at]
    partitions, turn = sorted(ready or operation.ranges), state.turn
    partition = next((p for p in partitions if turn is None or p > turn), partitions[0])
    first, end = operation.ranges[partition]
    begin_at = max(first, end - state.span)
    most = MOST_BYTES if begin_at + 1 < end else None
    return StageEarlier(partition, OffsetRange(begin_at, end), most)


def apply_outcome(
    state: Landing, config: WriterConfig, asked: Asked, outcome: Outcome, now: float
) -> Step:
    """Apply the outcome of a step's request, or that a portion is in the table."""
    operation, request = asked
    match request, outcome:
        case FindEarlier(), EarlierFound():
            return _found(state, config, operation, outcome, now)
        case _, Refused(reason=reason) if not isinstance(request, Batch):
            return failed(state, operation, reason)
        case StageEarlier(), _:
            return _apply_staged(state, config, (operation, request), outcome, now)
        case Batch(), Committed():
            return _landed(state, operation, request, outcome, now)
        case Batch(), _:
            of = operation, _partition_of(request)
            return _stalled(state, config, of, getattr(outcome, "reason", ""), now)
        case _:
            return delayed(state, operation, config, getattr(outcome, "reason", ""), now)


def _fault(state: Landing, operation: Operation, kafka: KafkaState) -> str:
    """Return why what Kafka has cannot be back-filled now; empty if it can."""
    if kafka.unknown or any(_is_meant(operation, p) for p in kafka.leaderless):
        return NOT_DESCRIBED
    if any(_is_meant(operation, p) and p not in state.chain.committed for p in kafka.bounds):
        return NOT_BEGUN
    return _of_another_topic(state, kafka)


def _of_another_topic(state: Landing, kafka: KafkaState) -> str:
    """Return why what Kafka has is not of the topics that have landed (†); empty if it is."""
    known = state.chain.topic_ids
    same = (chains.same_topic(id_, known.get(topic)) for topic, id_ in kafka.topic_ids.items())
    return "" if all(same) else RECREATED


def _is_meant(operation: Operation, partition: TopicPartition) -> bool:
    return partition in operation.offsets or not operation.offsets


def _found(
    state: Landing, config: WriterConfig, operation: Operation, found: EarlierFound, now: float
) -> Step:
    """Begin with what there is, once Kafka describes it and the table was asked."""
    if fault := _fault(state, operation, found.kafka):
        return delayed(replace(state, described=False), operation, config, fault, now)
    if misnamed := _misnamed(state, operation, found):
        return failed(state, operation, misnamed)
    if found.lowest is None:
        return replace(state, described=True), ()
    state = timed(state, state.asked_at, now)
    ranges = earlier(operation, state.chain.committed, found)
    bounds = found.kafka.bounds  # what Kafka has no more of what was given up never lands
    starts = {p: bounds[p][0] for p in operation.given_up if p in bounds}
    given_up = {p: (max(at, starts.get(p, at)), e) for p, (at, e) in operation.given_up.items()}
    given_up = {p: ends for p, ends in given_up.items() if ends[0] < ends[1]}
    known = replace(operation.with_ranges(ranges), given_up=given_up, fault="")
    if operation.dry_run or not ranges:
        return ended(state, replace(known, ranges={}))
    return replace(state, operation=known), ()


def _misnamed(state: Landing, operation: Operation, found: EarlierFound) -> str:
    """Return which of the offsets that were ordered cannot be meant; empty if none is."""
    committed, lowest = state.chain.committed, found.lowest
    for p, offset in sorted(operation.offsets.items()):
        if p not in committed:
            topics = ", ".join(sorted({q.topic for q in committed}))
            return f"the table has no partition {p}: it has partitions of {topics}"
        begins = min(committed[p], (lowest or {}).get(p, committed[p]))
        if offset > begins:
            return f"the table has {p} from offset {begins} on: {offset} is not before that"
    return ""


def earlier(operation: Operation, committed: PartitionOffsets, found: EarlierFound) -> Places:
    """Return what is back-filled: partition -> (first, where the table begins).

    A log that ends before that was cut: its offsets may land again.
    """
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    lowest = found.lowest or {}
    for p, (start, end) in sorted(found.kafka.bounds.items()):
        if p in committed and _is_meant(operation, p):
            since = start if found.since is None else found.since.get(p, end)
            first = max(start, operation.offsets.get(p, start), since)
            begins = min(committed[p], lowest.get(p, committed[p]))
            if first < begins <= end:
                ranges[p] = first, begins
    return ranges


def _apply_staged(
    state: Landing,
    config: WriterConfig,
    asked: tuple[Operation, StageEarlier],
    outcome: Outcome,
    now: float,
) -> Step:
    """Apply what became of a range that was to be staged."""
    operation, request = asked
    if isinstance(outcome, ReaderBusy):
        return replace(state, step_at=now + BUSY_S), ()
    state = replace(state, turn=request.partition)
    match outcome:
        case EarlierStaged():
            return _staged(state, config, asked, outcome, now)
        case TooLarge():
            span = max((request.range.next - request.range.first) // MOST_CHANGE, 1)
            return replace(state, span=span), ()
        case TopicGone():
            gone = {p for p in operation.ranges if p.topic == request.partition.topic}
            return _given_up(state, operation, gone)
        case _:
            of, reason = (operation, request.partition), getattr(outcome, "reason", "")
            return _stalled(state, config, of, reason, now)


def _staged(
    state: Landing,
    config: WriterConfig,
    asked: tuple[Operation, StageEarlier],
    outcome: EarlierStaged,
    now: float,
) -> Step:
    """Keep a portion until it is in the table; without rows it is done."""
    (operation, request), portion = asked, outcome.portion
    p, wanted = request.partition, request.range
    files = tuple(part.file for part in portion.slices)
    deleted = (DeleteFiles(files),) if files else ()
    known = p in outcome.kafka.bounds
    if fault := _of_another_topic(state, outcome.kafka) if known else NOT_DESCRIBED:
        state, effects = _stalled(state, config, (operation, p), fault, now)
        return state, (*effects, *deleted)
    if outcome.kafka.bounds[p][1] < wanted.next:  # the log was cut, and what is behind lands (†)
        state, effects = _given_up(state, operation, {p})
        return state, (*effects, *deleted)
    state = timed(_with_span(state, config, request, portion, now), state.asked_at, now)
    first, end = operation.ranges[p]
    if portion.first > wanted.first:  # Kafka has deleted what is before
        left = operation.with_ranges({**operation.ranges, p: (portion.first, end)})
        operation = replace(left, gone=operation.gone + portion.first - first)
    if portion.slices:
        return replace(state, operation=operation, portion=portion), ()
    state = _got_on(state, p)
    after = _after(state, operation, portion)  # the next stamp has that, or it is read once more
    return (replace(state, operation=after), ()) if after.ranges else ended(state, after)


def _with_span(
    state: Landing,
    config: WriterConfig,
    request: StageEarlier,
    portion: EarlierPortion,
    now: float,
) -> Landing:
    """Return the state with as many offsets for the next portion as it may have in time."""
    offsets, took_s = request.range.next - portion.first, now - state.asked_at
    aim_s = min(FRESHNESS_SHARE * config.freshness_s, MOST_AIM_S)
    size = max(portion.bytes, 1)
    in_time = max(aim_s / max(took_s, LEAST_S), LEAST_BYTES / size)
    change = max(min(in_time, AIM_BYTES / size, MOST_CHANGE), 1 / MOST_CHANGE)
    span = max(round(offsets * change), 1)
    if change >= 1:  # there may have been no more of them
        span = max(span, state.span)
    return replace(state, span=span)


def _landed(
    state: Landing, operation: Operation, batch: Batch, outcome: Committed, now: float
) -> Step:
    pause_s = min(now - state.asked_at, LONGEST_PAUSE_S)
    done = replace(
        _got_on(state, _partition_of(batch)),
        portion=None,
        step_at=now + pause_s,
        rows=state.rows + batch.rows,
        bad=state.bad + outcome.bad,
        skipped=state.skipped + outcome.skipped,
    )
    done, effects = (done, ()) if operation.ranges else ended(done, operation)
    return done, (*effects, DeleteFiles(batch.files))


def _partition_of(batch: Batch) -> TopicPartition:
    (number,) = batch.slices[0].ranges
    return TopicPartition(batch.slices[0].topic, number)


def _retry_at(state: Landing, partition: TopicPartition) -> float:
    return state.failing.get(partition, ("", 0.0))[1]


def _stalled(
    state: Landing,
    config: WriterConfig,
    of: tuple[Operation, TopicPartition],
    reason: str,
    now: float,
) -> Step:
    """Leave a partition alone for a while; the others go on."""
    operation, partition = of
    pause_s = max(config.refused_s, (now - state.asked_at) / TRY_SHARE)
    failing = {**state.failing, partition: (reason, now + pause_s)}
    state = replace(state, failing={p: e for p, e in failing.items() if p in operation.ranges})
    state, effects = delayed(state, operation, config, _fault_of(state), now)
    step_at = min(_retry_at(state, p) for p in operation.ranges)
    return replace(state, step_at=max(step_at, now)), effects


def _got_on(state: Landing, partition: TopicPartition) -> Landing:
    return replace(state, failing={p: e for p, e in state.failing.items() if p != partition})


def _fault_of(state: Landing) -> str:
    """Return why some partition does not get on; empty if all do."""
    return state.failing[min(state.failing)][0] if state.failing else ""


def _given_up(state: Landing, operation: Operation, partitions: Collection[TopicPartition]) -> Step:
    """Go on without what is left of these partitions."""
    left = operation.without_ranges(partitions)
    return (replace(state, operation=left), ()) if left.ranges else ended(state, left)


def _after(state: Landing, operation: Operation, portion: EarlierPortion) -> Operation:
    """Return the work once a portion is in the table: that begins before it now."""
    return replace(
        operation.with_ranges(_before(operation.ranges, portion)),
        given_up=_before(operation.given_up, portion),
        rows=operation.rows + portion.rows,
        bad=operation.bad + portion.bad,
        skipped=operation.skipped + portion.skipped,
        fault=_fault_of(state),
    )


def _before(ranges: Places, portion: EarlierPortion) -> Places:
    """Return what is left of these ranges before a portion."""
    p, others = portion.partition, {q: e for q, e in ranges.items() if q != portion.partition}
    if p in ranges and ranges[p][0] < portion.first:
        return {**others, p: (ranges[p][0], portion.first)}
    return others


def without(state: Landing, partitions: Collection[TopicPartition]) -> Landing:
    """Back-fill no more of these partitions: their logs are cut, or of a topic made anew (†).

    What they have at the same offsets now lands by its announcements.
    """
    operation, portion = state.operation, state.portion
    if operation is None or not {*operation.ranges, *operation.given_up}.intersection(partitions):
        return state
    if isinstance(portion, EarlierPortion) and portion.partition in partitions:
        portion = None
    return replace(state, operation=operation.without_ranges(partitions), portion=portion)
