"""Plans that are proposed, approved, accepted and withdrawn, as their records say it.

Plans and approvals have topics of their own, so an approval may be read before the plan that it
names.
"""

from dataclasses import dataclass, replace

from binwright.group.group import Group, Proposal
from binwright.protocol.metadata import Accepted, Planned, Proposed, Withdrawn
from binwright.protocol.orders import Approved

PlanRecord = Proposed | Approved | Accepted | Withdrawn | Planned


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


def fold_plan(group: Group, message: PlanRecord, offset: int) -> tuple[Group, Changes]:
    """Return the group after a record about plans, and what has become of an approval."""
    match message:
        case Proposed():
            early = group.early_approval
            group = replace(group, proposal=Proposal(message, offset))
            changes: Changes = ()
            if early is not None:
                group, changes = _approval(group, early)
            if group.term is None:
                return group, changes
            return replace(group, early_approval=None), changes
        case Approved():
            return _approval(group, message)
        case Accepted():
            return replace(_without_proposal(group, message.plan), approved_plan=message), ()
        case Withdrawn(plan=number):
            return _without_proposal(group, number), ()
        case _:
            moved = message.moved if group.term is None else group.moved
            group = replace(group, last_plan=message.targets, moved=moved)
            return (_void_approvals(group, message.term) if message.keeps is None else group), ()


def _approval(group: Group, message: Approved) -> tuple[Group, Changes]:
    number, proposal = message.plan, group.proposal
    if proposal is not None and proposal.number == number and proposal.plan.waits:
        changes = () if proposal.approved else (PlanApproved(number, message.by),)
        return replace(group, proposal=replace(proposal, approved=True)), changes
    if group.approved_plan is not None and number <= group.approved_plan.plan:
        return group, ()  # a repeated approval of a plan already accepted
    if group.term is None or (proposal is not None and proposal.number is None):
        return replace(group, early_approval=message), ()
    if proposal is None:
        reason = "no plan waits"
    elif proposal.number != number:
        reason = f"it is not the plan that waits: that is {proposal.number}"
    else:
        reason = "the group's mode is to observe only"
    return group, (ApprovalRefused(number, message.by, reason),)


def _without_proposal(group: Group, number: int) -> Group:
    """Drop the proposed plan if its number is this one or lower."""
    proposal = group.proposal
    done = proposal is not None and proposal.number is not None and proposal.number <= number
    return replace(group, proposal=None) if done else group


def _void_approvals(group: Group, term: int) -> Group:
    """Void the approved plan and the proposal: a controller carried out a plan without approval.

    A plan of an older term than theirs has no effect: that controller had stepped down.
    """
    approved, proposal = group.approved_plan, group.proposal
    if approved is not None and approved.term <= term:
        approved = replace(approved, targets={})
    if proposal is not None and proposal.number is not None and proposal.plan.term <= term:
        proposal = None
    return replace(group, approved_plan=approved, proposal=proposal)
