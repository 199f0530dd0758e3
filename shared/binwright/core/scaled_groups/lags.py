"""What a group has left to do: its committed offsets beside the ends of the logs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from binwright.core.model import TopicPartition
from binwright.core.scaled_groups.log_ends import LogEnds
from binwright.core.scaling.policy import Loads, PartitionLoad

Committed = Mapping[TopicPartition, int]
"""Partition -> the offset that the group reads next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The load of each partition of a group, as far as it is known."""

    loads: Loads = field(default_factory=dict)  # records/s and lag in records
    committed: Committed = field(default_factory=dict)
    missing: int = 0  # partitions whose end or rate is not known, or is out of date
    oldest_s: float = inf  # when the oldest of the ends was looked up, monotonic

    @property
    def lag(self) -> float:
        """Return the lag of all partitions, records."""
        return sum(load.lag for load in self.loads.values())

    @property
    def rate(self) -> float:
        """Return what arrives at all partitions, records/s."""
        return sum(load.rate for load in self.loads.values())


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
    first: dict[TopicPartition, int] = {}
    missing, oldest_s = 0, inf
    for topic in sorted(topics):
        if (found := known.get(topic)) is None:
            missing += sum(partition.topic == topic for partition in committed) or 1
            continue
        oldest_s = min(oldest_s, found.at_s)
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
    return Work(loads=loads, committed=committed, missing=missing, oldest_s=oldest_s), Baseline(
        first
    )


def to_be_sized(loads: Loads, commit_interval_s: float) -> Loads:
    """Return the loads without the lag that only waits for the group's next commit."""
    return {
        p: PartitionLoad(load.rate, max(0.0, load.lag - load.rate * commit_interval_s))
        for p, load in loads.items()
    }
