"""What a group has left to do: its committed offsets beside the ends of the logs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.log_ends import LogEnds, Trend
from binwright.scaler.decide.policies.policy import Loads, PartitionLoad

Committed = Mapping[TopicPartition, int]
"""Partition -> the offset that the group reads next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The load of each partition of a group, as far as it is known."""

    loads: Loads = field(default_factory=dict)  # records/s and lag in records
    committed: Committed = field(default_factory=dict)
    missing: int = 0  # partitions whose end or rate is not known, or is out of date
    oldest_s: float = inf  # when the oldest of the ends was looked up, monotonic
    trends: Mapping[str, Trend] = field(default_factory=dict)  # of topics

    @property
    def lag(self) -> float:
        """Return the lag of all partitions, records."""
        return sum(load.lag for load in self.loads.values())

    @property
    def rate(self) -> float:
        """Return what arrives at all partitions, records/s."""
        return sum(load.rate for load in self.loads.values())

    def expected(self, lead_s: float) -> Loads:
        """Return the loads with the rates to be expected; see `Trend.factor`.

        Args:
            lead_s: From the order of a replica until it reads; 0: the rates are means as they are.
        """
        if not lead_s:
            return self.loads
        factors = {topic: trend.factor(lead_s) for topic, trend in self.trends.items()}
        return {
            p: load._replace(rate=load.rate * factors.get(p.topic, 1.0))
            for p, load in self.loads.items()
        }


@dataclass(frozen=True, slots=True)
class Baseline:
    """Where lag counts from in partitions without a committed offset: the first end seen.

    A group that starts at the latest record reads nothing that was there before.
    """

    ends: Mapping[TopicPartition, int] = field(default_factory=dict)


def work_of(
    committed: Committed,
    topics: Iterable[str],
    known: Mapping[str, LogEnds],
    baseline: Baseline,
    fresh_since_s: float,
) -> tuple[Work, Baseline]:
    """Return what the group has to do, and the baseline for the next time.

    Args:
        committed: What the group has committed.
        topics: That it reads.
        known: The ends of topics, as last looked up.
        baseline: Of the last time.
        fresh_since_s: Ends from before are out of date: they are used, and counted as missing.
    """
    loads: dict[TopicPartition, PartitionLoad] = {}
    trends: dict[str, Trend] = {}
    first: dict[TopicPartition, int] = {}
    missing, oldest_s = 0, inf
    for topic in sorted(topics):
        if (found := known.get(topic)) is None:
            missing += sum(partition.topic == topic for partition in committed) or 1
            continue
        oldest_s = min(oldest_s, found.at_s)
        trends[topic] = found.trend
        stale = found.at_s < fresh_since_s
        for number in range(found.count):
            partition = TopicPartition(topic, number)
            end, rate = found.ends.get(number), found.rates.get(number)
            missing += stale or end is None or rate is None
            if end is None:
                continue
            done = committed.get(partition)
            if done is None:
                done = first[partition] = baseline.ends.get(partition, end)
            loads[partition] = PartitionLoad(rate or 0.0, max(0, end - done))
    work = Work(loads=loads, committed=committed, missing=missing, oldest_s=oldest_s, trends=trends)
    return work, Baseline(first)


def to_be_sized(loads: Loads, commit_interval_s: float) -> Loads:
    """Return the loads without the lag that only waits for the group's next commit."""
    return {
        p: PartitionLoad(load.rate, max(0.0, load.lag - load.rate * commit_interval_s))
        for p, load in loads.items()
    }
