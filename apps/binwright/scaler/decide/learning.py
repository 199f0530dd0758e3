"""What a group shows of itself: how it starts, rebalances, commits and is written to.

Each value is the median of its last samples, and its confidence grows with their number and shrinks
with their spread. Below `ENOUGH` a default takes its place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import Work

KEPT = 15
"""Samples of each value; a group that changes is followed after half of them."""
ESTIMATES = ("start_s", "rebalance_s", "commit_interval_s", "burst_s")
"""What is learnt, by the names of `Learnt`."""
ENOUGH = 0.5
"""Confidence from which a value takes the place of a default: two samples that agree."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One value, by its last samples."""

    samples: tuple[float, ...] = ()  # oldest first

    def __bool__(self) -> bool:
        """Whether there is a sample."""
        return bool(self.samples)

    @property
    def value(self) -> float:
        """Return the median; needs a sample."""
        return median(self.samples)

    @property
    def confidence(self) -> float:
        """Return how far it can be relied on, from 0 to 1.

        n samples that agree have n / (n + 2); the share of the samples' median absolute deviation
        in their median is taken off.
        """
        if not self.samples:
            return 0.0
        middle = self.value
        deviation = median(abs(one - middle) for one in self.samples)
        spread = min(1.0, deviation / middle) if middle > 0 else float(deviation > 0)
        return len(self.samples) / (len(self.samples) + 2) * (1.0 - spread)

    def known(self, default: float) -> float:
        """Return the value if it can be relied on, else a default."""
        return self.value if self.confidence >= ENOUGH else default

    def with_samples(self, *samples: float) -> "Estimate":
        """Return this with samples more; the oldest go."""
        return Estimate((*self.samples, *samples)[-KEPT:])


class _Waiting(NamedTuple):
    """Records that wait to be committed."""

    committed: int  # the offset that did not move since
    since_s: float  # monotonic


class ReplicaOrder(NamedTuple):
    """An order of more replicas that do not all read yet."""

    replicas: int
    ordered_s: float  # monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What is known of one group, seconds.

    Attributes:
        start_s: From the order of a replica until it reads.
        rebalance_s: How long a rebalance takes.
        commit_interval_s: From a record that waits to the commit that has it.
        burst_s: From one batch of records to the next; 0: they come one by one.
    """

    start_s: Estimate = Estimate()
    rebalance_s: Estimate = Estimate()
    commit_interval_s: Estimate = Estimate()
    burst_s: Estimate = Estimate()
    growth: ReplicaOrder | None = None
    waiting: Mapping[TopicPartition, _Waiting] = field(default_factory=dict)

    def with_commits(self, now_s: float, work: Work) -> "Learnt":
        """Return this with how long records have waited that are committed now.

        Time is told apart by looks, so that a group that commits more often than it is looked at
        seems to commit at each look. A group that does not commit gives no sample.
        """
        waiting: dict[TopicPartition, _Waiting] = {}
        waited: list[float] = []
        for partition, load in work.loads.items():
            done = work.committed.get(partition)
            before = self.waiting.get(partition)
            if done is None:
                continue
            if before is not None and done > before.committed:
                waited.append(now_s - before.since_s)
                before = None
            if load.lag > 0:
                waiting[partition] = before or _Waiting(done, now_s)
        # One sample of each look, or a topic of many partitions would fill them at once.
        learnt = self.commit_interval_s.with_samples(median(waited)) if waited else None
        return replace(self, commit_interval_s=learnt or self.commit_interval_s, waiting=waiting)

    def with_order(self, now_s: float, before: int, replicas: int) -> "Learnt":
        """Return this after an order of so many replicas."""
        return replace(self, growth=ReplicaOrder(replicas, now_s) if replicas > before else None)

    def with_readers(self, now_s: float, reading: int) -> "Learnt":
        """Return this with the replicas that read now; all that were ordered give a sample."""
        if self.growth is None or reading < self.growth.replicas:
            return self
        start_s = self.start_s.with_samples(now_s - self.growth.ordered_s)
        return replace(self, start_s=start_s, growth=None)

    def with_rebalance(self, took_s: float) -> "Learnt":
        """Return this after a rebalance that took so long."""
        return replace(self, rebalance_s=self.rebalance_s.with_samples(took_s))

    def with_arrivals(self, looks: Sequence[tuple[float, int]]) -> "Learnt":
        """Return this with a close look at how records arrive.

        Args:
            looks: Times and the ends of all partitions together, oldest first, so close that
                batches fall into different ones.
        """
        gap_s = batch_gap_s(looks)
        return self if gap_s is None else replace(self, burst_s=self.burst_s.with_samples(gap_s))


BATCHES = 4
"""So many batches make a regular pattern."""
QUIET = 0.6
"""Share of the looks in which nothing arrives, from which the others are batches."""
EVEN = 0.25
"""By which share of their mean the gaps of regular batches differ from it at most."""


def batch_gap_s(looks: Sequence[tuple[float, int]]) -> float | None:
    """Return how far apart batches of records arrive; 0: one by one; None: too few to tell.

    Records that come one by one leave as many looks empty only where they are few, and then at no
    regular distance.

    Args:
        looks: Times and ends, as for `Learnt.with_arrivals`.
    """
    came = [end > before for (_, before), (_, end) in pairwise(looks)]
    # A batch may fall into two looks that follow each other.
    batches = [
        at_s
        for (at_s, _), now, last in zip(looks[1:], came, (False, *came), strict=False)
        if now and not last
    ]
    if sum(came) > (1.0 - QUIET) * len(came):
        return 0.0
    if len(batches) < BATCHES:
        return None
    gaps = [later - earlier for earlier, later in pairwise(batches)]
    mean = sum(gaps) / len(gaps)
    is_regular = all(abs(gap - mean) <= EVEN * mean for gap in gaps)
    return mean if is_regular else 0.0
