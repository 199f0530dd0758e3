"""Plans that need approval, and the last approved plan, which the controller restores.

In mode `approve` the controller by itself only restores the last approved plan and assigns
partitions without a reader. All of this is rebuilt from records (see `group.people`), so the
number of a proposed plan stays valid when another controller takes over.
"""

from dataclasses import dataclass, replace

from binwright.controller.decide.drain import forced_plan
from binwright.controller.decide.events import Action, Publish, Reconcile, Update
from binwright.controller.decide.moves import find_readers
from binwright.group.controls import Controls
from binwright.group.group import Group
from binwright.group.ownership import PartitionOwnership
from binwright.group.people import Proposal
from binwright.group.plans import Plan, Rejected, evaluate
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.metadata import Accepted, Proposed, Withdrawn
from binwright.protocol.model import Slot, TopicPartition

PLAN_WITHDRAWN = LogEvent.info("plan.withdrawn", "A proposed plan is out of date.")

# --- whether a proposed plan is still valid ----------------------------------------------------


def outdated_reason(group: Group, plan: Proposed) -> str | None:
    """Return what has changed since the plan was made; None: nothing that matters."""
    if plan.waits != (group.settings.mode == "approve"):
        return "the group's mode has changed"
    if plan.targets.keys() != set(group.existing()):
        return "partitions have come or gone"
    if plan.owners != group.members.assignment():
        return "partitions have other readers"
    return None


def reevaluate(group: Group, plan: Proposed, triggered_by: tuple[str, ...]) -> Plan | Rejected:
    """Evaluate a proposed plan again, at the present rates."""
    rates = group.needs(plan.targets)
    loads: dict[Slot, list[float]] = {}
    for partition, slot in plan.targets.items():
        loads.setdefault(slot, []).append(rates[partition])
    full = len(loads) >= group.settings.max_slots  # then no better plan exists
    for slot, own_rates in sorted(loads.items()):
        share = sum(own_rates) / group.config.limits.for_slot(slot)
        if not full and len(own_rates) > 1 and share > 1:
            return Rejected(f"consumer {slot} would carry {share:.1%} of its limit by now")
    return evaluate(group, plan.targets, triggered_by)


def accept_proposal(group: Group) -> Update:
    """Make the proposed plan the approved one.

    Raises:
        ValueError: No proposed plan was read back.
    """
    number, proposal = _proposal_read_back(group)
    accepted = Accepted(term=group.term or 0, plan=number, targets=proposal.plan.targets)
    people = replace(group.people, proposal=None, approved_plan=accepted)
    return replace(group, people=people), (Publish(accepted),)


def withdraw_proposal(group: Group, reason: str) -> Update:
    """Withdraw the proposed plan and publish the reason.

    Raises:
        ValueError: No proposed plan was read back.
    """
    number, proposal = _proposal_read_back(group)
    facts = {"plan": number, "approved": proposal.approved, "reason": reason}
    withdrawn = Withdrawn(term=group.term or 0, plan=number, reason=reason)
    people = replace(group.people, proposal=None)
    return replace(group, people=people), (Publish(withdrawn), Log(PLAN_WITHDRAWN, facts))


def _proposal_read_back(group: Group) -> tuple[int, Proposal]:
    """Return the proposed plan and its number; raise `ValueError` if none was read back."""
    proposal = group.people.proposal
    if proposal is None or proposal.number is None:
        raise ValueError("no plan waits")
    return proposal.number, proposal


# --- what needs no approval --------------------------------------------------------------------


def _approved_targets(group: Group) -> dict[TopicPartition, Slot]:
    """Return the assignment to restore, without slots above `max_slots`, as far as orders allow.

    What is pinned goes to its pin instead: an order needs no approval.
    """
    if group.settings.mode != "approve" or group.people.approved_plan is None:
        return {}
    most, approved = group.settings.max_slots, group.people.approved_plan.targets
    if not (rules := group.people.controls.rules):
        return {p: slot for p, slot in approved.items() if slot < most}
    states = group.members.partitions
    readers = {p: at.slot for p, at in states.items()}
    wanted = {p: pin for p in states if (pin := rules.pin(p)) is not None}
    return {
        p: slot
        for p, slot in {**approved, **wanted}.items()
        if slot < most and rules.allow(p, slot, readers.get(p))
    }


def approved_slots(group: Group) -> frozenset[Slot]:
    """Return the slots that must run until another plan is approved."""
    return frozenset(_approved_targets(group).values())


