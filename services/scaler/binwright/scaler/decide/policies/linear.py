"""The paper's baseline: replicas in proportion to the arriving rate, whatever the partitions."""

from dataclasses import dataclass
from math import ceil

from binwright.packing.score import ROUNDING
from binwright.scaler.decide.policy import Decision, Observation, total


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
