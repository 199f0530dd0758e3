"""What a group has left to do: its committed offsets beside the logs that are there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple

from binwright.protocol.metrics import Measurement
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
    """The logs of one topic at some time, and records/s of each partition."""

    at_s: float  # monotonic
    ends: EndOffsets
    rates: Mapping[int, float]  # of partitions whose rate is known
    count: int  # partitions that the topic has; 0: Kafka says that it does not exist
    trend: TopicTrend = TopicTrend()
    starts: EndOffsets = field(default_factory=dict)  # the first offset that is kept, 0 if left out
    topic_id: str = ""  # another one is another topic of the same name; empty: not known
    refused: str = ""  # why Kafka does not describe the topic; empty: it does


def measured_ends(measurement: Measurement, at_s: float) -> LogEnds:
    """Return the logs as a monitor measured them; stale partitions are left out."""
    fresh = [row for row in measurement.partitions if row.quality != "stale"]
    return LogEnds(
        at_s,
        {row.partition: row.end for row in fresh},
        {row.partition: row.records_per_s for row in fresh if row.records_per_s is not None},
        measurement.count,
        starts={row.partition: row.start for row in fresh},
    )


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

StartsAt = Literal["earliest", "latest"]
"""Where members read a partition without a committed offset: Kafka's `auto.offset.reset`."""

BEYOND_S = 10.0
"""A log that ends before a commit for so long is another one, or was cut; ends may be older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The load of each partition of a group, as far as it is known."""

    loads: Loads = field(default_factory=dict)  # records/s and lag in records
    committed: Committed = field(default_factory=dict)
    missing: int = 0  # partitions whose end or rate is not known, or is out of date
    oldest_s: float = inf  # when the oldest of the ends was looked up, monotonic
    trends: Mapping[str, TopicTrend] = field(default_factory=dict)  # of topics
    absent: tuple[str, ...] = ()  # topics that do not exist
    refused: tuple[str, ...] = ()  # why Kafka does not describe some of the topics
    lost: int = 0  # offsets that were deleted before the group had committed them
    uncommitted: int = 0  # partitions with records and no commit: whether they wait is not known
    is_new: bool = False  # the group has not committed anything yet

    @property
    def lag(self) -> float:
        """Return the lag of all partitions, records."""
        return sum(load.lag for load in self.loads.values())

    @property
    def rate(self) -> float:
        """Return what arrives at all partitions, records/s."""
        return sum(load.rate for load in self.loads.values())

    def waits(self, idle_lag: int) -> bool:
        """Return whether records arrive, or more of them wait in a partition than `idle_lag`."""
        return any(load.rate or load.lag > idle_lag for load in self.loads.values())

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


class _Topic(NamedTuple):
    """A topic as it was last seen."""

    id: str
    partitions: int
    is_new: bool  # gone, or made anew, and nothing in it was committed since