def retire_drained(group: Group) -> Update:
    """End the consumers that own nothing, and were drained by an order or are on nodes that go."""
    closed = group.people.controls.rules.drained | group.fleet.ending()
    idle = closed & (group.members.living() - group.members.owning())
    if group.settings.mode == "observe" or idle == group.fleet.retired:
        return group, ()
    running = (group.fleet.desired | group.members.owning() | approved_slots(group)) - idle
    group = replace(group, fleet=replace(group.fleet, retired=idle))
    return group, (Reconcile(running),) if idle else ()


def displaced(group: Group) -> bool:
    """Whether a partition is not at its approved slot, as while a consumer restarts.

    This is temporary, so until it is over no plan is made or withdrawn.
    """
    states = group.members.partitions
    return any(
        p in states and states[p].slot != slot for p, slot in _approved_targets(group).items()
    )


@dataclass(frozen=True, slots=True)
class RestoredState:
    """What a group looked like when it was as approved, as far as its consumers are ready.

    Comparing a group with this is O(slots); checking it again would be O(partitions) at each tick.
    """

    partitions: PartitionOwnership
    plan: Accepted | None
    usable: tuple[Slot, ...]
    controls: Controls
    displaced: bool

    @classmethod
    def of(cls, group: Group) -> "RestoredState":
        """Return the state of a group in which nothing is to be restored."""
        members, people = group.members, group.people
        usable = tuple(members.usable())
        plan, controls = people.approved_plan, people.controls
        return cls(members.partitions, plan, usable, controls, displaced(group))

    def matches(self, group: Group) -> bool:
        """Whether this group has not changed, so that nothing is to be restored either."""
        members, people = group.members, group.people
        same = members.partitions is self.partitions and people.approved_plan is self.plan
        same = same and people.controls == self.controls
        return same and not group.gone_partitions() and tuple(members.usable()) == self.usable


def inherit_approved(
    group: Group, living: frozenset[Slot]
) -> tuple[Group, frozenset[Slot], tuple[Action, ...]]:
    """Return the group, the slots that run when a leadership begins, and what to publish.

    In mode `approve` without an approved plan, the present assignment becomes the approved one.
    """
    if group.settings.mode != "approve":
        return group, living, ()
    owners = group.members.assignment()
    if group.people.approved_plan is not None and group.people.approved_plan.targets:
        return group, approved_slots(group) | group.members.owning(), ()
    if not owners:
        return group, living, ()
    term = group.term or 0
    accepted = Accepted(term=term, plan=term, targets=owners)
    people = replace(group.people, approved_plan=accepted, proposal=None)
    return replace(group, people=people), living, (Publish(accepted),)


def restore_plan(
    group: Group, last: RestoredState | None
) -> tuple[Plan | None, RestoredState | None]:
    """Return the plan that restores the approved one; with none to make, the state to compare."""
    if group.settings.mode != "approve":
        return None, None
    if last is not None and last.matches(group):
        return None, last
    plan = _restoring_plan(group)
    return plan, RestoredState.of(group) if plan is None else None


def _restoring_plan(group: Group) -> Plan | None:
    """Return the plan that restores the last approved one; None if nothing would change.

    A partition goes to its approved slot if that is ready; else it stays with its reader, unless
    that is drained; else it goes to the least loaded ready slot, without waiting. With none ready,
    partitions wait for the approved slots to start. The slot of a pin is started. Partitions that
    are gone are stopped.
    """
    members, rules = group.members, group.people.controls.rules
    current, approved_targets = members.assignment(), _approved_targets(group)
    ready, living = frozenset(members.usable()), members.living()
    assigned: dict[TopicPartition, Slot] = {}
    unassigned: list[TopicPartition] = []
    for partition in sorted(group.existing()):
        approved, reader = approved_targets.get(partition), current.get(partition)
        is_pinned = approved is not None and approved == rules.pin(partition)
        starts = approved not in living if is_pinned else reader is None and not ready
        if approved is not None and (approved in ready or starts):
            assigned[partition] = approved
        elif reader is not None and reader not in rules.drained:
            assigned[partition] = reader
        else:
            unassigned.append(partition)
    candidates = sorted(ready or set(approved_targets.values()))
    if unassigned and not candidates:
        return None
    target = find_readers(group, assigned, unassigned, candidates)
    number = group.people.approved_plan.plan if group.people.approved_plan else None
    return forced_plan(
        group, target, ("finds readers" if number is None else f"keeps plan {number}",)
    )
