"""How much of a replica each partition needs, by its rate and the lag to be caught up."""

from collections.abc import Iterable
from dataclasses import dataclass

from binwright.packing.score import ROUNDING
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.policies.capacity import Bin, ReplicaCapacity
from binwright.scaler.decide.policies.least_loaded import (
    Bins,
    exceeds,
    least_loaded,
    least_loaded_below,
)
from binwright.scaler.decide.policies.owners import owned
from binwright.scaler.decide.policies.policy import Loads, Observation, PartitionLoad

WHOLE = Bin(1.0, 1.0)
"""Loads are shares of a replica here; there is no second dimension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Turns loads into shares of a replica, and these into replicas."""

    capacity: ReplicaCapacity
    catch_up_s: float  # within which lag is to be worked off, > 0
    busy: float  # share of its full speed at which a replica still catches up, > 0 and <= 1
    least: int
    most: int | None  # None: as many as partitions
    late: float = 0.0  # share of the records that may miss the SLA at any time, >= 0 and < 1

    def shares(self, loads: Loads, pause_s: float = 0.0) -> Loads:
        """Return the share of a replica that each partition takes.

        The larger of two: by its rate, as the SLA allows after a pause of `pause_s`, and by its
        rate and what is to be caught up, of the speed at which a replica still catches up.
        """
        sustained, served = self.capacity.sustained(pause_s), self.capacity.rate * self.busy
        return {
            p: PartitionLoad(
                max(one.rate / sustained, (one.rate + self._late(one) / self.catch_up_s) / served)
            )
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
        if self.late:
            bins = self._fewer(bins, loads, share, pause_s)
        if self.most is None or len(bins) <= self.most:
            return bins
        # More than there may be: as even as can be, whatever a replica has then.
        every = sum(one.rate for one in shares.values())
        return least_loaded(shares, Bin(every, 1.0), self.most)

    def bins_below(self, replicas: int, loads: Loads, share: float, pause_s: float) -> Bins | None:
        """Return `bins` if they are fewer than there are replicas, else None."""
        if self.late or (self.most is not None and self.most < replicas):
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
        """Return the fewest bins, from these down, of which no more than `late` is late.

        No replica may fall behind for good meanwhile, so rates and what is to be caught up still
        have to fit into its speed.
        """
        served = self.capacity.rate * self.busy
        kept_up = {
            p: PartitionLoad((one.rate + self._late(one) / self.catch_up_s) / served)
            for p, one in loads.items()
        }
        few, many = len(least_loaded(kept_up, Bin(share, 1.0), self.least)), len(bins)
        while few < many:
            number = (few + many) // 2
            tried = least_loaded(kept_up, Bin(share, 1.0), number)
            if self.late_share(tried, loads, share, pause_s) <= self.late + ROUNDING:
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
        if self.late:
            today = self.late_share(owned(known), observation.loads)
            return today > self.late >= self.late_share(bins, observation.loads)
        shares = self.shares(observation.loads)
        return exceeds(owned(known), shares, WHOLE) and not exceeds(bins, shares, WHOLE)

    def hot(self, loads: Loads) -> tuple[TopicPartition, ...]:
        """Return the partitions that one replica alone does not serve in time."""
        return tuple(sorted(p for p, one in loads.items() if one.rate > self.capacity.sustained()))

    def _late(self, load: PartitionLoad) -> float:
        """Return the lag beyond what arrives in one burst: that much is there at any time."""
        return max(0.0, load.lag - load.rate * self.capacity.burst_s)
