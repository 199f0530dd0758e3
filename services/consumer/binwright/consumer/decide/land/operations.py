"""Work on a table that a person orders, by its writer and in turns with landing.

Each kind of work has a module of its own, and an entry of `WORKS`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from binwright.consumer.decide.land import backfills, erasures, replays
from binwright.consumer.decide.land.progress import Asked, Step, facts, timed
from binwright.consumer.decide.land.states import (
    Committed,
    DeleteFiles,
    Landing,
    OperationRequest,
    Outcome,
    Refused,
    Unreadable,
    WriterConfig,
)
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.orders import OperationOrder
from binwright.tables.operations import BACKFILL, ERASE, REPLAY, Operation, ordered
from binwright.tables.ports import Batch

OPERATION_STARTED = LogEvent.info(
    "operation.started", "A table's writer begins a piece of work that a person has ordered."
)

PATIENCE_S = 10.0  # after which a step is taken though rows may land later for it


class Work(Protocol):
    """What a kind of work decides."""

    def begin(self, state: Landing, config: WriterConfig, order: OperationOrder, /) -> Step:
        """Begin what the state has as ordered, or fail; without effects it has begun."""

    def go_on(self, state: Landing, order: OperationOrder, /) -> Step:
        """Apply the newest order about the table while the work is not ended; again and again."""

    def waits(self, state: Landing, /) -> bool:
        """Whether nothing can be done before something has landed, or is known."""

    def next_step(
        self, state: Landing, operation: Operation, config: WriterConfig, /
    ) -> OperationRequest | tuple[Batch, Operation]:
        """Return what is done next: a request, or a batch to append with this in its stamp."""

    def apply_outcome(
        self, state: Landing, config: WriterConfig, asked: Asked, outcome: Outcome, now: float, /
    ) -> Step:
        """Apply the outcome of a step's request, or that a batch is in the table."""


WORKS: Mapping[str, Work] = {REPLAY: replays, ERASE: erasures, BACKFILL: backfills}


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
    if read_at < state.resolved_at:
        return state, ()
    if known is not None and is_running(known):
        return WORKS[known.work].go_on(state, order)
    if known is not None and known.id == order.id:
        return state, ()
    new = ordered(order)
    begun = replace(state, operation=new, stamp_due=True)
    begun, effects = WORKS[new.work].begin(begun, config, order)
    if known is not None and begun.operation is not None:
        begun = replace(begun, operation=known.followed_by(begun.operation))
    return begun, effects or (Log(OPERATION_STARTED, facts(new)),)


def is_running(operation: Operation | None) -> bool:
    """Whether there is something to do; a later version's work is not known here."""
    return operation is not None and operation.state == "running" and operation.work in WORKS


def _has_step(state: Landing) -> bool:
    known = state.operation
    return known is not None and is_running(known) and not WORKS[known.work].waits(state)


def may_begin(state: Landing, commit_at: float | None, now: float) -> bool:
    """Whether a step may begin: rows that wait land in time all the same, or it has waited long.

    Args:
        state: Of the writer; no commit is due.
        commit_at: When the next one is due; None: no rows wait.
        now: Seconds, monotonic.
    """
    if not _has_step(state) or now < state.step_at:
        return False
    in_time = commit_at is None or now + state.step_s <= commit_at
    return in_time or now >= state.step_at + PATIENCE_S


def due_at(state: Landing, commit_at: float | None, now: float) -> float | None:
    """Return when the next step may begin; None: there is none to take."""
    if not _has_step(state):
        return None
    if now < state.step_at or may_begin(state, commit_at, now):
        return max(state.step_at, now)
    return state.step_at + PATIENCE_S


def next_step(
    state: Landing, config: WriterConfig, now: float
) -> tuple[Landing, OperationRequest | tuple[Batch, Operation]]:
    """Return what is done next: a request, or a batch to append with this in its stamp."""
    operation = state.operation
    if operation is None:
        raise ValueError("there is no operation")
    step = WORKS[operation.work].next_step(state, operation, config)
    if isinstance(step, tuple):
        return state, step
    return replace(state, asked=step, asked_at=now), step


def apply_outcome(state: Landing, config: WriterConfig, outcome: Outcome, now: float) -> Step:
    """Apply the outcome of a step's request."""
    operation, asked = state.operation, state.asked
    if operation is None or asked is None:
        raise ValueError("no step was requested")
    state = replace(state, asked=None)
    return WORKS[operation.work].apply_outcome(state, config, (operation, asked), outcome, now)


def apply_verdict(
    state: Landing, config: WriterConfig, outcome: Committed | Unreadable | Refused, now: float
) -> Step:
    """Apply that a portion is in the table, or that the table does not take it.

    Then, or if a file of it is lost, it is staged again later, when a person may have mended
    something.
    """
    flight, operation = state.flight, state.operation
    if flight is None or operation is None or flight.stamp.operation is None:
        raise ValueError("no portion is in flight")
    state = replace(state, flight=None)
    if isinstance(outcome, Committed):
        operation = flight.stamp.operation
        state = replace(
            state, operation=operation, since_full=1, full_at=now, commits=state.commits + 1
        )
        state = timed(state, flight.sent_at, now)
        asked = operation, flight.batch
        return WORKS[operation.work].apply_outcome(state, config, asked, outcome, now)
    state, asked = replace(state, portion=None), (operation, flight.batch)
    state, effects = WORKS[operation.work].apply_outcome(state, config, asked, outcome, now)
    return state, (*effects, DeleteFiles(flight.batch.files))
