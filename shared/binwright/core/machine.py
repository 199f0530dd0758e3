"""The controller's states. All that can change a state is in this file and the ones it names.

`transition(state, event) -> (state, actions)` is pure: the same records of partition 0 and the same
measurements give the same commands. `TRANSITIONS` is the whole machine at a glance.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from binwright.core.approval import (
    accept,
    changed,
    displaced,
    inherited,
    restored,
    reviewed,
    stays,
    withdraw,
)
from binwright.core.errors import IllegalTransition
from binwright.core.events import (
    Action,
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
from binwright.core.group import Group, Offer, Place, Unassigned, debt, forget, place_all
from binwright.core.hearing import condemn, contradiction, hear, overtaken, slept, take_answer
from binwright.core.messages import Claim, Report
from binwright.core.model import BytesPerSecond, Rates, Slot, TopicPartition
from binwright.core.monitors import listen, take
from binwright.core.moving import advance, arrived, repeat
from binwright.core.packing.cap import relieves, within
from binwright.core.packing.capacity import per_slot
from binwright.core.plan import Plan, Rejected, weigh
from binwright.core.present import by_those_present
from binwright.core.relief import comfort, leavers, relief, relieved
from binwright.core.rules import Rules
from binwright.core.synchronize import ask, awaited, collect, concluded, living
from binwright.core.telling import planned, proposed


@dataclass(frozen=True, slots=True)
class Synchronize:
    """A claim is out; what partition 0 held before it is history. Then everybody is asked."""

    group: Group
    since: float
    answers: Mapping[Slot, Report] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sentinel:
    """Nothing is wanted; each measurement is compared with the assignment."""

    group: Group
    since: float


@dataclass(frozen=True, slots=True)
class Reassign:
    """The packing works; its answer is weighed."""

    group: Group
    since: float
    forced_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manage:
    """Group Management: a plan is being carried out."""

    group: Group
    since: float
    target: Mapping[TopicPartition, Slot]
    kept: frozenset[Slot] = frozenset()  # to be there afterwards, whatever they hold


@dataclass(frozen=True, slots=True)
class Deposed:
    """Another controller reigns. The end."""

    group: Group
    since: float


State = Synchronize | Sentinel | Reassign | Manage | Deposed
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
    group, more = concluded(state.group, state.answers, now)
    group, running, said = inherited(group, living(group))
    return Sentinel(group, now), (*actions, Reconcile(running), *more, *said)


def _synchronize_tick(state: Synchronize, event: Tick) -> Step:
    if slept(state.group, event.now):
        state = replace(state, since=event.now)  # answers may wait unread
    group, actions = condemn(state.group, event.now)
    if group.term is not None and event.now - state.since > group.rules.consumer_timeout_s:
        group, more = condemn(group, event.now, awaited(group))
        actions = (*actions, *more)
    return replace(state, group=group), actions


# --- what every later state shares -------------------------------------------------------------


Reigning = Sentinel | Reassign | Manage


def _reigning_heard(state: Reigning, event: Heard) -> Step:
    if (other := overtaken(state.group, event)) is not None:
        return Deposed(state.group, event.now), (StepDown(other),)
    group, actions = hear(state.group, event)
    group, more = take_answer(group, event.message, event.now)
    actions = (*actions, *more)
    if doubt := contradiction(group, event.message):
        claim = Publish(Claim(controller=group.controller))
        known = replace(group, term=None, places={}, doubt=frozenset())
        said = Say("assignment.doubted", {"reason": doubt})
        return Synchronize(known, event.now), (*actions, said, claim)
    return _carry_on(replace(state, group=group), event.now, actions)


def _carry_on(state: Reigning, now: float, actions: tuple[Action, ...]) -> Step:
    """In Group Management every word heard may let a partition move on."""
    if not isinstance(state, Manage):
        if (plan := relief(state.group)) is None:
            return state, actions
        # At once: who was asked to end waits for it, and would sooner or later quit reading.
        state, more = _go_ahead(state.group, plan, now)
        actions = (*actions, *more)
    # What is gone meanwhile can't be started: nobody waits for it.
    wanted = {p: heir for p, heir in state.target.items() if not state.group.gone(p)}
    target, kept = relieved(state.group, wanted), state.kept | leavers(state.group)
    group, more = advance(state.group, target, now)
    state = replace(state, group=group, target=target, kept=kept)
    actions = (*actions, *more)
    if arrived(group, target):
        # Only now may the empty go: until here they held something.
        return Sentinel(group, now), (*actions, Reconcile(kept.union(target.values())))
    return state, actions


def _measured(state: State, event: Measured) -> Step:
    """Remember the rates; what follows from them waits for the tick, when every topic is in."""
    measurement = event.measurement
    monitors, counts, said = take(state.group.monitors, event.now, measurement)
    group = replace(state.group, monitors=monitors)
    if not counts:
        return replace(state, group=group), said
    group = replace(
        group,
        # A partition whose rate is not known at the moment keeps its last one.
        rates={**group.rates, **measurement.rates()},
        there={**group.there, measurement.topic: range(measurement.count)},
        measured_at=event.now,
    )
    rates = {p: r for p, r in group.rates.items() if not group.gone(p)}
    group = replace(group, rates=rates, drift=group.drift.observe(rates, event.now))
    return replace(state, group=_discover(group)), said


def _discover(group: Group) -> Group:
    """Give what was never seen in this reign a place, with the debts it comes with."""
    if group.term is None:
        return group
    new = {
        p: Place(Unassigned(), debt(group, p.topic)) for p in group.rates if p not in group.places
    }
    return place_all(group, new)


def _housekeep(group: Group, now: float) -> tuple[Group, tuple[Action, ...]]:
    group, dead = condemn(group, now)
    group, again = repeat(group, now)
    monitors, said = listen(group.monitors, now)
    return replace(group, monitors=monitors), (*dead, *again, *comfort(group), *said)


# --- Sentinel ----------------------------------------------------------------------------------


def _reassign(group: Group, now: float, forced: tuple[str, ...]) -> Step:
    limit = group.rules.largest
    rates: Rates = {
        p: BytesPerSecond(min(group.rates.get(p, 0.0), limit))
        for p in group.places
        if not group.gone(p)
    }
    request = Pack(rates, group.rules.capacities, group.assignment(), group.drift.squared)
    return Reassign(group, now, forced), (request,)


def _sentinel_tick(state: Sentinel, event: Tick) -> Step:
    group, actions = _housekeep(state.group, event.now)
    # What is gone, and nobody reads, would force plans that have nothing to do.
    group = forget(group, [p for p, at in group.places.items() if at.idle and group.gone(p)])
    if group.rules.mode == "approve" and (plan := restored(group)):
        managing, more = _go_ahead(group, plan, event.now)  # this nobody is asked for
        return _carry_on(managing, event.now, (*actions, *more))
    state = replace(state, group=group)
    if not informed(group, state.since, event.now):
        return state, actions  # hold the last good assignment
    forced, due = forces(group), event.now - state.since > group.rules.look_again_s
    if not due and displaced(group):
        return state, actions
    if group.offer is not None and group.rules.mode != "act":
        return _offered(state, group.offer, forced, event.now, actions)
    # What is only told need not be told every second.
    if due or (forced and group.rules.mode != "observe"):
        after, more = _reassign(group, event.now, forced)
        return after, (*actions, *more)
    return state, actions


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
    target = by_those_present(group, target)
    plan = weigh(rates, group.rules.capacity, current, target, state.forced_by)
    if isinstance(plan, Rejected):
        return _rejected(group, event.now, plan.reason)
    if group.rules.mode != "act":
        offer = Offer(proposed(group, plan))
        return Sentinel(replace(group, offer=offer), event.now), (Publish(offer.plan),)
    managing, actions = _go_ahead(group, plan, event.now)
    return _carry_on(managing, event.now, actions)


def _go_ahead(group: Group, plan: Plan, now: float) -> tuple[Manage, tuple[Action, ...]]:
    kept = stays(group)
    needed = kept.union(plan.target.values(), group.assignment().values())
    managing = Manage(group, now, plan.target, kept)
    return managing, (Publish(planned(group, plan)), Reconcile(needed))


def _rejected(group: Group, now: float, reason: str) -> Step:
    """Stay as it is; who was made for a plan that came to nothing is retired."""
    said = Say("plan.rejected", {"reason": reason})
    if group.rules.mode != "act":
        return Sentinel(group, now), (said,)
    holding = frozenset(group.assignment().values())
    if holding >= living(group):
        return Sentinel(group, now), (said,)
    return Sentinel(group, now), (said, Reconcile(holding))


def _reassign_tick(state: Reassign, event: Tick) -> Step:
    group, actions = _housekeep(state.group, event.now)
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
    return _carry_on(replace(state, group=group), event.now, actions)


def _nothing(state: State, _event: Event) -> Step:
    return state, ()


# (state, event) -> how it is met, and the other states that it may lead to. The diagram in
# docs/architecture.md is drawn from this table; a test compares the two.
TRANSITIONS: Mapping[tuple[type, type], tuple[Callable[..., Step], tuple[type, ...]]] = {
    (Synchronize, Heard): (_synchronize_heard, (Sentinel, Deposed)),
    (Synchronize, Measured): (_measured, ()),
    (Synchronize, Packed): (_nothing, ()),  # asked for before the doubt
    (Synchronize, Tick): (_synchronize_tick, ()),
    (Sentinel, Heard): (_reigning_heard, (Manage, Synchronize, Deposed)),
    (Sentinel, Measured): (_measured, ()),
    (Sentinel, Packed): (_nothing, ()),  # came too late
    (Sentinel, Tick): (_sentinel_tick, (Reassign, Manage)),
    (Reassign, Heard): (_reigning_heard, (Manage, Synchronize, Deposed)),
    (Reassign, Measured): (_measured, ()),
    (Reassign, Packed): (_reassign_packed, (Sentinel, Manage)),
    (Reassign, Tick): (_reassign_tick, (Sentinel,)),
    (Manage, Heard): (_reigning_heard, (Sentinel, Synchronize, Deposed)),
    (Manage, Measured): (_measured, ()),
    (Manage, Packed): (_nothing, ()),  # came too late
    (Manage, Tick): (_manage_tick, (Sentinel,)),
}


def diagram() -> str:
    """Return the states and what leads from one to another, as Mermaid text."""
    edges = sorted(
        f"    {old.__name__} --> {new.__name__}: {event.__name__}"
        for (old, event), (_, targets) in TRANSITIONS.items()
        for new in targets
    )
    ends = ["    [*] --> Synchronize", "    Deposed --> [*]"]
    return "\n".join(["stateDiagram-v2", ends[0], *edges, ends[1]])


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
