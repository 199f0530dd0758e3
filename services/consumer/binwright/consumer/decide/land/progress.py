"""What becomes of a piece of work on a table, whichever it is: it ends, fails, or is delayed."""

from collections.abc import Mapping
from dataclasses import replace

from binwright.consumer.decide.land.states import Effect, Landing, OperationRequest, WriterConfig
from binwright.protocol.log_events import Log, LogEvent
from binwright.tables.operations import MOST_WORDS, Operation
from binwright.tables.ports import Batch

OPERATION_ENDED = LogEvent.info(
    "operation.ended", "A piece of work on a table, as a person has ordered, is done."
)
OPERATION_FAILED = LogEvent.error(
    "operation.failed", "A piece of work on a table cannot be done; the table lands as before."
)
OPERATION_DELAYED = LogEvent.warning(
    "operation.delayed", "A piece of work on a table does not go on; it is tried again every 10 s."
)

NEWEST_WEIGHT = 0.3  # of the newest step's duration in their mean

Step = tuple[Landing, tuple[Effect, ...]]
Asked = tuple[Operation, OperationRequest | Batch]
"""The work, and what was asked for it, or the batch that was to land."""


def ended(state: Landing, operation: Operation) -> Step:
    """End it; a stamp records that."""
    done = replace(operation, state="done", fault="")
    log = Log(OPERATION_ENDED, {**facts(done), **done.outcomes})
    return replace(state, operation=done, stamp_due=True), (log,)


def failed(state: Landing, operation: Operation, reason: str) -> Step:
    """End it; a stamp records that, so that no later writer begins it again."""
    lost = replace(operation, state="failed", fault=reason[:MOST_WORDS], after=None)
    log = Log(OPERATION_FAILED, {**facts(operation), "fault": reason})
    return replace(state, operation=lost, stamp_due=True), (log,)


def delayed(
    state: Landing, operation: Operation, config: WriterConfig, reason: str, now: float
) -> Step:
    """Try the same step again later."""
    fault = reason[:MOST_WORDS]
    later = replace(operation, fault=fault)
    state = replace(state, operation=later, step_at=now + config.refused_s)
    if fault == operation.fault:
        return state, ()
    return state, (Log(OPERATION_DELAYED, {**facts(operation), "fault": fault}),)


def timed(state: Landing, began_at: float, now: float) -> Landing:
    """Return the state after a step that has ended now."""
    step_s = state.step_s + NEWEST_WEIGHT * (now - began_at - state.step_s)
    return replace(state, step_s=step_s, step_at=now)


def facts(operation: Operation) -> Mapping[str, object]:
    """Return what was ordered, by whom and why, for logs."""
    own = {"operation": operation.id, "work": operation.work, "by": operation.by}
    return {**own, "reason": operation.reason, "dry_run": operation.dry_run}
