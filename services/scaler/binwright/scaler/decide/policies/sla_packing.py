"""binwright's own policy: replicas by packing true rates and the lag that is to be caught up.

What differs from Algorithms 1 and 2. Rate and lag are one load, so a lag that was sampled between
two commits decides nothing. A partition that is faster than a replica is named, because more
replicas do not help it. A change is sized for all that gathers while its own rebalance lasts. A
replica is emptied before it ends, so that none of its partitions waits until others notice.
"""

from dataclasses import dataclass, replace

from binwright.scaler.decide.policies.capacity import ReplicaCapacity
from binwright.scaler.decide.policies.demand import Demand
from binwright.scaler.decide.policies.least_loaded import Bins
from binwright.scaler.decide.policies.owners import assign
from binwright.scaler.decide.policies.policy import Decision, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaPacking:
    """Packs partitions into replicas that keep the SLA, with a gap between up and down."""

    capacity: ReplicaCapacity
    up: float = 0.9  # share of a replica that may be filled before there is one more
    down: float = 0.8  # share into which all must fit before one goes, < `up`
    busy: float = 0.9  # share of its full speed at which a replica still catches up
    catch_up_s: float = 60.0  # within which lag is to be worked off, > 0
    rebalance_s: float = 0.0  # how long a rebalance leaves partitions unread, >= 0
    cooldown_up_s: float = 10.0  # from the last change until replicas are added
    cooldown_down_s: float = 10.0  # until one is taken away, or partitions change their owners
    empty_within_s: float = 30.0  # a replica that is not empty by then is taken away all the same
    least: int = 1
    most: int | None = None  # None: as many as partitions
    late: float = 0.0  # share of the records that may miss the SLA at any time, >= 0 and < 1
    steers: bool = True  # whether the group takes an assignment
    emptying: tuple[int, float] | None = None  # replicas that are to stay, and since when
    assigned_s: float | None = None  # when partitions last changed their owners

    def decide(self, observation: Observation) -> "tuple[Decision, SlaPacking]":
        """Return the decision, and this with what it has begun."""
        decision, after = self._decided(observation)
        if hot := self._demand.hot(observation.loads):
            names = ", ".join(map(str, hot))
            reason = f"{decision.reason}; faster than a replica: {names}"
            decision = replace(decision, reason=reason, hot=hot)
        return decision, after

    @property
    def _demand(self) -> Demand:
        return Demand(
            capacity=self.capacity,
            catch_up_s=self.catch_up_s,
            busy=self.busy,
            least=self.least,
            most=self.most,
            late=self.late,
        )

    def _decided(self, observation: Observation) -> "tuple[Decision, SlaPacking]":
        bins = self._demand.bins(observation.loads, self.up)
        if self.emptying is not None:
            return self._emptied(observation, bins, *self.emptying)
        grows = len(bins) > observation.replicas
        if observation.cooling(self.cooldown_up_s) if grows else self._cools(observation):
            return Decision(observation.replicas, "the last change is too recent"), self
        if grows:
            return self._grow(observation, bins, "rate and lag need more replicas")
        fewer = self._demand.bins_below(
            observation.replicas, observation.loads, self.down, self.rebalance_s
        )
        if fewer is not None:
            return self._shrink(observation, fewer)
        if self.steers and self._demand.is_uneven(observation, bins):
            return self._grow(observation, bins, "a replica has more than it serves in time")
        return Decision(observation.replicas, "rate and lag fit"), self

    def _grow(
        self, observation: Observation, bins: Bins, reason: str
    ) -> "tuple[Decision, SlaPacking]":
        """Change to bins that also hold what gathers meanwhile, and to no fewer replicas."""
        after = self._demand.bins(observation.loads, self.up, self.rebalance_s)
        wanted = max(bins, after, key=len)
        return self._change(
            observation, wanted + ((),) * max(0, observation.replicas - len(wanted)), reason
        )

    def _shrink(self, observation: Observation, bins: Bins) -> "tuple[Decision, SlaPacking]":
        """Empty replicas first, unless a rebalance more would itself break the SLA."""
        reason = f"{len(bins)} replicas are enough"
        if not self.steers or self.rebalance_s > self.capacity.sla_s:
            return self._change(observation, bins, reason)
        plan = assign(bins, observation.assignment)
        after = replace(self, emptying=(len(bins), observation.time_s))
        return Decision(observation.replicas, f"{reason}: partitions move to them", plan), after

    def _emptied(
        self, observation: Observation, bins: Bins, stay: int, since_s: float
    ) -> "tuple[Decision, SlaPacking]":
        """Take replicas away that read nothing any more, or have taken too long."""
        if len(bins) > stay:
            return self._grow(observation, bins, "the load is back")
        is_empty = all(observation.assignment.get(p, stay) < stay for p in observation.loads)
        if is_empty or observation.time_s - since_s > self.empty_within_s:
            reason = f"{stay} replicas are enough"
            return Decision(stay, reason), replace(self, emptying=None)
        return Decision(observation.replicas, f"partitions move to {stay} replicas"), self

    def _change(
        self, observation: Observation, bins: Bins, reason: str
    ) -> "tuple[Decision, SlaPacking]":
        plan = assign(bins, observation.assignment) if self.steers else None
        after = replace(self, emptying=None, assigned_s=observation.time_s)
        return Decision(len(bins), reason, plan), after

    def _cools(self, observation: Observation) -> bool:
        recent = self.assigned_s is not None and (
            observation.time_s - self.assigned_s <= self.cooldown_down_s
        )
        return recent or observation.cooling(self.cooldown_down_s)
