"""What a group has left to do: its committed offsets beside the ends of the logs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.policy import Loads, PartitionLoad

WINDOW_S = 60.0
"""By default a rate is that of the last minute, as far back as there are look-ups."""

EndOffsets = Mapping[int, int]
"""Partition number -> offset of the next record."""


@dataclass(frozen=True, slots=True)
class TopicTrend:
    """How the rate of a whole topic changes: single partitions are too uneven for one each."""

    age_s: float = 0.0  # since the middle of the time whose mean the rates are
    growth: float = 0.0  # of the rate each second, as a share of that mean

    def factor(self, lead_s: float) -> float:
        """Return by what the mean rate is multiplied for the rate to be expected.

        A rising rate is that at the end of `lead_s`, when a replica ordered now reads; it is at
        most twice the mean, as one that has just begun to rise says little about how far it will.
        A falling rate is the mean of the later half of the time: it may have stopped to fall.
        """
        ahead_s = self.age_s + lead_s if self.growth > 0 else self.age_s / 2
        return min(2.0, max(0.0, 1.0 + self.growth * ahead_s))


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The ends of one topic's logs at some time, and records/s of each partition."""

    at_s: float  # monotonic
    ends: EndOffsets
    rates: Mapping[int, float]  # of partitions whose rate is known
    count: int  # partitions that the topic has
    trend: TopicTrend = TopicTrend()


@dataclass(frozen=True, slots=True)
class EndHistory:
    """Looked-up ends of one topic within the last `window_s`, and the one before."""

    looked_up: tuple[tuple[float, EndOffsets], ...] = field(default=())  # oldest first
    window_s: float = WINDOW_S

    def with_ends(self, at_s: float, ends: EndOffsets) -> "EndHistory":
        """Return the history with one look-up more; `at_s` must not go back."""
        before = self.looked_up
        while len(before) > 1 and before[1][0] <= at_s - self.window_s:
            before = before[1:]
        return EndHistory((*before, (at_s, ends)), self.window_s)

    def latest(self, count: int) -> LogEnds:
        """Return the last look-up with rates; needs at least one.

        A log that was truncated or made again has the rate 0 until its old ends are forgotten.

        Args:
            count: Partitions that the topic has.
        """
        (first_s, first), (at_s, ends) = self.looked_up[0], self.looked_up[-1]
        passed_s = at_s - first_s
        rates = (
            {p: max(0, end - first[p]) / passed_s for p, end in ends.items() if p in first}
            if passed_s > 0
            else {}
        )
        return LogEnds(at_s, ends, rates, count, self._trend())

    def _trend(self) -> TopicTrend:
        """Return the difference between the two halves of the time, if there are two."""
        (first_s, first), (at_s, ends) = self.looked_up[0], self.looked_up[-1]
        middle_s = (first_s + at_s) / 2
        split_s, split = min(self.looked_up, key=lambda one: (abs(one[0] - middle_s), one[0]))
        known = first.keys() & split.keys() & ends.keys()
        arrived = sum(max(0, ends[p] - first[p]) for p in known)
        if not first_s < split_s < at_s or not arrived:
            return TopicTrend()
        early = sum(max(0, split[p] - first[p]) for p in known) / (split_s - first_s)
        late = sum(max(0, ends[p] - split[p]) for p in known) / (at_s - split_s)
        passed_s = at_s - first_s
        return TopicTrend(passed_s / 2, (late - early) / (passed_s / 2) / (arrived / passed_s))


Committed = Mapping[TopicPartition, int]
"""Partition -> the offset that the group reads next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The load of each partition of a group, as far as it is known."""

    loads: Loads = field(default_factory=dict)  # records/s and lag in records
    committed: Committed = field(default_factory=dict)
    missing: int = 0  # partitions whose end or rate is not known, or is out of date
    oldest_s: float = inf  # when the oldest of the ends was looked up, monotonic
    trends: Mapping[str, TopicTrend] = field(default_factory=dict)  # of topics

    @property
    def lag(self) -> float:
        """Return the lag of all partitions, records."""
        return sum(load.lag for load in self.loads.values())

    @property
    def rate(self) -> float:
        """Return what arrives at all partitions, records/s."""
        return sum(load.rate for load in self.loads.values())

    def expected(self, lead_s: float) -> Loads:
        """Return the loads with the rates to be expected; see `TopicTrend.factor`.

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
    trends: dict[str, TopicTrend] = {}
    first: dict[TopicPartition, int] = {}
    missing, oldest_s = 0, inf
    for topic in sorted(topics):
        if (ends := known.get(topic)) is None:
            missing += sum(partition.topic == topic for partition in committed) or 1
            continue
        oldest_s = min(oldest_s, ends.at_s)
        trends[topic] = ends.trend
        stale = ends.at_s < fresh_since_s
        for number in range(ends.count):
            partition = TopicPartition(topic, number)
            end, rate = ends.ends.get(number), ends.rates.get(number)
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
