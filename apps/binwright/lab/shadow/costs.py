"""What simulations have cost, and which of them costs least for as much in time."""

from collections.abc import Iterable

from binwright.lab.simulation.outcome import Outcome
from binwright.protocol.orders import SimulatedCost

LEAST = 0.005
"""Share of the replica-minutes that another rule or setting must save to be worth it."""
LATE = 0.0005
"""Share of the load that it may read late beyond what it is compared with."""


def cost_of(outcome: Outcome, sla_s: float) -> SimulatedCost:
    """Return the figures of a simulation; the change of its settings follows its policy's name."""
    score = outcome.score(sla_s)
    policy, _, change = outcome.policy.partition(" ")
    rule, _, threshold = policy.partition(":")
    return SimulatedCost(
        rule=rule,
        change=f"lagThreshold={threshold}" if threshold else change,
        replica_minutes=score.replica_minutes,
        within_sla=1.0 if score.within_sla is None else score.within_sla,
    )


def cheapest(costs: Iterable[SimulatedCost], within: float) -> SimulatedCost | None:
    """Return what costs least of those that read this share in time; None: none of them does."""
    in_time = [cost for cost in costs if cost.within_sla >= within - LATE]
    return min(in_time, key=lambda cost: cost.replica_minutes, default=None)


def saves(cost: SimulatedCost, own: SimulatedCost) -> bool:
    """Return whether it saves enough to be worth a change."""
    return cost.replica_minutes <= (1 - LEAST) * own.replica_minutes
