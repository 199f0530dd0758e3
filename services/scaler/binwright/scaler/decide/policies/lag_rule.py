"""KEDA's rule for Kafka: replicas in proportion to the group's lag.

Source: KEDA's scaler `kafka` with its defaults (no more replicas than partitions), and what the
HorizontalPodAutoscaler makes of an external metric with an average value. Wrap it in `Stabilised`.
"""

from dataclasses import dataclass
from math import ceil

from binwright.scaler.decide.policy import Decision, Observation, total

TOLERANCE = 0.1
"""The HorizontalPodAutoscaler's: a ratio this close to 1 changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LagRule:
    """Total lag over `threshold`, rounded up."""

    threshold: float  # `lagThreshold`: lag for each replica, > 0
    tolerance: float = TOLERANCE

    def decide(self, observation: Observation) -> "tuple[Decision, LagRule]":
        """Return the decision: at least one replica, at most one for each partition."""
        lag, partitions = total(observation.loads.values()).lag, len(observation.loads)
        reason = f"lag {lag:g} at {self.threshold:g} a replica"
        ratio = lag / (self.threshold * observation.replicas)
        if abs(1 - ratio) <= self.tolerance:
            return Decision(observation.replicas, f"{reason}: within tolerance"), self
        wanted = min(partitions, max(1, ceil(lag / self.threshold)))
        return Decision(wanted, reason), self
