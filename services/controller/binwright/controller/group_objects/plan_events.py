"""Reports the leader's plans and dead consumers as Events about the group's object."""

from collections.abc import Callable

from binwright.controller.decide.events import Action, Log, Publish
from binwright.controller.fleets.kubernetes.deployment import Owner
from binwright.controller.group_objects.approvals import proposal_text
from binwright.controller.group_objects.status import StatusWriter
from binwright.kubernetes.api import Obj, now
from binwright.kubernetes.events import EventRecorder
from binwright.protocol.messages import Dead, Planned, Proposed


def observer(
    recorder: EventRecorder, owner: Owner, writer: StatusWriter
) -> Callable[[Action], None]:
    """Return the `observe` callback of a controller: it records Events, and the status' last plan.

    Args:
        recorder: Writes the Events.
        owner: The group's object.
        writer: Writes the object's status.
    """

    def note(reason: str, text: str, *, warning: bool = False) -> None:
        recorder.note(owner, reason, text, warning=warning)

    def observe(action: Action) -> None:
        match action:
            case Publish(message=Planned() as plan):
                note("PlanAccepted", f"{'; '.join(plan.reasons)} ({len(plan.moves)} moves)")
                writer.plan = _plan(plan, carried_out=True)
            case Publish(message=Proposed() as plan):
                writer.plan = _plan(plan, carried_out=False)
            case Publish(message=Dead(slot=slot)):
                note("ConsumerDead", f"slot {slot} was silent too long", warning=True)
            case Log(event="plan.proposed", facts=facts):
                note("PlanProposed", proposal_text(owner, facts))
            case Log(event="plan.approved", facts={"plan": number, "by": by}):
                note("PlanApproved", f"plan {number}, by {by}")
            case Log(event="plan.withdrawn", facts={"plan": number, "reason": reason} as facts):
                text = f"plan {number} is out of date: {reason}"
                note("PlanWithdrawn", text, warning=bool(facts["approved"]))
            case Log(event="approval.refused", facts={"plan": number, "reason": reason}):
                note("ApprovalRefused", f"plan {number}: {reason}", warning=True)
            case _:
                pass

    return observe


def _plan(plan: Planned | Proposed, *, carried_out: bool) -> Obj:
    return {
        "time": now(),
        "carriedOut": carried_out,
        "reasons": list(plan.reasons),
        "consumers": plan.consumers,
        "moves": len(plan.moves),
    }
