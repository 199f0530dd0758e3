"""Shows a group's plans on its object, as Events and in the status; people approve them there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from binwright.controller.decide import apply, approval, orders
from binwright.controller.decide.events import Action, Publish
from binwright.controller.decide.states import State
from binwright.group.people import Proposal
from binwright.kubernetes.events import EventRecorder
from binwright.kubernetes.objects import Obj, Owner, now
from binwright.kubernetes.status import APPROVE_ANNOTATION, Approvals
from binwright.protocol.errors import UserError
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Dead, Planned, Proposed

MAX_SHOWN = 100  # changes in a status; an object must not exceed about a megabyte


class Approver(Protocol):
    """The group's leader, `leader.Controller`."""

    @property
    def state(self) -> State:
        """Return the machine's state."""

    def approve(self, plan: int, by: str) -> None:
        """Publish that a person approves this plan."""


@dataclass
class PlanEvents:
    """Records a leader's plans and dead consumers as Events about the group's object.

    Attributes:
        recorder: Writes the Events.
        owner: The group's object.
        last_plan: The last plan, as the status shows it.
    """

    recorder: EventRecorder
    owner: Owner
    last_plan: Obj | None

    def observe(self, action: Action) -> None:
        """Fit the `observe` callback of a controller."""
        match action:
            case Publish(message=Planned() as plan):
                text = f"{'; '.join(plan.reasons)} ({len(plan.moves)} moves)"
                self._note("PlanAccepted", text)
                self.last_plan = _summary(plan, carried_out=True)
            case Publish(message=Proposed() as plan):
                self.last_plan = _summary(plan, carried_out=False)
            case Publish(message=Dead(slot=slot)):
                self._note("ConsumerDead", f"slot {slot} was silent too long", warning=True)
            case Log(event=apply.PLAN_PROPOSED, facts=facts):
                self._note("PlanProposed", _proposal_text(self.owner, facts))
            case Log(event=apply.PLAN_APPROVED, facts={"plan": number, "by": by}):
                self._note("PlanApproved", f"plan {number}, by {by}")
            case Log(
                event=approval.PLAN_WITHDRAWN, facts={"plan": number, "reason": reason} as facts
            ):
                text = f"plan {number} is out of date: {reason}"
                self._note("PlanWithdrawn", text, warning=bool(facts["approved"]))
            case Log(event=orders.PLAN_HELD, facts={"reasons": tuple() as reasons}):
                self._note("PlanHeld", "; ".join(reasons))
            case Log(event=apply.APPROVAL_REFUSED, facts={"plan": number, "reason": reason}):
                self._note("ApprovalRefused", f"plan {number}: {reason}", warning=True)
            case _:
                pass

    def _note(self, reason: str, text: str, *, warning: bool = False) -> None:
        self.recorder.note(self.owner, reason, text, warning=warning)


def _summary(plan: Planned | Proposed, *, carried_out: bool) -> Obj:
    return {
        "time": now(),
        "carriedOut": carried_out,
        "reasons": list(plan.reasons),
        "consumers": plan.consumers,
        "moves": len(plan.moves),
    }


def _proposal_text(owner: Owner, facts: Mapping[str, object]) -> str:
    """Return the text of the Event about a proposed plan; `facts` are those of the log event."""
    reasons = facts["reasons"]
    assert isinstance(reasons, tuple)
    text = f"plan {facts['plan']}: {'; '.join(reasons)} ({facts['moves']} moves)"
    if not facts["waits"]:
        return text
    annotation = f"{APPROVE_ANNOTATION}={facts['plan']} --overwrite"
    command = f"kubectl -n {owner.namespace} annotate consumergroup {owner.name} {annotation}"
    return f"{text}; to approve: {command}"


def shown_proposal(proposal: Proposal | None, known: Obj | None) -> Obj | None:
    """Return the group's proposal as the status shows it; `known` is the one it shows now."""
    if proposal is None or proposal.number is None:
        return None
    plan = proposal.plan
    return {
        "plan": proposal.number,
        "time": known["time"] if known and known.get("plan") == proposal.number else now(),
        "waits": plan.waits,
        "approved": proposal.approved,
        "reasons": list(plan.reasons),
        "consumers": plan.consumers,
        "moves": len(plan.moves),
        "starts": len(plan.targets.keys() - plan.owners.keys()),
        "changes": _changes(plan),
    }


def _changes(plan: Proposed) -> list[Obj]:
    moves = plan.moves
    changes: list[Obj] = []
    for partition, slot in sorted(plan.targets.items()):
        if partition in moves:
            changes.append({"partition": str(partition), "from": moves[partition][0], "to": slot})
        elif partition not in plan.owners:
            changes.append({"partition": str(partition), "to": slot})
    return changes[:MAX_SHOWN]


def handle_annotation(approvals: Approvals, obj: Obj | None, leader: Approver) -> str | None:
    """Approve the plan that the object's annotation names; return why that is impossible."""
    group = leader.state.group
    if group.term is None:
        return None
    try:
        number = approvals.number(obj, "plan")
    except UserError as exc:
        return str(exc)
    if number is None:
        return None
    proposal = group.people.proposal
    if proposal is not None and proposal.number == number and proposal.plan.waits:
        # It is handled once the approval was read: before, it may be lost with this process.
        if not proposal.approved:
            leader.approve(number, f"the annotation {APPROVE_ANNOTATION}")
        return None
    approvals.handled(obj)
    if group.people.approved_plan is not None and number <= group.people.approved_plan.plan:
        return None  # the plan was approved, and is carried out or was
    waiting = proposal.number if proposal is not None and proposal.plan.waits else None
    return f"plan {number} does not wait; " + (
        "none does" if waiting is None else f"plan {waiting} does"
    )
