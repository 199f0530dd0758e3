"""A plan that waits for approval: in an object's status, approved there by an annotation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from binwright.controller.decide.group import Proposal
from binwright.controller.decide.states import State
from binwright.controller.fleets.kubernetes.deployment import Owner
from binwright.fleets.labels import DOMAIN
from binwright.kubernetes.api import Obj, now
from binwright.protocol.messages import Proposed

APPROVE_ANNOTATION = f"{DOMAIN}/approve"
MAX_SHOWN = 100  # changes in a status; an object must not exceed about a megabyte


class Approver(Protocol):
    """The group's leader, `leader.Controller`."""

    @property
    def state(self) -> State:
        """Return the machine's state."""

    def approve(self, plan: int, by: str) -> None:
        """Publish that a person approves this plan."""


def proposal_text(owner: Owner, facts: Mapping[str, object]) -> str:
    """Return the text of the Event about a proposed plan; `facts` are those of the log event."""
    reasons = facts["reasons"]
    assert isinstance(reasons, tuple)
    text = f"plan {facts['plan']}: {'; '.join(reasons)} ({facts['moves']} moves)"
    if not facts["waits"]:
        return text
    annotation = f"{APPROVE_ANNOTATION}={facts['plan']} --overwrite"
    command = f"kubectl -n {owner.namespace} annotate consumergroup {owner.name} {annotation}"
    return f"{text}; to approve: {command}"


@dataclass
class Approvals:
    """The proposal in one object's status, and the last approval that was handled."""

    proposal: Obj | None = None
    seen: str | None = None  # the annotation's value; in the status, so that it is handled once

    def status(self) -> Obj:
        """Return the status fields; None removes a field."""
        return {"proposal": self.proposal, "approvalSeen": self.seen}

    def show(self, proposal: Proposal | None) -> None:
        """Set the status fields to the group's current proposal."""
        if proposal is None or proposal.number is None:
            self.proposal = None
            return
        known = self.proposal or {}
        since = known["time"] if known.get("plan") == proposal.number else now()
        plan = proposal.plan
        self.proposal = {
            "plan": proposal.number,
            "time": since,
            "waits": plan.waits,
            "approved": proposal.approved,
            "reasons": list(plan.reasons),
            "consumers": plan.consumers,
            "moves": len(plan.moves),
            "starts": len(plan.targets.keys() - plan.owners.keys()),
            "changes": _changes(plan),
        }

    def handle_annotation(self, obj: Obj | None, leader: Approver) -> str | None:
        """Approve the plan that the object's annotation names; return why that is impossible."""
        given = (obj or {"metadata": {}})["metadata"].get("annotations", {}).get(APPROVE_ANNOTATION)
        group = leader.state.group
        if given is None or given == self.seen or group.term is None:
            return None
        if not (given.isascii() and given.isdigit()):
            self.seen = given
            what = f"expected a plan's number, as in status.proposal, got {given!r}"
            return f"{APPROVE_ANNOTATION}: {what}"
        number, proposal = int(given), group.proposal
        if proposal is not None and proposal.number == number and proposal.plan.waits:
            # `seen` is set once the approval was read: before, it may be lost with this process.
            if not proposal.approved:
                leader.approve(number, f"the annotation {APPROVE_ANNOTATION}")
            return None
        self.seen = given
        if group.approved_plan is not None and number <= group.approved_plan.plan:
            return None  # the plan was approved, and is carried out or was
        waits = proposal.number if proposal is not None and proposal.plan.waits else None
        return f"plan {number} does not wait; " + (
            "none does" if waits is None else f"plan {waits} does"
        )


def _changes(plan: Proposed) -> list[Obj]:
    moves = plan.moves
    found: list[Obj] = []
    for partition, slot in sorted(plan.targets.items()):
        if partition in moves:
            found.append({"partition": str(partition), "from": moves[partition][0], "to": slot})
        elif partition not in plan.owners:
            found.append({"partition": str(partition), "to": slot})
    return found[:MAX_SHOWN]
