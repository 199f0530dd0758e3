"""Replaces consumers before they end: their nodes go, or they run by an older template.

Another consumer takes over all that one reads, by the ordinary moves; then that one ends. All on
nodes that go are replaced at once, and in spite of a freeze, since they end in any case. Those of
an older template are replaced one after the other, within the budget of an hour.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from binwright.controller.decide.approval import approved_slots
from binwright.controller.decide.carry_out import give_up
from binwright.controller.decide.drain import forced_plan
from binwright.controller.decide.events import Action, Disrupted, Publish, Renew, Update
from binwright.controller.decide.moves import find_readers
from binwright.controller.decide.states import Manage, State, Step
from binwright.group import plans
from binwright.group.budgets import moves_left
from binwright.group.group import Group
from binwright.group.plans import Plan, Rejected, counted
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.model import Assignment, Slot

PLAN_INTERRUPTED = LogEvent.info(
    "plan.interrupted",
    "A plan was given up because the node of one of its consumers is about to end; the consumer "
    "is replaced at once.",
)

Replacements = Mapping[Slot, Slot]
"""Consumer -> the one that takes over."""


def on_disrupted(state: State, event: Disrupted) -> Step:
    """Store the disruptions; a plan that counts on a consumer that ends now is given up."""
    before = state.group.fleet.ending()
    fleet = replace(state.group.fleet, disruptions=dict(event.disruptions))
    group = replace(state.group, fleet=fleet)
    after, new = replace(state, group=group), group.fleet.ending() - before
    if isinstance(after, Manage) and new & (after.goal.slots | group.members.owning()):
        reason = "; ".join(group.fleet.disruptions[slot].reason for slot in sorted(new))
        return give_up(after, event.now, Log(PLAN_INTERRUPTED, {"reason": reason}))
    return after, ()


# --- which consumers, by which others -----------------------------------------------------------


def replacements(group: Group, taken: Collection[Slot] = ()) -> dict[Slot, Slot]:
    """Return the consumers that others take over from now; `taken` are no replacements.

    Empty while only those are disrupted for which no slot of the same limit is left.
    """
    free = _free_slots(group, taken)
    replacement_of: dict[Slot, Slot] = {}
    for slot in _to_replace(group):
        limit = group.config.limits.for_slot(slot)
        alike = (s for s in free if group.config.limits.for_slot(s) == limit)
        if (other := next(alike, None)) is not None:
            replacement_of[slot] = other
            free.remove(other)
    return replacement_of


def _to_replace(group: Group) -> list[Slot]:
    """Return the consumers to replace now: all whose nodes go, else one of an older template."""
    if group.settings.mode == "observe":
        return []
    if ending := [slot for slot in sorted(group.fleet.ending()) if _is_settled(group, slot)]:
        return ending
    return [] if _roll_waits(group) else _rolling(group)[:1]


def _rolling(group: Group) -> list[Slot]:
    """Return the consumers that read, run by an older template and are not asked to end."""
    return [slot for slot in sorted(group.fleet.rolling()) if _is_settled(group, slot)]


def _is_settled(group: Group, slot: Slot) -> bool:
    """Whether a consumer reads something that stays with it unless it is replaced."""
    own = group.members.partitions.owned_by(slot)
    if not own or group.members.get(slot).leaving:
        return False
    approved = _approved(group)  # it may name its replacement already
    return not approved or any(approved.get(p, slot) == slot for p in own)


def _approved(group: Group) -> Assignment:
    plan = group.people.approved_plan if group.settings.mode == "approve" else None
    return {} if plan is None else plan.targets


def _roll_waits(group: Group) -> str:
    """Return why no consumer of an older template is replaced now, as text; empty: it is."""
    if not (rolling := _rolling(group)):
        return ""
    if group.people.controls.frozen or group.settings.mode == "observe":
        return group.people.controls.frozen
    left, number = moves_left(group), len(group.members.partitions.owned_by(rolling[0]))
    # A consumer that reads more than the budget of an hour moves when nothing of that is used.
    if left is not None and left < min(number, group.settings.moves_per_hour or 0):
        return f"its {counted(number, 'move')} exceed controller.moves_per_hour"
    return ""


def _free_slots(group: Group, taken: Collection[Slot]) -> list[Slot]:
    """Return the slots that may take over: idle ready ones first, then those that start.

    One whose process has died comes before one that does not run: its template may be the cause.
    """
    pinned = group.people.controls.rules.pins.values()
    reserved = group.members.owning().union(taken, approved_slots(group), pinned, _leaving(group))
    slots = map(Slot, range(group.settings.max_slots))
    free = [slot for slot in slots if slot not in reserved and group.is_open(slot)]
    members = {slot: group.members.get(slot) for slot in free}
    has_begun = {s for s, m in members.items() if m.hello is not None and m.hello != m.goodbye}
    return sorted(free, key=lambda s: (not members[s].usable, s not in has_begun, s))


def _leaving(group: Group) -> frozenset[Slot]:
    """Return the slots that are on their way out: they take nothing over, and are free soon."""
    members, living = group.members, group.members.living()
    leaving = frozenset(slot for slot in living if members.get(slot).leaving)
    return living - group.fleet.desired - members.owning() | leaving


# --- the plan -----------------------------------------------------------------------------------


def plan_with_replacements(
    group: Group, packing: Assignment, triggered_by: tuple[str, ...]
) -> Plan | Rejected:
    """Return what becomes of a packing's result, with who is to be replaced now replaced in it."""
    if not group.fleet.disruptions or group.settings.mode != "act":
        return plans.plan(group, packing, triggered_by)
    packed = set(packing.values())
    others = {s: other for s, other in replacements(group, packed).items() if s in packed}
    target = {partition: others.get(slot, slot) for partition, slot in packing.items()}
    result = plans.plan(group, target, triggered_by)
    if isinstance(result, Rejected):
        return result
    used = set(result.target.values())
    kept = {slot: other for slot, other in others.items() if other in used}
    return replace(result, reasons=(*replacement_reasons(group, kept), *result.reasons))


