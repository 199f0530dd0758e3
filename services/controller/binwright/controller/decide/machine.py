"""The controller's state machine: `transition(state, event) -> (state, actions)`.

Pure: the same records and the same measurements give the same commands. `TRANSITIONS` lists all.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from binwright.controller.decide import synchronize
from binwright.controller.decide.apply import (
    apply_measurement,
    apply_record,
    correct,
    drop_silent_monitors,
    inconsistency,
    later_claim,
)
from binwright.controller.decide.approval import (
    accept_proposal,
    displaced,
    outdated_reason,
    reevaluate,
    restore_plan,
    retire_drained,
    withdraw_proposal,
)
from binwright.controller.decide.carry_out import give_up, reject, start_plan
from binwright.controller.decide.catch_up import publish_backlogs
from binwright.controller.decide.deaths import declare_dead, process_ended
from binwright.controller.decide.drain import (
    drain_plan,
    drained,
    draining_slots,
    keep_alive,
    last_slots,
    reader_plan,
)
from binwright.controller.decide.events import (
    Action,
    Disrupted,
    Event,
    Packed,
    ProcessEnded,
    Publish,
    Reconcile,
    StepDown,
    Tick,
    Update,
)
from binwright.controller.decide.freeze import without_moves
from binwright.controller.decide.limits import measure_limits
from binwright.controller.decide.moves import (
    add_misplaced,
    advance,
    goal_for,
    goal_reached,
    move_writers,
    resend,
)
from binwright.controller.decide.orders import publish_held, refresh_controls
from binwright.controller.decide.replacements import (
    begin_replacements,
    on_disrupted,
    permit_renewals,
    plan_with_replacements,
)
from binwright.controller.decide.splits import refresh_splits
from binwright.controller.decide.states import (
    Leading,
    Manage,
    Reassign,
    Sentinel,
    State,
    Step,
    SteppedDown,
    Synchronize,
)
from binwright.group.budgets import affords
from binwright.group.config import GroupConfig
from binwright.group.fold import Measured, RecordRead
from binwright.group.group import Group, add_partitions, forget_gone
from binwright.group.people import Proposal
from binwright.group.plans import (
    Rejected,
    has_fresh_measurements,
    packing_request,
    proposed_message,
    triggers,
)
from binwright.protocol.errors import IllegalTransition
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.metadata import Claim, Report, Started

ASSIGNMENT_INCONSISTENT = LogEvent.info(
    "assignment.inconsistent",
    "A report contradicts what the controller believes; it claims a new term and asks all "
    "consumers.",
)
PACKING_OVERDUE = LogEvent.info(
    "packing.overdue",
    "The packing did not finish within `controller.plan_timeout_s`; the plan is dropped.",
)
PLAN_OVERDUE = LogEvent.info(
    "plan.overdue",
    "A plan was not carried out within `controller.plan_timeout_s`; a new one is made.",
)


def begin(config: GroupConfig, controller: str, now: float) -> Step:
    """Begin a leadership: publish a claim, read partition 0 from its beginning, then act.

    Args:
        config: The group's settings.
        controller: The id of this controller's claims; unique for each leadership.
        now: Seconds, monotonic.
    """
    group = Group(config=config, controller=controller, ticked_at=now)
    return Synchronize(group, now), (_claim(group),)


def _claim(group: Group) -> Publish:
    limits = group.config.limits
    claim = Claim(
        controller=group.controller,
        limit=limits.default,
        slot_limits=tuple(sorted(limits.named.items())),
        measured=group.config.start_limits is not None,
    )
    return Publish(claim)


# --- in several states --------------------------------------------------------------------------


def _on_measured(state: State, event: Measured) -> Step:
    """Store the rates; what follows is decided at the next tick, when all topics have arrived."""
    group, logs = apply_measurement(state.group, event)
    return replace(state, group=group), logs


def _on_process_ended(state: State, event: ProcessEnded) -> Step:
    """Declare the process dead; effective once read back, as any other death."""
    group, actions = process_ended(state.group, event)
    return replace(state, group=group), actions


def _ignore(state: State, _event: Event) -> Step:
    """Do nothing."""
    return state, ()


def _run_timers(group: Group, now: float) -> Update:
    """Do what is due: deaths, commands to repeat, draining consumers, silent monitors, splits."""
    group, deaths = declare_dead(group, now)
    group, commands = resend(group, now)
    group, logs = drop_silent_monitors(group, now)
    group, splits = refresh_splits(group, now)
    group, needs = publish_backlogs(group)
    group, held = publish_held(group)
    return group, (*deaths, *commands, *keep_alive(group), *logs, *splits, *needs, *held)


def _assign_writers(group: Group, now: float) -> Update:
    """Give every table its writer; in mode `observe` no command is sent."""
    return (group, ()) if group.settings.mode == "observe" else move_writers(group, now)


def _on_record(state: Leading, event: RecordRead) -> Step:
    """Apply the record and send what it makes possible; a contradiction leads to Synchronize."""
    if (other := later_claim(state.group, event)) is not None:
        return SteppedDown(state.group, event.now), (StepDown(other),)
    group, actions = apply_record(state.group, event)
    if reason := inconsistency(group, event.message):
        log = Log(ASSIGNMENT_INCONSISTENT, {"reason": reason})
        return Synchronize(replace(group, term=None), event.now), (*actions, log, _claim(group))
    group, more = correct(group, event.message, event.now)
    actions, state = (*actions, *more), replace(state, group=group)
    if isinstance(event.message, Started) and isinstance(state, Manage):
        state = replace(state, goal=add_misplaced(group, state.goal, event.message.offsets))
    if isinstance(event.message, Report) and not actions:
        return state, ()  # most reports hold nothing new
    return _proceed(state, event.now, actions)


# --- Sentinel: is a plan needed, and which one? -------------------------------------------------


def _on_tick_in_sentinel(state: Sentinel, event: Tick) -> Step:
    """Run the timers, then start or request a plan if one is needed; else assign the writers."""
    after, actions = _decide(state, event)
    if not isinstance(after, Sentinel):
        return after, actions
    group, more = _assign_writers(after.group, event.now)
    return replace(after, group=group), (*actions, *more)


def _decide(state: Sentinel, event: Tick) -> Step:
    group, actions = _run_timers(state.group, event.now)
    group, measured = measure_limits(group)
    actions = (*actions, *measured)
    # Partitions that are gone and have no reader would trigger plans that change nothing.
    group = forget_gone(group)
    plan, restored_state = restore_plan(group, state.restored_state)
    if plan is not None:
        managing, more = start_plan(group, plan, event.now)  # needs no approval
        return _proceed(managing, event.now, (*actions, *more))
    group, retired = retire_drained(group)
    group, permitted = permit_renewals(group)
    actions = (*actions, *retired, *permitted)
    fresh = has_fresh_measurements(group, state.since, event.now)
    triggered_by = triggers(group) if fresh else ()
    due = event.now - state.since > group.replan_interval_s
    # In mode `observe` a plan is only published, so `replan_interval_s` is often enough, as it is
    # for what waits for the budget of an hour.
    waits = group.settings.mode == "observe" or (group.people.over_budget and not group.unread())
    packs = triggered_by and (due or not waits)
    # A plan that is necessary replaces consumers, too: a replacement that never starts delays none.
    first = packs and group.settings.mode == "act"
    if not first and (replacing := _replace(group, event.now, actions)) is not None:
        return replacing
    state = replace(state, group=group, restored_state=restored_state)
    if not fresh:
        return _without_measurements(state, event.now, actions)
    if not due and (displaced(group) if restored_state is None else restored_state.displaced):
        return state, actions
    if group.people.proposal is not None and group.settings.mode != "act":
        return _with_proposal(state, group.people.proposal, triggered_by, event.now, actions)
    if (due and not group.people.controls.frozen) or packs:
        after, more = _request_packing(group, event.now, triggered_by)
        return after, (*actions, *more)
    return state, actions


def _replace(group: Group, now: float, actions: tuple[Action, ...] = ()) -> Step | None:
    """Begin to replace consumers before they end; None: none is to be replaced now."""
    group, plan, accepted = begin_replacements(group)
    if plan is None:
        return None
    managing, more = start_plan(group, plan, now)
    return _proceed(managing, now, (*actions, *accepted, *more))


def _without_measurements(state: Sentinel, now: float, actions: tuple[Action, ...]) -> Step:
    """Keep the last assignment, but assign partitions without a reader."""
    group = state.group
    if group.settings.mode != "act":
        return state, actions
    if group.load.measured_at is None and now - state.since > group.config.stale_s:
        # Without any monitor the last plan is the only source of partitions.
        group = add_partitions(group, group.people.last_plan)
    if (plan := reader_plan(group)) is None:
        return replace(state, group=group), actions
    # Without measurements no consumer is retired.
    kept_slots = (group.members.living() | last_slots(group)) - group.people.controls.rules.drained
    managing, more = start_plan(group, plan, now, kept_slots)
    return _proceed(managing, now, (*actions, *more))


def _with_proposal(
    state: Sentinel,
    proposal: Proposal,
    triggered_by: tuple[str, ...],
    now: float,
    actions: tuple[Action, ...],
) -> Step:
    """Let a proposed plan wait, carry it out once approved, or replace it when it is outdated."""
    group, due = state.group, now - state.since > state.group.replan_interval_s
    outdated = outdated_reason(group, proposal.plan)
    waits = group.people.controls.frozen or (proposal.approved and not affords(group, proposal))
    if proposal.number is None or (outdated is None and (waits or not (due or proposal.approved))):
        return state, actions
    evaluated = (
        reevaluate(group, proposal.plan, triggered_by) if outdated is None else Rejected(outdated)
    )
    if isinstance(evaluated, Rejected):
        group, withdrawn = withdraw_proposal(group, evaluated.reason)
        after, more = _request_packing(group, now, triggered_by)
        return after, (*actions, *withdrawn, *more)
    if not proposal.approved:
        return replace(state, since=now), actions
    group, accepted = accept_proposal(group)
    managing, more = start_plan(group, evaluated, now)
    return _proceed(managing, now, (*actions, *accepted, *more))


# --- Reassign: the packing runs -----------------------------------------------------------------


def _request_packing(group: Group, now: float, triggered_by: tuple[str, ...]) -> Step:
    return Reassign(group, now, triggered_by), (packing_request(group),)


def _on_packed(state: Reassign, event: Packed) -> Step:
    """Start, propose or reject the plan that the packing leads to."""
    result = plan_with_replacements(state.group, event.target, state.triggered_by)
    people = replace(state.group.people, over_budget=result.over_budget)
    group = replace(state.group, people=people)
    if isinstance(result, Rejected):
        return _replace(group, event.now) or reject(group, event.now, result.reason)
    if group.settings.mode != "act":
        proposal = Proposal(proposed_message(group, result))
        group = replace(group, people=replace(people, proposal=proposal))
        return Sentinel(group, event.now), (Publish(proposal.plan),)
    managing, actions = start_plan(group, result, event.now)
    return _proceed(managing, event.now, actions)


def _on_tick_in_reassign(state: Reassign, event: Tick) -> Step:
    """Run the timers; return to Sentinel when the packing takes too long."""
    group, actions = _run_timers(state.group, event.now)
    group, more = _assign_writers(group, event.now)
    actions = (*actions, *more)
    if event.now - state.since > group.settings.plan_timeout_s:
        log = Log(PACKING_OVERDUE, {"seconds": group.settings.plan_timeout_s})
        return Sentinel(group, event.now), (*actions, log)
    return replace(state, group=group), actions


# --- Group Management: a plan is carried out ----------------------------------------------------


def _proceed(state: Leading, now: float, actions: tuple[Action, ...]) -> Step:
    """Send what can be sent now: in Group Management every record may let a partition move on."""
    if not isinstance(state, Manage):
        if (plan := drain_plan(state.group)) is None:
            group, more = _assign_writers(state.group, now)
            return replace(state, group=group), (*actions, *more)
        # Without delay: a draining consumer waits for its partitions to move, but not forever.
        state, more = start_plan(state.group, plan, now)
        actions = (*actions, *more)
    if state.group.people.controls.frozen and not state.frozen:
        state = without_moves(state)
    target = drained(state.group, state.goal.target)
    kept_slots = state.kept_slots | draining_slots(state.group)
    goal = state.goal if target is state.goal.target else goal_for(state.group, target)
    group, goal, moves = advance(state.group, goal, now)
    group, roles = move_writers(group, now, kept_slots | goal.slots)
    actions = (*actions, *moves, *roles)
    if goal_reached(group, goal):
        # Partitions that have gone meanwhile were never started: no slot runs for them.
        running = kept_slots.union(slot for p, slot in target.items() if not group.load.is_gone(p))
        # A freeze leaves tables their writers, where they are.
        if group.people.controls.frozen or group.members.writers.slots <= running:
            # Empty consumers are retired only now: until here they owned something.
            return Sentinel(group, now), (*actions, Reconcile(running | group.members.owning()))
    return replace(state, group=group, goal=goal, kept_slots=kept_slots), actions


def _on_tick_in_manage(state: Manage, event: Tick) -> Step:
    """Run the timers and go on with the plan; return to Sentinel when it takes too long."""
    group, actions = _run_timers(state.group, event.now)
    if event.now - state.since > group.settings.plan_timeout_s:
        log = Log(PLAN_OVERDUE, {"seconds": group.settings.plan_timeout_s})
        after, more = give_up(replace(state, group=group), event.now, log)
        return after, (*actions, *more)
    target = {p: slot for p, slot in state.goal.target.items() if not group.load.is_gone(p)}
    return _proceed(replace(state, group=group, goal=goal_for(group, target)), event.now, actions)


# --- the table ----------------------------------------------------------------------------------


# (state, event) -> its function, and the other states that it may lead to. The diagram in
# docs/design/architecture.md is drawn from this table; a test compares the two.
TRANSITIONS: Mapping[tuple[type, type], tuple[Callable[..., Step], tuple[type, ...]]] = {
    (Synchronize, RecordRead): (synchronize.on_record, (Sentinel, SteppedDown)),
    (Synchronize, Measured): (_on_measured, ()),
    (Synchronize, Packed): (_ignore, ()),  # requested before the inconsistency
    (Synchronize, Tick): (synchronize.on_tick, ()),
    (Synchronize, ProcessEnded): (_on_process_ended, ()),
    (Synchronize, Disrupted): (on_disrupted, ()),
    (Sentinel, RecordRead): (_on_record, (Manage, Synchronize, SteppedDown)),
    (Sentinel, Measured): (_on_measured, ()),
    (Sentinel, Packed): (_ignore, ()),  # overdue
    (Sentinel, Tick): (_on_tick_in_sentinel, (Reassign, Manage)),
    (Sentinel, ProcessEnded): (_on_process_ended, ()),
    (Sentinel, Disrupted): (on_disrupted, ()),
    (Reassign, RecordRead): (_on_record, (Manage, Synchronize, SteppedDown)),
    (Reassign, Measured): (_on_measured, ()),
    (Reassign, Packed): (_on_packed, (Sentinel, Manage)),
    (Reassign, Tick): (_on_tick_in_reassign, (Sentinel,)),
    (Reassign, ProcessEnded): (_on_process_ended, ()),
    (Reassign, Disrupted): (on_disrupted, ()),
    (Manage, RecordRead): (_on_record, (Sentinel, Synchronize, SteppedDown)),
    (Manage, Measured): (_on_measured, ()),
    (Manage, Packed): (_ignore, ()),  # overdue
    (Manage, Tick): (_on_tick_in_manage, (Sentinel,)),
    (Manage, ProcessEnded): (_on_process_ended, ()),
    (Manage, Disrupted): (on_disrupted, (Sentinel,)),
}


def transition(state: State, event: Event) -> Step:
    """Return the next state and what the shell must do; after `SteppedDown` that is nothing.

    Raises:
        IllegalTransition: A bug: a function led to a state that the table does not allow.
    """
    if isinstance(state, SteppedDown):
        return state, ()
    ended: tuple[Action, ...] = ()
    if isinstance(event, Tick):
        group, ended = refresh_controls(state.group, event.wall_ms)
        state = replace(state, group=group)
    function, targets = TRANSITIONS[type(state), type(event)]
    after, actions = function(state, event)
    actions = (*ended, *actions)
    if wanted := [action.slots for action in actions if isinstance(action, Reconcile)]:
        asked_at = {s: after.group.fleet.asked_at.get(s, event.now) for s in wanted[-1]}
        fleet = replace(after.group.fleet, desired=wanted[-1], asked_at=asked_at)
        after = replace(after, group=replace(after.group, fleet=fleet))
    if type(after) not in {type(state), *targets}:
        raise IllegalTransition(f"{type(event).__name__}: {state} became {after}")
    return after, actions
