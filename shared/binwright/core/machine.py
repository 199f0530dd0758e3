"""The controller's states. All that can change a state is in this file and the ones it names.

`transition(state, event) -> (state, actions)` is pure: the same records of partition 0 and the same
measurements give the same commands. `TRANSITIONS` is the whole machine at a glance.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from binwright.core.approval import (
    accept,
    changed,
    displaced,
    inherited,
    restoring,
    reviewed,
    stays,
    withdraw,
)
from binwright.core.commands import repeat
from binwright.core.corrections import corrected, inconsistency
from binwright.core.errors import IllegalTransition
from binwright.core.events import (
    Action,
    Ended,
    Event,
    Heard,
    Measured,
    Pack,
    Packed,
    Publish,
    Reconcile,
    Say,
    StepDown,
    Tick,
)
from binwright.core.forces import forces, informed
from binwright.core.group import Group, Offer, discovered, forget_gone
from binwright.core.hearing import declare_dead, ended, hear, overtaken, slept
from binwright.core.measuring import measured
from binwright.core.messages import Claim, Report, Started
from binwright.core.model import BytesPerSecond, Rates, Slot
from binwright.core.monitors import listen
from binwright.core.moving import advance, arrived, goal, started_elsewhere
from binwright.core.packing.cap import relieves, within
from binwright.core.packing.capacity import per_slot
from binwright.core.packing.floor import at_least
from binwright.core.plan import Plan, Rejected, weigh
from binwright.core.present import by_those_present
from binwright.core.relief import comfort, last_slots, leavers, reader_plan, relief, relieved
from binwright.core.rules import Rules
from binwright.core.states import Deposed, Manage, Reassign, Sentinel, State, Synchronize
from binwright.core.synchronize import ask, awaited, collect, concluded
from binwright.core.telling import planned, proposed
from binwright.core.writers import move_writers

Step = tuple[State, tuple[Action, ...]]


def begin(rules: Rules, controller: str, now: float) -> Step:
    """Start a reign: claim, then hear partition 0 from its beginning, then act."""
    group = Group(rules=rules, controller=controller, ticked_at=now)
    return Synchronize(group, now), (Publish(Claim(controller=controller)),)


# --- Synchronize -------------------------------------------------------------------------------


def _synchronize_heard(state: Synchronize, event: Heard) -> Step:
    if state.group.term is None:
        if isinstance(event.message, Claim) and event.message.controller == state.group.controller:
            group, actions = ask(state.group, event.offset)
            return _conclude(replace(state, group=group, since=event.now), event.now, actions)
        group, _ = hear(state.group, event)  # history: nobody is told anything
        return replace(state, group=group), ()
    if (other := overtaken(state.group, event)) is not None:
        return Deposed(state.group, event.now), (StepDown(other),)
    group, actions = hear(state.group, event)
    answers = collect(group, state.answers, event.message)
    return _conclude(replace(state, group=group, answers=answers), event.now, actions)


def _conclude(state: Synchronize, now: float, actions: tuple[Action, ...]) -> Step:
    if state.group.term is None or awaited(state.group):
        return state, actions
    group, more = concluded(state.group, state.answers)
    group, running, said = inherited(group, group.living())
    return Sentinel(group, now), (*actions, Reconcile(running), *more, *said)


def _synchronize_tick(state: Synchronize, event: Tick) -> Step:
    if slept(state.group, event.now):
        state = replace(state, since=event.now)  # answers may wait unread
    group, actions = declare_dead(state.group, event.now)
    if group.term is not None and event.now - state.since > group.rules.consumer_timeout_s:
        group, more = declare_dead(group, event.now, awaited(group))
        actions = (*actions, *more)
    return replace(state, group=group), actions


# --- what every later state shares -------------------------------------------------------------


Reigning = Sentinel | Reassign | Manage


def _reigning_heard(state: Reigning, event: Heard) -> Step:
    if (other := overtaken(state.group, event)) is not None:
        return Deposed(state.group, event.now), (StepDown(other),)
    group, actions = hear(state.group, event)
    if reason := inconsistency(group, event.message):
        claim = Publish(Claim(controller=group.controller))
        said = Say("assignment.inconsistent", {"reason": reason})
        return Synchronize(replace(group, term=None), event.now), (*actions, said, claim)
    group, more = corrected(group, event.message, event.now)
    actions, state = (*actions, *more), replace(state, group=group)
    if isinstance(event.message, Started) and isinstance(state, Manage):
        state = replace(state, aim=started_elsewhere(group, state.aim, event.message.offsets))
    if isinstance(event.message, Report) and not actions:
        return state, ()  # as most of them: nothing is new
    return _carry_on(state, event.now, actions)


def _carry_on(state: Reigning, now: float, actions: tuple[Action, ...]) -> Step:
    """In Group Management every record may let a partition move on."""
    if not isinstance(state, Manage):
        if (plan := relief(state.group)) is None:
            group, more = _move_writers(state.group, now)
            return replace(state, group=group), (*actions, *more)
        # At once: a consumer that was asked to end waits for it, and not for ever.
        state, more = _go_ahead(state.group, plan, now)
        actions = (*actions, *more)
    target, kept = relieved(state.group, state.aim.target), state.kept | leavers(state.group)
    aim = state.aim if target is state.aim.target else goal(state.group, target)
    group, aim, moves = advance(state.group, aim, now)
    group, roles = move_writers(group, now, kept | aim.slots)
    actions = (*actions, *moves, *roles)
    if arrived(group, aim):
        # What went meanwhile could not be started: nobody stays for it.
        staying = kept.union(slot for p, slot in target.items() if not group.gone(p))
        if group.writers.slots <= staying:
            # Only now may the empty go: until here they had something.
            return Sentinel(group, now), (*actions, Reconcile(staying | group.holders()))
    return replace(state, group=group, aim=aim, kept=kept), actions


def _move_writers(group: Group, now: float) -> tuple[Group, tuple[Action, ...]]:
    """Give every table its writer; who only observes commands nobody."""
    return (group, ()) if group.rules.mode == "observe" else move_writers(group, now)


def _measured(state: State, event: Measured) -> Step:
    """Remember the rates; what follows from them waits for the tick, when every topic is in."""
    group, said = measured(state.group, event)
    return replace(state, group=group), said


def _ended(state: State, event: Ended) -> Step:
    """Say that it is dead; that counts once it is read back, as any other death."""
    group, actions = ended(state.group, event)
    return replace(state, group=group), actions


def _housekeep(group: Group, now: float) -> tuple[Group, tuple[Action, ...]]:
    group, dead = declare_dead(group, now)
    group, again = repeat(group, now)
    monitors, said = listen(group.monitors, now)
    if said:
        group = replace(group, monitors=monitors)
    return group, (*dead, *again, *comfort(group), *said)


# --- Sentinel ----------------------------------------------------------------------------------


def _reassign(group: Group, now: float, forced: tuple[str, ...]) -> Step:
    limit = group.rules.largest
    rates: Rates = {
        p: BytesPerSecond(min(group.rates.get(p, 0.0), limit))
        for p in group.partitions
        if not group.gone(p)
    }
    request = Pack(rates, group.rules.capacities, group.assignment(), group.drift.squared)
    return Reassign(group, now, forced), (request,)


def _sentinel_tick(state: Sentinel, event: Tick) -> Step:
    after, actions = _watch(state, event)
    if not isinstance(after, Sentinel):
        return after, actions
    group, more = _move_writers(after.group, event.now)
    return replace(after, group=group), (*actions, *more)


def _watch(state: Sentinel, event: Tick) -> Step:
    group, actions = _housekeep(state.group, event.now)
    # What is gone, and nobody reads, would force plans that have nothing to do.
    group = forget_gone(group)
    plan, kept = restoring(group, state.kept)
    if plan is not None:
        managing, more = _go_ahead(group, plan, event.now)  # this nobody is asked for
        return _carry_on(managing, event.now, (*actions, *more))
    state = replace(state, group=group, kept=kept)
    if not informed(group, state.since, event.now):
        return _uninformed(state, event.now, actions)
    forced, due = forces(group), event.now - state.since > group.rules.look_again_s
    if not due and (displaced(group) if kept is None else kept.displaced):
        return state, actions
    if group.offer is not None and group.rules.mode != "act":
        return _offered(state, group.offer, forced, event.now, actions)
    # What is only told need not be told every second.
    if due or (forced and group.rules.mode != "observe"):
        after, more = _reassign(group, event.now, forced)
        return after, (*actions, *more)
    return state, actions


def _uninformed(state: Sentinel, now: float, actions: tuple[Action, ...]) -> Step:
    """Hold the last good assignment; what nobody reads gets a reader all the same."""
    group = state.group
    if group.rules.mode != "act":
        return state, actions
    if group.measured_at is None and now - state.since > group.rules.stale_s:
        # No monitor at all: what the last plan knew of is all there is to know.
        group = discovered(group, group.last_plan)
    if (plan := reader_plan(group)) is None:
        return replace(state, group=group), actions
    # Nobody is retired by what is not known.
    managing, more = _go_ahead(group, plan, now, group.living() | last_slots(group))
    return _carry_on(managing, now, (*actions, *more))


def _offered(
    state: Sentinel, offer: Offer, forced: tuple[str, ...], now: float, actions: tuple[Action, ...]
) -> Step:
    """A plan was shown: it waits, is carried out, or is replaced by one that fits what is now."""
    group, due = state.group, now - state.since > state.group.rules.look_again_s
    why = changed(group, offer.plan)
    if offer.number is None or (why is None and not (due or offer.approved)):
        return state, actions
    judged = reviewed(group, offer.plan, forced) if why is None else Rejected(why)
    if isinstance(judged, Rejected):
        group, said = withdraw(group, judged.reason)
        after, more = _reassign(group, now, forced)
        return after, (*actions, *said, *more)
    if not offer.approved:
        return replace(state, since=now), actions
    group, said = accept(group)
    managing, more = _go_ahead(group, judged, now)
    return _carry_on(managing, now, (*actions, *said, *more))


# --- Reassign ----------------------------------------------------------------------------------


def _reassign_packed(state: Reassign, event: Packed) -> Step:
    group, current = state.group, state.group.assignment()
    rates = {p: group.rates.get(p, BytesPerSecond(0.0)) for p in event.target}
    capacities = per_slot(group.rules.capacities)
    target = within(event.target, rates, capacities, group.rules.max_slots)
    if target != event.target and not relieves(rates, capacities, current, target):
        return _rejected(group, event.now, f"all {group.rules.max_slots} consumers are full")
    target = at_least(target, rates, capacities, current, group.rules.min_slots)
    target = by_those_present(group, target)
    plan = weigh(rates, group.rules.capacity, current, target, state.forced_by)
    if isinstance(plan, Rejected):
        return _rejected(group, event.now, plan.reason)
    if group.rules.mode != "act":
        offer = Offer(proposed(group, plan))
        return Sentinel(replace(group, offer=offer), event.now), (Publish(offer.plan),)
    managing, actions = _go_ahead(group, plan, event.now)
    return _carry_on(managing, event.now, actions)


def _go_ahead(
    group: Group, plan: Plan, now: float, kept: frozenset[Slot] = frozenset()
) -> tuple[Manage, tuple[Action, ...]]:
    kept |= stays(group)
    needed = kept.union(plan.target.values(), group.holders())
    managing = Manage(replace(group, last_plan=plan.target), now, goal(group, plan.target), kept)
    return managing, (Publish(planned(group, plan)), Reconcile(needed))


def _rejected(group: Group, now: float, reason: str) -> Step:
    """Stay as it is; a consumer made for a plan that came to nothing is retired."""
    said = Say("plan.rejected", {"reason": reason})
    if group.rules.mode != "act" or group.holders() >= group.living():
        return Sentinel(group, now), (said,)
    return Sentinel(group, now), (said, Reconcile(group.holders()))


def _reassign_tick(state: Reassign, event: Tick) -> Step:
    group, actions = _housekeep(state.group, event.now)
    group, more = _move_writers(group, event.now)
    actions = (*actions, *more)
    if event.now - state.since > group.rules.plan_timeout_s:
        said = Say("packing.overdue", {"seconds": group.rules.plan_timeout_s})
        return Sentinel(group, event.now), (*actions, said)
    return replace(state, group=group), actions


# --- Group Management --------------------------------------------------------------------------


def _manage_tick(state: Manage, event: Tick) -> Step:
    group, actions = _housekeep(state.group, event.now)
    if event.now - state.since > group.rules.plan_timeout_s:
        said = Say("plan.overdue", {"seconds": group.rules.plan_timeout_s})
        return Sentinel(group, event.now), (*actions, said)
    there = {p: slot for p, slot in state.aim.target.items() if not group.gone(p)}
    return _carry_on(replace(state, group=group, aim=goal(group, there)), event.now, actions)


def _nothing(state: State, _event: Event) -> Step:
    return state, ()


# (state, event) -> how it is met, and the other states that it may lead to. The diagram in
# docs/architecture.md is drawn from this table; a test compares the two.
TRANSITIONS: Mapping[tuple[type, type], tuple[Callable[..., Step], tuple[type, ...]]] = {
    (Synchronize, Heard): (_synchronize_heard, (Sentinel, Deposed)),
    (Synchronize, Measured): (_measured, ()),
    (Synchronize, Packed): (_nothing, ()),  # asked for before the inconsistency
    (Synchronize, Tick): (_synchronize_tick, ()),
    (Synchronize, Ended): (_ended, ()),
    (Sentinel, Heard): (_reigning_heard, (Manage, Synchronize, Deposed)),
    (Sentinel, Measured): (_measured, ()),
    (Sentinel, Packed): (_nothing, ()),  # came too late
    (Sentinel, Tick): (_sentinel_tick, (Reassign, Manage)),
    (Sentinel, Ended): (_ended, ()),
    (Reassign, Heard): (_reigning_heard, (Manage, Synchronize, Deposed)),
    (Reassign, Measured): (_measured, ()),
    (Reassign, Packed): (_reassign_packed, (Sentinel, Manage)),
    (Reassign, Tick): (_reassign_tick, (Sentinel,)),
    (Reassign, Ended): (_ended, ()),
    (Manage, Heard): (_reigning_heard, (Sentinel, Synchronize, Deposed)),
    (Manage, Measured): (_measured, ()),
    (Manage, Packed): (_nothing, ()),  # came too late
    (Manage, Tick): (_manage_tick, (Sentinel,)),
    (Manage, Ended): (_ended, ()),
}


def transition(state: State, event: Event) -> Step:
    """Return the next state and what to do; a deposed controller does nothing any more.

    Raises:
        IllegalTransition: Our own fault: the table does not allow what a handler did.
    """
    if isinstance(state, Deposed):
        return state, ()
    handler, targets = TRANSITIONS[type(state), type(event)]
    after, actions = handler(state, event)
    if type(after) not in {type(state), *targets}:
        raise IllegalTransition(f"{type(event).__name__}: {state} became {after}")
    return after, actions
