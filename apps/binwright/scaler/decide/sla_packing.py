"""binwright's own policy: replicas by packing true rates and the lag that is to be caught up.

What differs from Algorithms 1 and 2. Rate and lag are one load, so a lag that was sampled between
two commits decides nothing. A partition that is faster than a replica is named, because more
replicas do not help it. A change is sized for all that gathers while its own rebalance lasts. A
replica is emptied before it ends, so that none of its partitions waits until others notice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from binwright.packing.score import ROUNDING
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.least_loaded import (
    Bins,
    assign,
    exceeds,
    least_loaded,
    least_loaded_below,
    owned,
)
from binwright.scaler.decide.policy import (
    Bin,
    Decision,
    Loads,
    Observation,
    PartitionLoad,
    ReplicaCapacity,
)

WHOLE = Bin(1.0, 1.0)
"""Loads are shares of a replica here; there is no second dimension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Turns loads into shares of a replica, and these into replicas."""

    capacity: ReplicaCapacity
    catch_up_s: float = 60.0  # within which lag is to be worked off, > 0
    busy: float = 0.9  # share of its full speed at which a replica still catches up, > 0 and <= 1
    least: int = 1
    most: int | None = None  # None: as many as partitions
    sla_share: float = 1.0  # of the records that are to keep the SLA at any time, > 0 and <= 1

    def shares(self, loads: Loads, pause_s: float = 0.0) -> Loads:
        """Return the share of a replica that each partition takes.

        The larger of two: by its rate, as the SLA allows after a pause of `pause_s`, and by its
        rate and what is to be caught up, of the speed at which a replica still catches up.
        """
        sustained, served = self.capacity.sustained(pause_s), self.capacity.rate * self.busy
        return {
            p: PartitionLoad(max(one.rate / sustained, self._caught_up(one) / served))
            for p, one in loads.items()
        }

    def bins(self, loads: Loads, share: float, pause_s: float = 0.0) -> Bins:
        """Return a packing into as few replicas as keep the SLA, within the bounds.

        Args:
            loads: Of each partition.
            share: Of each replica that may be filled.
            pause_s: How long nobody reads before the packing is in force.
        """
        shares = self.shares(loads, pause_s)
        bins = least_loaded(shares, Bin(share, 1.0), self.least)
        if self.sla_share < 1:
            bins = self._fewer(bins, loads, share, pause_s)
        if self.most is None or len(bins) <= self.most:
            return bins
        # More than there may be: as even as can be, whatever a replica has then.
        every = sum(one.rate for one in shares.values())
        return least_loaded(shares, Bin(every, 1.0), self.most)

    def bins_below(self, replicas: int, loads: Loads, share: float, pause_s: float) -> Bins | None:
        """Return `bins` if they are fewer than there are replicas, else None."""
        if self.sla_share < 1 or (self.most is not None and self.most < replicas):
            bins = self.bins(loads, share, pause_s)
            return bins if len(bins) < replicas else None
        return least_loaded_below(
            replicas, self.shares(loads, pause_s), Bin(share, 1.0), self.least
        )

    def late_share(
        self,
        bins: Iterable[Iterable[TopicPartition]],
        loads: Loads,
        share: float = 1.0,
        pause_s: float = 0.0,
    ) -> float:
        """Return the share of the records that these bins do not serve within the SLA.

        Each replica has the first ones of a burst in time, and the rest of it late. A partition
        that is too fast for a replica counts as a full one: more replicas do not help it.

        Args:
            bins: The partitions of each replica.
            loads: Of each partition.
            share: Of each replica that may be filled.
            pause_s: How long nobody reads before these bins are in force.
        """
        sustained = share * self.capacity.sustained(pause_s)
        rates = [sum(min(loads[p].rate, sustained) for p in inside) for inside in bins]
        every = sum(rates)
        return sum(max(0.0, rate - sustained) for rate in rates) / every if every else 0.0

    def _fewer(self, bins: Bins, loads: Loads, share: float, pause_s: float) -> Bins:
        """Return the fewest bins, from these down, that keep the SLA for `sla_share` of records.

        No replica may fall behind for good meanwhile, so rates and what is to be caught up still
        have to fit into its speed.
        """
        served = self.capacity.rate * self.busy
        kept_up = {p: PartitionLoad(self._caught_up(one) / served) for p, one in loads.items()}
        few, many = len(least_loaded(kept_up, Bin(share, 1.0), self.least)), len(bins)
        while few < many:
            number = (few + many) // 2
            tried = least_loaded(kept_up, Bin(share, 1.0), number)
            if self.late_share(tried, loads, share, pause_s) <= 1 - self.sla_share + ROUNDING:
                bins, many = tried, number
            else:
                few = number + 1
        return bins

    def is_uneven(self, observation: Observation, bins: Bins) -> bool:
        """Return whether these bins keep the SLA, and today's owners do not.

        Args:
            observation: The loads, and who reads what.
            bins: A packing of the loads.
        """
        known = {p: s for p, s in observation.assignment.items() if p in observation.loads}
        if self.sla_share < 1:
            today = self.late_share(owned(known), observation.loads)
            return today > 1 - self.sla_share >= self.late_share(bins, observation.loads)
        shares = self.shares(observation.loads)
        return exceeds(owned(known), shares, WHOLE) and not exceeds(bins, shares, WHOLE)

    def hot(self, loads: Loads) -> tuple[TopicPartition, ...]:
        """Return the partitions that one replica alone does not serve in time."""
        return tuple(sorted(p for p, one in loads.items() if one.rate > self.capacity.sustained()))

    def _caught_up(self, load: PartitionLoad) -> float:
        """Return what is to be served per second so that the lag is worked off in time.

        What arrives in one burst is there at any time, so it is no lag.
        """
        behind = max(0.0, load.lag - load.rate * self.capacity.burst_s)
        return load.rate + behind / self.catch_up_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaPacking(Demand):
    """Packs partitions into replicas that keep the SLA, with a gap between up and down."""

    up: float = 0.9  # share of a replica that may be filled before there is one more
    down: float = 0.8  # share into which all must fit before one goes, < `up`
    rebalance_s: float = 0.0  # how long a rebalance leaves partitions unread, >= 0
    cooldown_up_s: float = 10.0  # from the last change until replicas are added
    cooldown_down_s: float = 10.0  # until one is taken away, or partitions change their owners
    empty_within_s: float = 30.0  # a replica that is not empty by then is taken away all the same
    steers: bool = True  # whether the group takes an assignment
    emptying: tuple[int, float] | None = None  # replicas that are to stay, and since when
    assigned_s: float | None = None  # when partitions last changed their owners

    def decide(self, observation: Observation) -> "tuple[Decision, SlaPacking]":
        """Return the decision, and this with what it has begun."""
        decision, after = self._decided(observation)
        if hot := self.hot(observation.loads):
            names = ", ".join(map(str, hot))
            reason = f"{decision.reason}; faster than a replica: {names}"
            decision = replace(decision, reason=reason, hot=hot)
        return decision, after

    def _decided(self, observation: Observation) -> "tuple[Decision, SlaPacking]":
        bins = self.bins(observation.loads, self.up)
        if self.emptying is not None:
            return self._emptied(observation, bins, *self.emptying)
        grows = len(bins) > observation.replicas
        if observation.cooling(self.cooldown_up_s) if grows else self._cools(observation):
            return Decision(observation.replicas, "the last change is too recent"), self
        if grows:
            return self._grow(observation, bins, "rate and lag need more replicas")
        fewer = self.bins_below(
            observation.replicas, observation.loads, self.down, self.rebalance_s
        )
        if fewer is not None:
            return self._shrink(observation, fewer)
        if self.steers and self.is_uneven(observation, bins):
            return self._grow(observation, bins, "a replica has more than it serves in time")
        return Decision(observation.replicas, "rate and lag fit"), self

    def _grow(
        self, observation: Observation, bins: Bins, reason: str
    ) -> "tuple[Decision, SlaPacking]":
        """Change to bins that also hold what gathers meanwhile, and to no fewer replicas."""
        after = self.bins(observation.loads, self.up, self.rebalance_s)
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
