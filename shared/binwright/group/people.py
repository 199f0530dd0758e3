"""What people order of a group, and the plans that they see and approve, as records say it.

Plans and approvals have topics of their own, so an approval may be read before the plan that it
names.
"""

from dataclasses import dataclass, field, replace

from binwright.group.config import GroupConfig
from binwright.group.controls import (
    NO_CONTROLS,
    Controls,
    adoptable,
    controls,
    pin_orders,
    with_adopted,
)
from binwright.protocol.metadata import Accepted, Planned, Proposed, Withdrawn
from binwright.protocol.model import Assignment
from binwright.protocol.orders import Approved, GroupOrder, StandingOrders

PlanRecord = Proposed | Approved | Accepted | Withdrawn | Planned


@dataclass(frozen=True, slots=True)
class Proposal:
    """A published plan that is not carried out, or not yet."""

    plan: Proposed
    number: int | None = None  # its record's offset; None: not read back yet
    approved: bool = False


@dataclass(frozen=True, slots=True)
class People:
    """Orders and what they hold back; plans, their approvals, and the budget that they use."""

    wall_ms: int = 0  # the wall clock at the last tick
    orders: StandingOrders = field(default_factory=StandingOrders)
    controls: Controls = NO_CONTROLS  # as of the last tick, or order
    held: tuple[str, ...] = ()  # what orders and settings hold back, as last published
    proposal: Proposal | None = None
    early_approval: Approved | None = None  # of a plan that was not read yet
    approved_plan: Accepted | None = None  # the last one; without targets: it is void
    last_plan: Assignment = field(default_factory=dict)
    """Target of the last plan that was carried out."""
    moved: tuple[tuple[int, int], ...] = ()  # in the last hour: minute since 1970, moves planned
    over_budget: tuple[str, ...] = ()  # what of the last plan waits for the budget

    def with_order(self, order: GroupOrder, config: GroupConfig) -> "People":
        """Return them with an order, which holds at once."""
        return replace(self, orders=self.orders.apply(order)).at(self.wall_ms, config)

    def at(self, wall_ms: int, config: GroupConfig) -> "People":
        """Return them at this time, ms since 1970: some orders have ended, hours have begun."""
        in_force = self.orders.in_force(wall_ms)
        settings = config.settings
        now = controls(
            in_force,
            pin_orders(settings.pins),
            settings.frozen_windows,
            settings.max_slots,
            wall_ms,
        )
        now = with_adopted(now, adoptable(config))
        # The same object if it is the same: it is compared often.
        now = self.controls if now == self.controls else now
        return replace(self, wall_ms=wall_ms, controls=now)


# --- plans --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanApproved:
    """A person has approved the plan that waits."""

    plan: int
    by: str


@dataclass(frozen=True, slots=True)
class ApprovalRefused:
    """A person has approved another plan than the one that waits."""

    plan: int
    by: str
    reason: str


Changes = tuple[PlanApproved | ApprovalRefused, ...]


def fold_plan(
    people: People, message: PlanRecord, offset: int, *, leads: bool
) -> tuple[People, Changes]:
    """Return them after a record about plans, and what has become of an approval.

    Args:
        people: Before the record.
        message: The record.
        offset: Of the record.
        leads: Whether for the controller that leads: it counts its moves itself, and refuses.
    """
    match message:
        case Proposed():
            early = people.early_approval
            people = replace(people, proposal=Proposal(message, offset))
            changes: Changes = ()
            if early is not None:
                people, changes = _approval(people, early, leads=leads)
            return (replace(people, early_approval=None) if leads else people), changes
        case Approved():
            return _approval(people, message, leads=leads)
        case Accepted():
            return replace(_without_proposal(people, message.plan), approved_plan=message), ()
        case Withdrawn(plan=number):
            return _without_proposal(people, number), ()
        case _:
            moved = people.moved if leads else message.moved
            people = replace(people, last_plan=message.targets, moved=moved)
            return (_void_approvals(people, message.term) if message.keeps is None else people), ()


def _approval(people: People, message: Approved, *, leads: bool) -> tuple[People, Changes]:
    number, proposal = message.plan, people.proposal
    if proposal is not None and proposal.number == number and proposal.plan.waits:
        changes = () if proposal.approved else (PlanApproved(number, message.by),)
        return replace(people, proposal=replace(proposal, approved=True)), changes
    if people.approved_plan is not None and number <= people.approved_plan.plan:
        return people, ()  # a repeated approval of a plan already accepted
    if not leads or (proposal is not None and proposal.number is None):
        return replace(people, early_approval=message), ()
    if proposal is None:
        reason = "no plan waits"
    elif proposal.number != number:
        reason = f"it is not the plan that waits: that is {proposal.number}"
    else:
        reason = "the group's mode is to observe only"
    return people, (ApprovalRefused(number, message.by, reason),)


def _without_proposal(people: People, number: int) -> People:
    """Drop the proposed plan if its number is this one or lower."""
    proposal = people.proposal
    done = proposal is not None and proposal.number is not None and proposal.number <= number
    return replace(people, proposal=None) if done else people


def _void_approvals(people: People, term: int) -> People:
    """Void the approved plan and the proposal: a controller carried out a plan without approval.

    A plan of an older term than theirs has no effect: that controller had stepped down.
    """
    approved, proposal = people.approved_plan, people.proposal
    if approved is not None and approved.term <= term:
        approved = replace(approved, targets={})
    if proposal is not None and proposal.number is not None and proposal.plan.term <= term:
        proposal = None
    return replace(people, approved_plan=approved, proposal=proposal)
