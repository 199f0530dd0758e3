"""Plans as messages."""

from binwright.core.group import Group
from binwright.core.messages import Planned, Proposed
from binwright.core.model import BytesPerSecond
from binwright.core.plan import Plan


def planned(group: Group, plan: Plan) -> Planned:
    """Return what is told of a plan that goes ahead."""
    kept = group.kept if group.rules.mode != "act" else None
    return Planned(
        term=group.term or 0,
        reasons=plan.reasons,
        consumers=len(set(plan.target.values())),
        moves={p: heir for p, (_, heir) in plan.moves.items()},
        rscore=plan.rscore,
        rates={p: group.rates.get(p, BytesPerSecond(0.0)) for p in plan.target},
        targets=plan.target,
        keeps=kept.plan if kept else None,
    )


def proposed(group: Group, plan: Plan) -> Proposed:
    """Return what is told of a plan that is only shown, or waits for a person."""
    return Proposed(
        term=group.term or 0,
        reasons=plan.reasons,
        consumers=len(set(plan.target.values())),
        rscore=plan.rscore,
        owners=group.assignment(),
        targets=plan.target,
        waits=group.rules.mode == "approve",
    )
