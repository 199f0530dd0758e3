"""What a member of a group sustains, as far as a recording of its commits shows it.

A group that was behind has shown it: that is measured as the scaler measures it. One that always
kept up has not: its members sustain at least what the fastest of them has read.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Literal

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import Committed, Work
from binwright.scaler.decide.throughput import LEAST_S, Throughput

Basis = Literal["given", "measured", "seen"]
"""given: by a person. measured: while all members had records to read. seen: the fastest member
read that much, and may sustain more."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one member sustains."""

    records_per_s: float  # finite and > 0
    basis: Basis


@dataclass(frozen=True, slots=True)
class FastestMember:
    """The most that one member has read, over `LEAST_S` at least, and the measurement under way."""

    records_per_s: float = 0.0
    began_s: float = 0.0
    reads: frozenset[frozenset[TopicPartition]] = frozenset()  # of each member
    committed: Committed = field(default_factory=dict)

    def observe(
        self, now_s: float, committed: Committed, reads: Collection[frozenset[TopicPartition]]
    ) -> "FastestMember":
        """Return this with what the last commits show.

        Args:
            now_s: Seconds.
            committed: By the group.
            reads: What each member reads.
        """
        members = frozenset(filter(None, reads))
        if members != self.reads:
            return replace(self, began_s=now_s, reads=members, committed=committed)
        passed_s = now_s - self.began_s
        if passed_s < LEAST_S:
            return self
        read = [
            sum(
                max(0, committed[p] - self.committed[p])
                for p in owned
                if p in committed and p in self.committed
            )
            for owned in members
        ]
        fastest = max([self.records_per_s, *(records / passed_s for records in read)])
        return replace(self, records_per_s=fastest, began_s=now_s, committed=committed)


@dataclass(frozen=True, slots=True)
class CapacityMeter:
    """What a group has shown so far of its members."""

    throughput: Throughput = field(default_factory=Throughput)
    fastest: FastestMember = field(default_factory=FastestMember)

    def observe(
        self,
        now_s: float,
        work: Work,
        reads: Collection[frozenset[TopicPartition]],
        commit_interval_s: float,
    ) -> "CapacityMeter":
        """Return this with one look at the group.

        Args:
            now_s: Seconds.
            work: The group's.
            reads: What each of its members reads.
            commit_interval_s: Younger records are no lag.
        """
        throughput = self.throughput
        if not work.missing:
            throughput = throughput.observe(now_s, work, len(reads), commit_interval_s)
        return CapacityMeter(throughput, self.fastest.observe(now_s, work.committed, reads))

    @property
    def capacity(self) -> Capacity | None:
        """Return what a member sustains; None: the group has read nothing."""
        measured = self.throughput.per_replica or 0.0
        if measured and self.throughput.whole:
            return Capacity(measured, "measured")
        seen = max(measured, self.fastest.records_per_s)
        return Capacity(seen, "seen") if seen else None
