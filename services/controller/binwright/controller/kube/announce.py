"""What a reign asks for, as Events about its group object."""

from collections.abc import Callable

from binwright.controller.kube.api import Obj, now
from binwright.controller.kube.approvals import proposed
from binwright.controller.kube.deployment import Owner
from binwright.controller.kube.events import Recorder
from binwright.controller.kube.status import StatusWriter
from binwright.core.events import Action, Publish, Say
from binwright.core.messages import Dead, Planned, Proposed


def observer(recorder: Recorder, owner: Owner, writer: StatusWriter) -> Callable[[Action], None]:
    """Return what a controller is to tell of everything that its machine asks for."""

    def note(reason: str, told: str, *, warning: bool = False) -> None:
        recorder.note(owner, reason, told, warning=warning)

    def observe(action: Action) -> None:
        match action:
            case Publish(message=Planned() as plan):
                note("PlanAccepted", f"{'; '.join(plan.reasons)} ({len(plan.moves)} moves)")
                writer.plan = _plan(plan, carried_out=True)
            case Publish(message=Proposed() as plan):
                writer.plan = _plan(plan, carried_out=False)
            case Publish(message=Dead(slot=slot)):
                note("ConsumerDead", f"slot {slot} was silent too long", warning=True)
            case Say(event="plan.proposed", facts=facts):
                note("PlanProposed", proposed(owner, facts))
            case Say(event="plan.approved", facts={"plan": number, "by": by}):
                note("PlanApproved", f"plan {number}, by {by}")
            case Say(event="plan.withdrawn", facts={"plan": number, "reason": reason} as facts):
                told = f"plan {number} is out of date: {reason}"
                note("PlanWithdrawn", told, warning=bool(facts["approved"]))
            case Say(event="approval.refused", facts={"plan": number, "reason": reason}):
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