def _replacement_plan(group: Group, others: Replacements) -> Plan | None:
    """Return the plan that has others take over.

    Partitions without a reader get one, too. All others stay where they are.
    """
    target = {p: others.get(slot, slot) for p, slot in group.owners().items()}
    if unread := group.unread():
        ready = [slot for slot in group.members.usable() if slot not in others]
        target = find_readers(group, target, unread, ready or sorted(others.values()))
    return forced_plan(group, target, replacement_reasons(group, others))


def replacement_reasons(group: Group, others: Replacements) -> tuple[str, ...]:
    """Return why consumers are replaced, a sentence each."""
    reasons = []
    for slot, other in sorted(others.items()):
        text = f"consumer {other} replaces consumer {slot}: {group.fleet.disruptions[slot].reason}"
        if slot not in group.fleet.ending():
            text += f", {_progress(group)}"
        reasons.append(text)
    return tuple(reasons)


def _progress(group: Group) -> str:
    """Return how far a new template has come, by the consumers that read."""
    reading = group.members.partitions.slots
    older = len(group.fleet.rolling() & reading)
    return f"{len(reading) - older} of {len(reading)} done"


def replace_approved(group: Group, others: Replacements) -> Update:
    """Put replacements into the approved plan, which stays the same plan: its bins are the same.

    What a consumer reads by no approved plan stays with its replacement, too.
    """
    plan, approved = group.people.approved_plan, _approved(group)
    if plan is None or not approved:
        return group, ()
    read = {p: slot for slot in others for p in group.members.partitions.owned_by(slot)}
    targets = {p: others.get(s, s) for p, s in {**read, **approved}.items()}
    accepted = replace(plan, term=group.term or 0, targets=targets)
    people = replace(group.people, approved_plan=accepted)
    return replace(group, people=people), (Publish(accepted),)


def begin_replacements(group: Group) -> tuple[Group, Plan | None, tuple[Action, ...]]:
    """Return the plan that replaces consumers now, if any, and what is published before it."""
    others = replacements(group) if group.fleet.disruptions else {}
    if not others or (plan := _replacement_plan(group, others)) is None:
        return group, None, ()
    group, accepted = replace_approved(group, others)
    return group, plan, accepted


# --- restarts in place, where nothing can take over beforehand ------------------------------------


def permit_renewals(group: Group) -> Update:
    """Have the fleet restart the disrupted consumers that need no replacement, or have none."""
    slots = _renewable(group)
    if slots == group.fleet.renewable:
        return group, ()
    return replace(group, fleet=replace(group.fleet, renewable=slots)), (Renew(slots),)


def _renewable(group: Group) -> frozenset[Slot]:
    if not group.fleet.disruptions:
        return frozenset()
    older = group.fleet.rolling()
    if group.people.controls.frozen:
        older = frozenset()
    if group.settings.mode == "observe":
        return older
    idle, others = older - group.members.partitions.slots, replacements(group)
    waiting = () if _leaving(group) else _to_replace(group)
    return idle.union(slot for slot in waiting if slot not in others)


def roll_held(group: Group) -> tuple[str, ...]:
    """Return what keeps consumers of an older template from being replaced, a sentence or none."""
    if not (waits := _roll_waits(group)):
        return ()
    slot = _rolling(group)[0]
    reason = group.fleet.disruptions[slot].reason
    return (f"{waits}; waits: consumer {slot}: {reason}, {_progress(group)}",)
