"""What one replica serves, measured while the group is behind.

A replica that has records to read all the time shows its full speed in the group's commits. If
every partition that gets records is behind, all replicas are at full speed, and the mean is what
one serves. If only some are behind, one replica reads at least as much as the fastest of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import Work, to_be_sized

LEAST_S = 20.0
"""Commits are steps: a shorter time shows more or less than was read."""
SMOOTHING = 0.5
"""The weight of a new measurement; a group's records differ from time to time."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """What is known of one replica's speed, and the measurement under way."""

    per_replica: float | None = None  # records/s; None: not measured yet
    whole: bool = False  # measured with every replica at full speed; else a lower bound
    began_s: float = 0.0
    replicas: int = 0  # at the beginning; 0: no measurement is under way
    behind: frozenset[TopicPartition] = frozenset()  # all the time since
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)

    def observe(
        self, now_s: float, work: Work, replicas: int, commit_interval_s: float
    ) -> "Throughput":
        """Return this with what the last commits show.

        Args:
            now_s: Monotonic.
            work: The group's.
            replicas: That are ready.
            commit_interval_s: Of the group.
        """
        sized = to_be_sized(work.loads, commit_interval_s)
        behind = frozenset(p for p, load in sized.items() if load.lag > load.rate)
        behind &= work.committed.keys()
        if self.replicas != replicas or not replicas or not (self.behind & behind):
            return replace(
                self,
                began_s=now_s,
                replicas=replicas if behind else 0,
                behind=behind,
                committed=work.committed,
            )
        both, passed_s = self.behind & behind, now_s - self.began_s
        if passed_s < LEAST_S:
            return replace(self, behind=both)
        done = {p: max(0, work.committed[p] - self.committed[p]) / passed_s for p in both}
        every = {p for p, load in sized.items() if load.rate or load.lag} <= both
        after = self._measured(done, replicas) if every else self._at_least(max(done.values()))
        return replace(after, began_s=now_s, behind=behind, committed=work.committed)

    def _measured(self, done: Mapping[TopicPartition, float], replicas: int) -> "Throughput":
        mean = sum(done.values()) / min(replicas, len(done))
        if not mean:
            return self  # nobody reads: a rebalance, or a fault of the consumers
        if self.per_replica is not None and self.whole:
            mean = SMOOTHING * mean + (1 - SMOOTHING) * self.per_replica
        return replace(self, per_replica=mean, whole=True)

    def _at_least(self, rate: float) -> "Throughput":
        if rate <= (self.per_replica or 0.0):
            return self
        return replace(self, per_replica=rate)
