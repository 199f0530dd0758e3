"""The HorizontalPodAutoscaler's rule for CPU: replicas in proportion to their utilisation.

Source: Kubernetes documentation, "Horizontal Pod Autoscaling", algorithm details. Wrap it in
`Stabilised`.
"""

from dataclasses import dataclass
from math import ceil

from binwright.scaler.decide.policies.lag_rule import TOLERANCE
from binwright.scaler.decide.policy import Decision, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuRule:
    """Replicas times utilisation over `target`, rounded up."""

    target: float  # share of the CPU request, > 0
    tolerance: float = TOLERANCE

    def decide(self, observation: Observation) -> "tuple[Decision, CpuRule]":
        """Return the decision.

        Replicas that are not ready are left out; where the others ask for more, they count as idle.
        """
        ready = len(observation.utilisation)
        if not ready:
            return Decision(observation.replicas, "no replica is ready"), self
        used = sum(observation.utilisation)
        ratio = used / ready / self.target
        reason = f"utilisation {used / ready:.0%}, target {self.target:.0%}"
        counted = ready
        if ratio > 1 and observation.replicas > ready:
            counted = observation.replicas
            ratio = used / counted / self.target
            if ratio < 1:
                return Decision(observation.replicas, f"{reason}: replicas are starting"), self
        if abs(1 - ratio) <= self.tolerance:
            return Decision(observation.replicas, f"{reason}: within tolerance"), self
        return Decision(max(1, ceil(ratio * counted)), reason), self
