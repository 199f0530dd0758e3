"""Group Management: start a plan, carry it out record by record, and end it."""

from dataclasses import replace

from binwright.controller.decide.events import Action, Log, Publish, Reconcile, Tick
from binwright.controller.decide.group import Group
from binwright.controller.decide.moves.advance import advance, goal_for, goal_reached
from binwright.controller.decide.moves.writer_roles import move_writers
from binwright.controller.decide.plans.approval import approved_slots
from binwright.controller.decide.plans.drain import drain_plan, drained, draining_slots
from binwright.controller.decide.plans.evaluation import Plan
from binwright.controller.decide.plans.plan_messages import planned_message
from binwright.controller.decide.states import Leading, Manage, Sentinel, Step
from binwright.controller.decide.transitions.common import assign_writers, run_timers
from binwright.protocol.model import Slot


def start_plan(
    group: Group, plan: Plan, now: float, kept_slots: frozenset[Slot] = frozenset()
) -> tuple[Manage, tuple[Action, ...]]:
    """Begin to carry out a plan: publish it, and start the consumers that it needs.

    Args:
        group: The group.
        plan: The plan.
        now: Seconds, monotonic.
        kept_slots: Slots that keep running after the plan, even if they own nothing then.
    """
    kept_slots |= approved_slots(group)
    needed = kept_slots.union(plan.target.values(), group.owning_slots())
    managing = Manage(
        replace(group, last_plan=plan.target), now, goal_for(group, plan.target), kept_slots
    )
    return managing, (Publish(planned_message(group, plan)), Reconcile(needed))


def proceed(state: Leading, now: float, actions: tuple[Action, ...]) -> Step:
    """Send what can be sent now: in Group Management every record may let a partition move on."""
    if not isinstance(state, Manage):
        if (plan := drain_plan(state.group)) is None:
            group, more = assign_writers(state.group, now)
            return replace(state, group=group), (*actions, *more)
        # Without delay: a draining consumer waits for its partitions to move, but not forever.
        state, more = start_plan(state.group, plan, now)
        actions = (*actions, *more)
    target = drained(state.group, state.goal.target)
    kept_slots = state.kept_slots | draining_slots(state.group)
    goal = state.goal if target is state.goal.target else goal_for(state.group, target)
    group, goal, moves = advance(state.group, goal, now)
    group, roles = move_writers(group, now, kept_slots | goal.slots)
    actions = (*actions, *moves, *roles)
    if goal_reached(group, goal):
        # Partitions that have gone meanwhile were never started: no slot runs for them.
        running = kept_slots.union(slot for p, slot in target.items() if not group.gone(p))
        if group.writers.slots <= running:
            # Empty consumers are retired only now: until here they owned something.
            return Sentinel(group, now), (*actions, Reconcile(running | group.owning_slots()))
    return replace(state, group=group, goal=goal, kept_slots=kept_slots), actions


def on_tick(state: Manage, event: Tick) -> Step:
    """Run the timers and go on with the plan; return to Sentinel when it takes too long."""
    group, actions = run_timers(state.group, event.now)
    if event.now - state.since > group.config.plan_timeout_s:
        log = Log("plan.overdue", {"seconds": group.config.plan_timeout_s})
        return Sentinel(group, event.now), (*actions, log)
    target = {p: slot for p, slot in state.goal.target.items() if not group.gone(p)}
    return proceed(replace(state, group=group, goal=goal_for(group, target)), event.now, actions)
