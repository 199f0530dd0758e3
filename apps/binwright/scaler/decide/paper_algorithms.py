"""Algorithms 1 and 2: replicas by packing partitions, by rate and by lag.

Ezzeddine, Baude, Huet, "Tail-Latency Aware and Resource-Efficient Bin Pack Autoscaling for
Distributed Event Queues", CLOSER 2024, doi:10.5220/0012630100003711. Their code lets 10 s pass
after a change (`cooldown_s`), which the paper leaves out.
"""

from dataclasses import dataclass
from enum import Enum
from math import floor

from binwright.packing.score import ROUNDING
from binwright.scaler.decide.least_loaded import (
    Bins,
    assign,
    clip,
    exceeds,
    least_loaded,
    least_loaded_below,
    owned,
)
from binwright.scaler.decide.policy import Bin, Decision, Loads, Observation, ReplicaCapacity


class Action(Enum):
    """What a group needs; the value is the reason."""

    KEEP = "rate and lag fit"
    UP = "rate and lag need more replicas"
    DOWN = "fewer replicas serve rate and lag"
    REASSIGN = "a replica has more than it serves in time, and others have room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm1:
    """Scales up by a packing into larger bins, and down by one into smaller bins."""

    capacity: ReplicaCapacity
    up: float = 0.9  # the paper's f_up: share of a replica that may be filled
    down: float = 0.4  # f_down < f_up: into what all must fit before a replica goes
    cooldown_s: float = 10.0
    reassigns: bool = True  # whether a group of the right size may get another assignment

    def decide(self, observation: Observation) -> "tuple[Decision, Algorithm1]":
        """Return the decision; an assignment only where something changes."""
        if observation.cooling(self.cooldown_s):
            return Decision(observation.replicas, "the last change is too recent"), self
        action, bins = self.needed(observation)
        bins = self.sized(action, bins, observation.loads)
        if action is Action.DOWN and len(bins) >= observation.replicas:
            reason = "a rebalance would leave more lag than fewer replicas serve in time"
            return Decision(observation.replicas, reason), self
        if action is Action.KEEP:
            return Decision(observation.replicas, action.value), self
        # A group that must not shrink gets empty replicas rather than fewer.
        missing = 0 if action is Action.DOWN else max(0, observation.replicas - len(bins))
        bins += ((),) * missing
        return Decision(len(bins), action.value, assign(bins, observation.assignment)), self

    def needed(self, observation: Observation) -> tuple[Action, Bins]:
        """Return what the group needs by its present lag, and the bins for that."""
        larger = self.capacity.bin(self.up)
        bins = least_loaded(observation.loads, larger)
        if len(bins) > observation.replicas:
            return Action.UP, bins
        smaller = self.capacity.bin(self.down)
        fewer = least_loaded_below(observation.replicas, observation.loads, smaller)
        if fewer is not None:
            return Action.DOWN, fewer
        known = {p: s for p, s in observation.assignment.items() if p in observation.loads}
        if self.reassigns and exceeds(owned(known), observation.loads, larger):
            return Action.REASSIGN, bins
        return Action.KEEP, bins

    def sized(self, action: Action, bins: Bins, loads: Loads) -> Bins:
        """Return the bins to change to."""
        del action, loads
        return bins


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm2(Algorithm1):
    """Algorithm 1, but a change is sized for the lag that its own rebalance adds."""

    rebalance_s: float  # the paper's t_r: how long a rebalance leaves partitions unread, >= 0

    def sized(self, action: Action, bins: Bins, loads: Loads) -> Bins:
        """Return a packing of the loads with the lag of a rebalance added."""
        if action is Action.KEEP:
            return bins
        target = self.capacity.bin(self.down if action is Action.DOWN else self.up)
        return least_loaded(self._after_rebalance(loads, target), target)

    def _after_rebalance(self, loads: Loads, target: Bin) -> Loads:
        clipped = {p: clip(load, target) for p, load in loads.items()}
        return {
            p: load._replace(lag=load.lag + floor(load.rate * self.rebalance_s + ROUNDING))
            for p, load in clipped.items()
        }
