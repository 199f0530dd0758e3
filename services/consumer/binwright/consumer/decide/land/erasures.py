"""An erasure: rows that meet a condition are deleted, and bad records.

It begins once all has landed that Kafka had when it was ordered, and all that was staged (†). Then
the places of the rows are noted, in a table of their own (†): an audit would call them lost. Then
they are deleted, by these places. Both can be repeated, so whoever claims the table meanwhile does
both again; how many they were follows from the notes. No stamp has the condition, which may name a
person: a writer takes it from the order. Without the rules marked † rows are lost, or come back
(docs/design/protocol.md).
"""

from dataclasses import replace

from binwright.consumer.decide.land import chain as chains
from binwright.consumer.decide.land.progress import Asked, Step, delayed, ended, failed, timed
from binwright.consumer.decide.land.states import (
    ErasedNoted,
    EraseNoted,
    Erasure,
    KafkaState,
    Landing,
    NoteErased,
    OperationRequest,
    Outcome,
    Refused,
    RowsErased,
    WriterConfig,
)
from binwright.protocol.orders import OperationOrder
from binwright.tables.conditions import parse_condition
from binwright.tables.operations import Operation, gives_way, ordered
from binwright.tables.ports import ErasedQuery

NOTHING_NAMED = "no condition says what is to be erased"
UNREAD = (
    "what is to be erased is no condition for this version: does `binwright table erase` of the "
    "consumers' version take it?"
)
REPLACED = (
    "another order about the table came before it was done, and this one is not known any more, or "
    "its steps failed: order it again"
)


def begin(state: Landing, _config: WriterConfig, order: OperationOrder) -> Step:
    """Begin what is ordered; Kafka is asked at once where its logs end."""
    return _begun(state, ordered(order), order)


def go_on(state: Landing, order: OperationOrder) -> Step:
    """Take what is to be erased from the order, under a claim that did not begin it; or give way.

    No step is under way.
    """
    operation = state.operation
    if operation is None or state.asked is not None:
        return state, ()
    if operation.id == order.id:
        return (state, ()) if state.erasure else _begun(state, operation, order)
    if state.erasure is None or gives_way(operation, order):
        return failed(replace(state, erasure=None), operation, REPLACED)
    return state, ()


def _begun(state: Landing, operation: Operation, order: OperationOrder) -> Step:
    if not (order.where or order.bad_where):
        return failed(state, operation, NOTHING_NAMED)
    try:
        where = parse_condition(order.where) if order.where else None
        bad_where = parse_condition(order.bad_where) if order.bad_where else None
    except ValueError:
        return failed(state, operation, UNREAD)
    # Other columns of bad records may be called as some of the table, and mean something else.
    of_both = where if where is not None and where.is_of_records else None
    erasure = Erasure(where, bad_where or of_both)
    return replace(state, erasure=erasure, checked_at=float("-inf")), ()


def with_ends(state: Landing, facts: KafkaState) -> Landing:
    """Apply where the logs ended, when that is first known since the order, of all topics.

    A log that is empty had what the table has not of it: that may be staged (†). Later, a log that
    was cut has no more of what it had, and a topic that is gone has nothing.
    """
    erasure, committed = state.erasure, state.chain.committed
    if erasure is None or (erasure.begun is None and (facts.leaderless or facts.unknown)):
        return state
    if erasure.begun is None:
        if facts.landing_end is None:
            return state
        begun = {
            p: facts.readable.get(p, end)
            for p, (first, end) in facts.bounds.items()
            if first < end or committed.get(p, end) < end
        }
        erasure = replace(erasure, announced=facts.landing_end)
    else:
        begun = {
            p: min(end, facts.bounds[p][1]) if p in facts.bounds else end
            for p, end in erasure.begun.items()
            if p in facts.bounds or p in facts.leaderless or p.topic in facts.unknown
        }
        if facts.landing_end is not None:  # it may have been cut, or made anew
            announced = min(erasure.announced, facts.landing_end)
            erasure = replace(erasure, announced=announced)
    return replace(state, erasure=replace(erasure, begun=begun))


def waits(state: Landing) -> bool:
    """Whether something has not landed that Kafka had (†), or that is not known."""
    erasure = state.erasure
    chain = state.chain
    if erasure is None or erasure.begun is None or chain.next_announcement < erasure.announced:
        return True
    if any(chain.committed.get(p, 0) < end for p, end in erasure.begun.items()):
        return True
    # What was staged lands also where its log has it no more, or is gone.
    return any(offset < erasure.announced for offset in chains.joining(chain))


def next_step(state: Landing, operation: Operation, config: WriterConfig) -> OperationRequest:
    """Return what is done next; see `operations.next_step`."""
    erasure = state.erasure
    if erasure is None:
        raise ValueError("what is to be erased is not known")
    if erasure.noted is not None:
        return EraseNoted(operation.id, operation.note)
    query = ErasedQuery(
        operation=operation.id,
        where=erasure.where,
        bad_where=None if config.table.columns is None else erasure.bad_where,
        topic_ids=state.chain.topic_ids,
        below=state.chain.committed,
        ordered_ms=operation.at_ms,
    )
    return NoteErased(query, operation.note, operation.dry_run)


def apply_outcome(
    state: Landing, config: WriterConfig, asked: Asked, outcome: Outcome, now: float
) -> Step:
    """Apply the outcome of a step's request."""
    operation, _ = asked
    state = timed(state, state.asked_at, now)
    retention_ms = round(config.retention_s * 1000)
    match outcome:
        case ErasedNoted(counts=counts, at_ms=at_ms) if state.erasure is not None:
            known = replace(
                operation,
                erased=counts.rows,
                bad_erased=counts.bad,
                bad_left=counts.left,
                fault="",
            )
            if operation.dry_run or not (counts.rows or counts.bad):
                return ended(replace(state, erasure=None), known)
            noted = replace(state.erasure, noted=counts)
            # Rows may be gone though it fails: their files must go, too.
            known = known.deletes(at_ms, at_ms + retention_ms)
            return replace(state, operation=known, erasure=noted), ()
        case RowsErased(at_ms=at_ms):
            until_ms = at_ms + retention_ms
            done = replace(operation, ended_ms=at_ms, files_until_ms=until_ms)
            return ended(replace(state, erasure=None), done)
        case Refused(reason=reason):
            return failed(replace(state, erasure=None), operation, reason)
        case _:
            return delayed(state, operation, config, getattr(outcome, "reason", ""), now)
