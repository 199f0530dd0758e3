"""A plan that waits, in an object's status, and the annotation by which a person approves it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from binwright.controller.kube.api import Obj, now
from binwright.controller.kube.deployment import DOMAIN, Owner
from binwright.core.group import Offer
from binwright.core.messages import Proposed
from binwright.core.states import State

APPROVE_NOTE = f"{DOMAIN}/approve"
SHOWN = 100  # moves in a status; an object has room for little more than a megabyte


class Approver(Protocol):
    """Whoever rules the group."""

    @property
    def state(self) -> State:
        """Return where the machine is."""

    def approve(self, plan: int, by: str) -> None:
        """Say that a person wants this plan."""


def proposed(owner: Owner, facts: Mapping[str, object]) -> str:
    """Return what an Event says of a plan that was proposed."""
    reasons = facts["reasons"]
    assert isinstance(reasons, tuple)
    told = f"plan {facts['plan']}: {'; '.join(reasons)} ({facts['moves']} moves)"
    if not facts["waits"]:
        return told
    note = f"{APPROVE_NOTE}={facts['plan']} --overwrite"
    how = f"kubectl -n {owner.namespace} annotate consumergroup {owner.name} {note}"
    return f"{told}; to approve: {how}"


@dataclass
class Approvals:
    """What one object shows of a plan that waits, and which approval was dealt with."""

    proposal: Obj | None = None
    seen: str | None = None  # an annotation's value; kept in the status, so dealt with once

    def status(self) -> Obj:
        """Return the fields; None takes one away."""
        return {"proposal": self.proposal, "approvalSeen": self.seen}

    def show(self, offer: Offer | None) -> None:
        """Take what waits now."""
        if offer is None or offer.number is None:
            self.proposal = None
            return
        known = self.proposal or {}
        since = known["time"] if known.get("plan") == offer.number else now()
        plan = offer.plan
        self.proposal = {
            "plan": offer.number,
            "time": since,
            "waits": plan.waits,
            "approved": offer.approved,
            "reasons": list(plan.reasons),
            "consumers": plan.consumers,
            "moves": len(plan.moves),
            "starts": len(plan.targets.keys() - plan.owners.keys()),
            "changes": _changes(plan),
        }

    def heed(self, obj: Obj | None, ruler: Approver) -> str | None:
        """Pass on what the object's annotation approves; return why it cannot be."""
        given = (obj or {"metadata": {}})["metadata"].get("annotations", {}).get(APPROVE_NOTE)
        group = ruler.state.group
        if given is None or given == self.seen or group.term is None:
            return None
        if not (given.isascii() and given.isdigit()):
            self.seen = given
            return f"{APPROVE_NOTE}: expected a plan's number, as in status.proposal, got {given!r}"
        number, offer = int(given), group.offer
        if offer is not None and offer.number == number and offer.plan.waits:
            # Until it has been heard: a word that was not sent yet may be lost with us.
            if not offer.approved:
                ruler.approve(number, f"the annotation {APPROVE_NOTE}")
            return None
        self.seen = given
        if group.kept is not None and number <= group.kept.plan:
            return None  # it is carried out
        waits = offer.number if offer is not None and offer.plan.waits else None
        return f"plan {number} does not wait; " + (
            "none does" if waits is None else f"plan {waits} does"
        )


def _changes(plan: Proposed) -> list[Obj]:
    moves = plan.moves
    found: list[Obj] = []
    for partition, heir in sorted(plan.targets.items()):
        if partition in moves:
            found.append({"partition": str(partition), "from": moves[partition][0], "to": heir})
        elif partition not in plan.owners:
            found.append({"partition": str(partition), "to": heir})
    return found[:SHOWN]
