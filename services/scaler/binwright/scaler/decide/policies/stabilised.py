"""What the HorizontalPodAutoscaler does with a rule's result before it scales.

Source: Kubernetes documentation, "Horizontal Pod Autoscaling", and the defaults of `behavior`: up
at once, by at most 4 replicas or all of them again within 15 s; down to the highest that was
recommended within the last 5 minutes.
"""

from dataclasses import dataclass, replace
from math import ceil

from binwright.scaler.decide.policy import Decision, Observation, Policy


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
