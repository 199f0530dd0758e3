"""Synchronize: read the history, claim, and wait for every consumer's report."""

from dataclasses import replace

from binwright.controller.decide.applying import apply_record, declare_dead, later_claim, was_paused
from binwright.controller.decide.events import Action, Reconcile, RecordRead, StepDown, Tick
from binwright.controller.decide.plans.approval import inherit_approved
from binwright.controller.decide.states import Sentinel, Step, SteppedDown, Synchronize
from binwright.controller.decide.synchronize import (
    adopt_reports,
    awaiting_reply,
    begin_term,
    collect_replies,
)
from binwright.protocol.messages import Claim


def on_record(state: Synchronize, event: RecordRead) -> Step:
    """Apply the record; the own claim begins the term, the last awaited reply ends the state."""
    if state.group.term is None:
        if isinstance(event.message, Claim) and event.message.controller == state.group.controller:
            group, actions = begin_term(state.group, event.offset)
            return _conclude(replace(state, group=group, since=event.now), event.now, actions)
        group, _ = apply_record(state.group, event)  # history: sends nothing
        return replace(state, group=group), ()
    if (other := later_claim(state.group, event)) is not None:
        return SteppedDown(state.group, event.now), (StepDown(other),)
    group, actions = apply_record(state.group, event)
    replies = collect_replies(group, state.replies, event.message)
    return _conclude(replace(state, group=group, replies=replies), event.now, actions)


def _conclude(state: Synchronize, now: float, actions: tuple[Action, ...]) -> Step:
    if state.group.term is None or awaiting_reply(state.group):
        return state, actions
    group, more = adopt_reports(state.group, state.replies)
    group, running, accepted = inherit_approved(group, group.living())
    return Sentinel(group, now), (*actions, Reconcile(running), *more, *accepted)


def on_tick(state: Synchronize, event: Tick) -> Step:
    """Declare dead the consumers that did not reply in time."""
    if was_paused(state.group, event.now):
        state = replace(state, since=event.now)  # replies may be in partition 0, not read yet
    group, actions = declare_dead(state.group, event.now)
    if group.term is not None and event.now - state.since > group.config.consumer_timeout_s:
        group, more = declare_dead(group, event.now, awaiting_reply(group))
        actions = (*actions, *more)
    return replace(state, group=group), actions
