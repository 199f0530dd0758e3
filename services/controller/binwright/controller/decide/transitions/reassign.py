"""Reassign: request a packing, then accept, propose or reject its result."""

from dataclasses import replace

from binwright.controller.decide.events import Log, Pack, Packed, Publish, Reconcile, Tick
from binwright.controller.decide.group import Group, Proposal
from binwright.controller.decide.plans.evaluation import Rejected, evaluate
from binwright.controller.decide.plans.plan_messages import proposed_message
from binwright.controller.decide.plans.reuse import reuse_idle_consumers
from binwright.controller.decide.states import Reassign, Sentinel, Step
from binwright.controller.decide.transitions.common import assign_writers, run_timers
from binwright.controller.decide.transitions.manage import proceed, start_plan
from binwright.packing.capacity import slot_capacities
from binwright.packing.max_slots import limit_slots, worth_moving
from binwright.packing.min_slots import ensure_min_slots
from binwright.protocol.model import BytesPerSecond, Rates


def request_packing(group: Group, now: float, triggered_by: tuple[str, ...]) -> Step:
    """Request a packing of all partitions; a rate above every limit counts as the largest limit."""
    limit = group.config.limits.largest
    rates: Rates = {
        p: BytesPerSecond(min(group.rates.get(p, 0.0), limit))
        for p in group.partitions
        if not group.gone(p)
    }
    request = Pack(rates, group.config.capacities, group.assignment(), group.volatility.mean_square)
    return Reassign(group, now, triggered_by), (request,)


def on_packed(state: Reassign, event: Packed) -> Step:
    """Evaluate the packing's result; start, propose or reject the plan."""
    group, current = state.group, state.group.assignment()
    rates = {p: group.rates.get(p, BytesPerSecond(0.0)) for p in event.target}
    capacities = slot_capacities(group.config.capacities)
    target = limit_slots(event.target, rates, capacities, group.config.max_slots)
    if target != event.target and not worth_moving(rates, capacities, current, target):
        return _reject(group, event.now, f"all {group.config.max_slots} consumers are full")
    target = ensure_min_slots(target, rates, capacities, current, group.config.min_slots)
    target = reuse_idle_consumers(group, target)
    plan = evaluate(rates, group.config.capacity, current, target, state.triggered_by)
    if isinstance(plan, Rejected):
        return _reject(group, event.now, plan.reason)
    if group.config.mode != "act":
        proposal = Proposal(proposed_message(group, plan))
        return Sentinel(replace(group, proposal=proposal), event.now), (Publish(proposal.plan),)
    managing, actions = start_plan(group, plan, event.now)
    return proceed(managing, event.now, actions)


def _reject(group: Group, now: float, reason: str) -> Step:
    """Keep the assignment; a consumer that was started for a plan never carried out is retired."""
    log = Log("plan.rejected", {"reason": reason})
    if group.config.mode != "act" or group.owning_slots() >= group.living():
        return Sentinel(group, now), (log,)
    return Sentinel(group, now), (log, Reconcile(group.owning_slots()))


def on_tick(state: Reassign, event: Tick) -> Step:
    """Run the timers; return to Sentinel when the packing takes too long."""
    group, actions = run_timers(state.group, event.now)
    group, more = assign_writers(group, event.now)
    actions = (*actions, *more)
    if event.now - state.since > group.config.plan_timeout_s:
        log = Log("packing.overdue", {"seconds": group.config.plan_timeout_s})
        return Sentinel(group, event.now), (*actions, log)
    return replace(state, group=group), actions