class _Beyond(NamedTuple):
    """A commit that lies behind the end of its log."""

    committed: int
    since_s: float  # when that end was looked up


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is remembered of a group's commits and topics from one look to the next.

    Lag counts from `offsets` in partitions without a committed offset: from the last commit that
    was seen, else from where the group starts. Kafka deletes the commits of a group that has had
    no member for a week, and those in a topic that is deleted.
    """

    offsets: Committed = field(default_factory=dict)
    topics: Mapping[str, _Topic] = field(default_factory=dict)
    guessed: frozenset[TopicPartition] = frozenset()  # whose offset is the first end that was seen
    void: Committed = field(default_factory=dict)  # commits that are of an earlier log
    beyond: Mapping[TopicPartition, _Beyond] = field(default_factory=dict)
    has_committed: bool = False
    starts_at: StartsAt | None = None  # that `offsets` rest on

    def topics_of(self, committed: Committed) -> frozenset[str]:
        """Return the topics that a group reads, by its commits.

        Without any it has slept for long. A topic without any was left, if it is still the same.
        """
        new = {name for name, topic in self.topics.items() if topic.is_new or not committed}
        return frozenset({partition.topic for partition in committed} | new)


def work_of(
    committed: Committed,
    topics: Iterable[str],
    known: Mapping[str, LogEnds],
    baseline: Baseline,
    fresh_since_s: float,
    *,
    starts_at: StartsAt | None = None,
) -> tuple[Work, Baseline]:
    """Return what the group has to do, and the baseline for the next time.

    Records of a topic that is made anew, or of a partition that is added, count from the start of
    the log: nobody can have read them.

    Args:
        committed: What the group has committed.
        topics: That it reads.
        known: The logs of topics, as last looked up.
        baseline: Of the last time.
        fresh_since_s: Ends from before are out of date: they are used, and counted as missing.
        starts_at: Where the group starts without a commit; None: not known, so lag counts from the
            first end that was seen, and `Work.uncommitted` says that more may wait.
    """
    look = _Look(committed, known, baseline, fresh_since_s, starts_at)
    for topic in sorted(topics):
        look.add(topic)
    return look.work(), look.baseline()


class _Look:
    """One look at the topics of a group."""

    def __init__(
        self,
        committed: Committed,
        known: Mapping[str, LogEnds],
        before: Baseline,
        fresh_since_s: float,
        starts_at: StartsAt | None,
    ) -> None:
        self._committed, self._known, self._before = committed, known, before
        self._fresh_since_s, self._starts_at = fresh_since_s, starts_at
        self._loads: dict[TopicPartition, PartitionLoad] = {}
        self._trends: dict[str, TopicTrend] = {}
        self._absent: list[str] = []
        self._refused: list[str] = []
        self._missing, self._lost, self._oldest_s = 0, 0, inf
        # What is not seen now is remembered as it was.
        self._offsets = dict(before.offsets) if before.starts_at == starts_at else {}
        self._topics: dict[str, _Topic] = {}
        self._guessed: set[TopicPartition] = set()
        self._void: dict[TopicPartition, int] = {}
        self._beyond: dict[TopicPartition, _Beyond] = {}
        self._has_committed = before.has_committed
        self._uncommitted = 0

    def add(self, topic: str) -> None:
        """Add the partitions of a topic."""
        logs, before = self._known.get(topic), self._before.topics.get(topic)
        if logs is None or logs.refused:
            self._missing += sum(one.topic == topic for one in self._committed) or 1
            self._refused += [f"topic {topic}: {logs.refused}"] if logs else []
            if before is not None:
                self._topics[topic] = before
                for number in range(before.partitions):
                    self._keep(TopicPartition(topic, number))
            return
        self._oldest_s = min(self._oldest_s, logs.at_s)
        if not logs.count:
            self._topics[topic] = _Topic(logs.topic_id, 0, is_new=True)
            self._absent.append(topic)
            return
        self._trends[topic] = logs.trend
        recreated = before is not None and (
            not before.partitions
            or bool(before.id and logs.topic_id and before.id != logs.topic_id)
        )
        first_new = 0 if recreated else logs.count if before is None else before.partitions
        is_new = recreated or (before is not None and before.is_new)
        self._topics[topic] = _Topic(logs.topic_id, logs.count, is_new)
        stale = logs.at_s < self._fresh_since_s
        for number in range(logs.count):
            partition = TopicPartition(topic, number)
            end, rate = logs.ends.get(number), logs.rates.get(number)
            self._missing += stale or end is None or rate is None
            if number >= first_new:
                self._offsets[partition] = 0
                if recreated and (done := self._committed.get(partition)) is not None:
                    self._void[partition] = done
            if end is None:
                self._keep(partition)
            else:
                start = logs.starts.get(number, 0)
                done = self._read_from(partition, start, end, logs.at_s)
                self._lost += max(0, start - done)
                self._loads[partition] = PartitionLoad(rate or 0.0, max(0, end - max(done, start)))

    def _keep(self, partition: TopicPartition) -> None:
        """Remember of a partition that is not seen now what was known before."""
        if partition in self._before.guessed:
            self._guessed.add(partition)
        if (void := self._before.void.get(partition)) is not None:
            self._void.setdefault(partition, void)
        if (beyond := self._before.beyond.get(partition)) is not None:
            self._beyond[partition] = beyond

    def _read_from(self, partition: TopicPartition, start: int, end: int, at_s: float) -> int:
        """Return the offset from which lag counts."""
        done = self._committed.get(partition)
        if done is None:
            return self._without_commit(partition, start, end)
        if done > end:
            beyond = self._before.beyond.get(partition)
            if beyond is None or beyond.committed != done:
                beyond = _Beyond(done, at_s)
            self._beyond[partition] = beyond
            if at_s - beyond.since_s >= BEYOND_S:
                self._void[partition] = done
        if self._before.void.get(partition) == done:
            self._void[partition] = done
        if partition in self._void:
            return start
        self._has_committed = True
        self._topics[partition.topic] = self._topics[partition.topic]._replace(is_new=False)
        self._offsets[partition] = done
        return done

    def _without_commit(self, partition: TopicPartition, start: int, end: int) -> int:
        is_guess = partition in self._before.guessed
        if partition not in self._offsets:
            is_guess = self._starts_at != "earliest" and end > start
            self._offsets[partition] = end if is_guess else start
        first = self._offsets[partition]
        if is_guess:
            self._guessed.add(partition)
            self._uncommitted += start < first  # or what was there then is deleted by now
        return first

    def work(self) -> Work:
        """Return what was found."""
        return Work(
            loads=self._loads,
            committed={p: at for p, at in self._committed.items() if p not in self._void}
            if self._void
            else self._committed,
            missing=self._missing,
            oldest_s=self._oldest_s,
            trends=self._trends,
            absent=tuple(self._absent),
            refused=tuple(self._refused),
            lost=self._lost,
            uncommitted=self._uncommitted,
            is_new=not self._has_committed,
        )

    def baseline(self) -> Baseline:
        """Return what the next look is to know."""
        return Baseline(
            offsets={p: at for p, at in self._offsets.items() if p.topic in self._topics},
            topics=self._topics,
            guessed=frozenset(self._guessed),
            void=self._void,
            beyond=self._beyond,
            has_committed=self._has_committed,
            starts_at=self._starts_at,
        )


def to_be_sized(loads: Loads, commit_interval_s: float) -> Loads:
    """Return the loads without the lag that only waits for the group's next commit."""
    return {
        p: PartitionLoad(load.rate, max(0.0, load.lag - load.rate * commit_interval_s))
        for p, load in loads.items()
    }
