"""The messages that publish plans."""

from binwright.controller.decide.group import Group
from binwright.controller.decide.plans.evaluation import Plan
from binwright.protocol.messages import Planned, Proposed
from binwright.protocol.model import BytesPerSecond


def planned_message(group: Group, plan: Plan) -> Planned:
    """Return the message for a plan that is carried out."""
    approved = group.approved_plan if group.config.mode != "act" else None
    return Planned(
        term=group.term or 0,
        reasons=plan.reasons,
        consumers=len(set(plan.target.values())),
        moves={p: slot for p, (_, slot) in plan.moves.items()},
        rscore=plan.rscore,
        rates={p: group.rates.get(p, BytesPerSecond(0.0)) for p in plan.target},
        targets=plan.target,
        keeps=approved.plan if approved else None,
    )


def proposed_message(group: Group, plan: Plan) -> Proposed:
    """Return the message for a plan that needs approval, or is only published (mode `observe`)."""
    return Proposed(
        term=group.term or 0,
        reasons=plan.reasons,
        consumers=len(set(plan.target.values())),
        rscore=plan.rscore,
        owners=group.assignment(),
        targets=plan.target,
        waits=group.config.mode == "approve",
    )
