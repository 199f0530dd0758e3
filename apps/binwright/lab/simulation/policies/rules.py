"""The rules of others: the paper's Linear, KEDA's for lag, the HorizontalPodAutoscaler's for CPU.

Sources: Ezzeddine, Baude, Huet, CLOSER 2024; KEDA's scaler `kafka` with its defaults (no more
replicas than partitions), and what the HorizontalPodAutoscaler makes of an external metric with an
average value; Kubernetes documentation, "Horizontal Pod Autoscaling", algorithm details and the
defaults of `behavior`. Wrap the autoscaler's rules in `Stabilised`.
"""

from dataclasses import dataclass, replace
from math import ceil

from binwright.packing.score import ROUNDING
from binwright.scaler.decide.policy import Decision, Observation, Policy, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """The total rate over what a replica serves; who reads what is left to the group's assignor."""

    rate: float  # of one replica, per second, > 0: the paper's code has mu * w * f_up
    cooldown_s: float = 10.0

    def decide(self, observation: Observation) -> "tuple[Decision, Linear]":
        """Return the decision, at most a replica for each partition."""
        if observation.cooling(self.cooldown_s):
            return Decision(observation.replicas, "the last change is too recent"), self
        rate = total(observation.loads.values()).rate
        wanted = min(len(observation.loads), max(1, ceil(rate / self.rate - ROUNDING)))
        return Decision(wanted, f"{rate:g}/s at {self.rate:g}/s a replica"), self


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stabilised:
    """A rule with stabilisation windows and a limit on how fast replicas are added."""

    rule: Policy
    most: int  # `maxReplicas`
    least: int = 1  # `minReplicas`
    up_window_s: float = 0.0
    down_window_s: float = 300.0
    up_replicas: int = 4  # that may be added within `period_s`
    up_share: float = 1.0  # or this share of those at its start, if that is more
    period_s: float = 15.0
    recommended: tuple[tuple[float, int], ...] = ()  # time and replicas, oldest first
    added: tuple[tuple[float, int], ...] = ()

    def decide(self, observation: Observation) -> "tuple[Decision, Stabilised]":
        """Return the decision, and this with what it recommended."""
        now, current = observation.time_s, observation.replicas
        wanted, rule = self.rule.decide(observation)
        window_s = max(self.up_window_s, self.down_window_s)
        before = [one for one in self.recommended if now - one[0] < window_s]
        lowest = min([wanted.replicas, *(n for at, n in before if now - at < self.up_window_s)])
        highest = max([wanted.replicas, *(n for at, n in before if now - at < self.down_window_s)])
        recommended = (*before, (now, wanted.replicas))
        replicas = min(max(current, lowest), highest)
        replicas = max(self.least, min(self.most, replicas))
        added = tuple(one for one in self.added if now - one[0] < self.period_s)
        replicas = min(replicas, max(current, self._limit(current - sum(n for _, n in added))))
        if replicas > current:
            added += ((now, replicas - current),)
        held = "" if replicas == wanted.replicas else f"; stabilised to {replicas}"
        decision = Decision(replicas, wanted.reason + held)
        return decision, replace(self, rule=rule, recommended=recommended, added=added)

    def _limit(self, start: int) -> int:
        return max(start + self.up_replicas, ceil(start * (1 + self.up_share)))
