"""Begins to carry out a plan, rejects or gives one up; `machine` does what lies between."""

from dataclasses import replace

from binwright.controller.decide.approval import approved_slots
from binwright.controller.decide.events import Action, Publish, Reconcile
from binwright.controller.decide.moves import goal_for
from binwright.controller.decide.states import Manage, Sentinel, Step
from binwright.group.budgets import uncount_moves
from binwright.group.group import Group
from binwright.group.plans import Plan, planned_message
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.model import Slot

PLAN_REJECTED = LogEvent.info(
    "plan.rejected",
    "A packing's answer does not become a plan; the reason has what it would have cost.",
)


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
    needed = kept_slots.union(plan.target.values(), group.members.owning())
    message = planned_message(group, plan)
    people = replace(group.people, last_plan=plan.target, moved=message.moved)
    after = replace(group, people=people)
    moves = frozenset(plan.changes.moves)
    managing = Manage(after, now, goal_for(group, plan.target), kept_slots, moves)
    return managing, (Publish(message), Reconcile(needed))


def give_up(state: Manage, now: float, log: Log) -> tuple[Sentinel, tuple[Action, ...]]:
    """Give a plan up: what has begun to move goes on, what has not does not count."""
    people = uncount_moves(state.group.people, state.goal.misplaced & state.moves)
    return Sentinel(replace(state.group, people=people), now), (log,)


def reject(group: Group, now: float, reason: str) -> Step:
    """Keep the assignment; a consumer that was started for a plan never carried out is retired."""
    log = Log(PLAN_REJECTED, {"reason": reason})
    if group.settings.mode != "act" or group.members.owning() >= group.members.living():
        return Sentinel(group, now), (log,)
    return Sentinel(group, now), (log, Reconcile(group.members.owning()))
