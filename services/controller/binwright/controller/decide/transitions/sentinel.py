"""Sentinel: at each tick, decide whether a plan is needed and which one."""

from dataclasses import replace

from binwright.controller.decide.events import Action, Tick
from binwright.controller.decide.group import Proposal, add_partitions, forget_gone
from binwright.controller.decide.plans.approval import (
    accept_proposal,
    displaced,
    outdated_reason,
    reevaluate,
    restore_plan,
    withdraw_proposal,
)
from binwright.controller.decide.plans.drain import last_slots, reader_plan
from binwright.controller.decide.plans.evaluation import Rejected
from binwright.controller.decide.plans.triggers import has_fresh_measurements, triggers
from binwright.controller.decide.states import Sentinel, Step
from binwright.controller.decide.transitions.common import assign_writers, run_timers
from binwright.controller.decide.transitions.manage import proceed, start_plan
from binwright.controller.decide.transitions.reassign import request_packing


def on_tick(state: Sentinel, event: Tick) -> Step:
    """Run the timers, then start or request a plan if one is needed; else assign the writers."""
    after, actions = _decide(state, event)
    if not isinstance(after, Sentinel):
        return after, actions
    group, more = assign_writers(after.group, event.now)
    return replace(after, group=group), (*actions, *more)


def _decide(state: Sentinel, event: Tick) -> Step:
    group, actions = run_timers(state.group, event.now)
    # Partitions that are gone and have no reader would trigger plans that change nothing.
    group = forget_gone(group)
    plan, restored_state = restore_plan(group, state.restored_state)
    if plan is not None:
        managing, more = start_plan(group, plan, event.now)  # needs no approval
        return proceed(managing, event.now, (*actions, *more))
    state = replace(state, group=group, restored_state=restored_state)
    if not has_fresh_measurements(group, state.since, event.now):
        return _without_measurements(state, event.now, actions)
    triggered_by, due = triggers(group), event.now - state.since > group.config.look_again_s
    if not due and (displaced(group) if restored_state is None else restored_state.displaced):
        return state, actions
    if group.proposal is not None and group.config.mode != "act":
        return _with_proposal(state, group.proposal, triggered_by, event.now, actions)
    # In mode `observe` a plan is only published, so `look_again_s` is often enough.
    if due or (triggered_by and group.config.mode != "observe"):
        after, more = request_packing(group, event.now, triggered_by)
        return after, (*actions, *more)
    return state, actions


def _without_measurements(state: Sentinel, now: float, actions: tuple[Action, ...]) -> Step:
    """Keep the last assignment, but assign partitions without a reader."""
    group = state.group
    if group.config.mode != "act":
        return state, actions
    if group.measured_at is None and now - state.since > group.config.stale_s:
        # Without any monitor the last plan is the only source of partitions.
        group = add_partitions(group, group.last_plan)
    if (plan := reader_plan(group)) is None:
        return replace(state, group=group), actions
    # Without measurements no consumer is retired.
    managing, more = start_plan(group, plan, now, group.living() | last_slots(group))
    return proceed(managing, now, (*actions, *more))


def _with_proposal(
    state: Sentinel,
    proposal: Proposal,
    triggered_by: tuple[str, ...],
    now: float,
    actions: tuple[Action, ...],
) -> Step:
    """Let a proposed plan wait, carry it out once approved, or replace it when it is outdated."""
    group, due = state.group, now - state.since > state.group.config.look_again_s
    outdated = outdated_reason(group, proposal.plan)
    if proposal.number is None or (outdated is None and not (due or proposal.approved)):
        return state, actions
    evaluated = (
        reevaluate(group, proposal.plan, triggered_by) if outdated is None else Rejected(outdated)
    )
    if isinstance(evaluated, Rejected):
        group, withdrawn = withdraw_proposal(group, evaluated.reason)
        after, more = request_packing(group, now, triggered_by)
        return after, (*actions, *withdrawn, *more)
    if not proposal.approved:
        return replace(state, since=now), actions
    group, accepted = accept_proposal(group)
    managing, more = start_plan(group, evaluated, now)
    return proceed(managing, now, (*actions, *accepted, *more))
