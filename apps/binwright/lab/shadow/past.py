"""What each group of a recording did: its load, its members, how fast and how timely it read."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from binwright.lab.shadow.capacity import Capacity, CapacityMeter
from binwright.lab.shadow.samples import GroupSample
from binwright.lab.simulation.outcome import CountSteps
from binwright.lab.simulation.sources import Passes, Recorded
from binwright.protocol.errors import StreamError
from binwright.protocol.metrics import Measurement
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import Baseline, LogEnds, Work, measured_ends, work_of

GAP_INTERVALS = 3
"""Samples that are further apart than so many intervals have a gap between them."""
BEHIND_INTERVALS = 3
"""Lag of what arrived within so many intervals may only wait for a commit: that is not behind."""
COARSE_INTERVALS = 2
"""How late records were is not told for times shorter than so many intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPast:
    """What one group did; times in seconds since its first measurement."""

    group: str
    recorded: Recorded  # in records
    members: CountSteps
    capacity: Capacity | None  # of a member; None: the group has read nothing
    within: float | None  # share of the records committed in time; None: the passes are too rare
    from_ms: int  # wall clock of the first measurement
    until_ms: int  # and of the last one
    unseen_s: float  # in which the group was not recorded
    clients: tuple[str, ...] = ()  # names of its last members, sorted
    topics: tuple[str, ...] = ()
    type: str = "classic"  # consumer: a broker assigns

    @property
    def members_mean(self) -> float:
        """Return how many members there were on average."""
        return self.members.seconds / (self.members.end - self.members.times[0])


@dataclass(frozen=True, slots=True)
class NotComparable:
    """A group that cannot be simulated, and why."""

    group: str
    reason: str


class _Arrived(NamedTuple):
    """Records of a partition that arrived between two looks."""

    at_s: float  # of the later one
    end: int
    records: int


class Timeliness:
    """Counts the records that are committed within a time of their arrival.

    Between two looks, records arrive and are committed evenly.
    """

    def __init__(self, within_s: float) -> None:
        """Count those that are committed within `within_s` seconds."""
        self._within_s = within_s
        self._waiting: dict[TopicPartition, deque[_Arrived]] = {}
        self._seen: dict[TopicPartition, tuple[float, int, int]] = {}  # time, end, committed
        self._in_time, self._all = 0, 0

    def look(self, now_s: float, work: Work) -> None:
        """Add what was arrived and committed by now."""
        for partition, load in work.loads.items():
            if (committed := work.committed.get(partition)) is None:
                continue
            end = committed + round(load.lag)
            before_s, before_end, before = self._seen.get(partition, (now_s, end, committed))
            self._seen[partition] = now_s, end, committed
            waiting = self._waiting.setdefault(partition, deque())
            if end > before_end:
                waiting.append(_Arrived(now_s, end, end - before_end))
            while waiting and (first := waiting[0]).end <= committed:
                read = committed - before
                share = (first.end - before) / read if read > 0 else 1.0
                self._done(waiting.popleft(), before_s + share * (now_s - before_s))
            while waiting and now_s - waiting[0].at_s > self._within_s:
                self._done(waiting.popleft(), now_s)

    def _done(self, arrived: _Arrived, at_s: float) -> None:
        self._all += arrived.records
        self._in_time += arrived.records * (at_s - arrived.at_s <= self._within_s)

    @property
    def share(self) -> float:
        """Return the share of the records that were in time, 0 to 1; 1 if there were none."""
        return self._in_time / self._all if self._all else 1.0


@dataclass(slots=True)
class _GroupReader:
    """Folds the samples of one group, and the measurements of its topics."""

    group: str
    within_s: float
    timeliness: Timeliness
    passes: Passes = field(default_factory=lambda: Passes(in_records=True))
    meter: CapacityMeter = field(default_factory=CapacityMeter)
    baseline: Baseline = field(default_factory=Baseline)
    topics: frozenset[str] = frozenset()
    last: GroupSample | None = None  # whose topics' ends may still come
    counts: list[tuple[int, int]] = field(default_factory=list)  # ms, members
    measured_ms: list[int] = field(default_factory=list)  # of the first measurement and the last
    sampled_ms: list[int] = field(default_factory=list)
    clients: frozenset[str] = frozenset()

    def add(self, sample: GroupSample, logs: Mapping[str, LogEnds]) -> None:
        """Add a sample, once the ends of the one before are known."""
        self.look(logs)
        self.last = sample
        self.sampled_ms.append(sample.at_ms)
        if not self.counts or self.counts[-1][1] != len(sample.members):
            self.counts.append((sample.at_ms, len(sample.members)))
        self.topics |= self.baseline.topics_of(sample.committed)
        if sample.members:
            self.clients = frozenset(one.instance or one.client for one in sample.members)

    def look(self, logs: Mapping[str, LogEnds]) -> None:
        """Look at the group as the scaler would have, by its last sample and its topics' ends."""
        if (sample := self.last) is None:
            return
        now_s = sample.at_ms / 1000
        topics = self.baseline.topics_of(sample.committed)
        fresh_s = now_s - GAP_INTERVALS * sample.interval_s
        work, self.baseline = work_of(sample.committed, topics, logs, self.baseline, fresh_s)
        reads = [frozenset(one.reads) for one in sample.members]
        self.meter = self.meter.observe(now_s, work, reads, BEHIND_INTERVALS * sample.interval_s)
        self.timeliness.look(now_s, work)

    def measure(self, measurement: Measurement) -> None:
        """Add a measurement of one of the group's topics."""
        self.passes.add(measurement)
        self.measured_ms = [*self.measured_ms[:1], measurement.at_ms]

    def finish(self, logs: Mapping[str, LogEnds]) -> GroupPast | NotComparable:
        """Return what the group did."""
        self.look(logs)
        try:
            recorded = self.passes.finish()
        except StreamError:
            return NotComparable(self.group, "its topics were not measured, or it has none")
        if not any(number for _, number in self.counts):
            return NotComparable(self.group, "no member of it was seen")
        assert self.last is not None
        from_ms, interval_ms = self.measured_ms[0], round(1000 * self.last.interval_s)
        begins = [max(0.0, (at_ms - from_ms) / 1000) for at_ms, _ in self.counts]
        numbers = [number for _, number in self.counts]
        # Samples before the first measurement: the last of them counts.
        first = max(0, sum(at_s == 0.0 for at_s in begins) - 1)
        gaps = [
            later - earlier
            for earlier, later in pairwise(self.sampled_ms)
            if later - earlier > GAP_INTERVALS * interval_ms
        ]
        is_coarse = 1000 * self.within_s < COARSE_INTERVALS * interval_ms
        return GroupPast(
            group=self.group,
            recorded=replace(recorded, label=self.group),
            members=CountSteps(
                (0.0, *begins[first + 1 :]), tuple(numbers[first:]), float(recorded.times[-1])
            ),
            capacity=self.meter.capacity,
            within=None if is_coarse else self.timeliness.share,
            from_ms=from_ms,
            until_ms=self.measured_ms[-1],
            unseen_s=sum(gaps) / 1000,
            clients=tuple(sorted(self.clients)),
            topics=tuple(sorted(self.topics)),
            type=self.last.type,
        )


def read_pasts(
    messages: Iterable[Measurement | GroupSample], within_s: float
) -> list[GroupPast | NotComparable]:
    """Return what each group of a recording did, by its name.

    Args:
        messages: In the order of the recording.
        within_s: Within which a record is to be read, seconds.

    Raises:
        StreamError: The recording has no groups.
    """
    groups: dict[str, _GroupReader] = {}
    readers: dict[str, dict[str, _GroupReader]] = {}  # topic -> of the groups that read it
    logs: dict[str, LogEnds] = {}
    for message in messages:
        if isinstance(message, Measurement):
            logs[message.topic] = _joined(logs.get(message.topic), message)
            for reader in readers.get(message.topic, {}).values():
                reader.measure(message)
            continue
        group = groups.get(message.group)
        if group is None:
            timeliness = Timeliness(within_s)
            group = groups[message.group] = _GroupReader(message.group, within_s, timeliness)
        group.add(message, logs)
        for topic in group.topics:
            readers.setdefault(topic, {})[message.group] = group
    if not groups:
        raise StreamError("the recording has no consumer groups: see binwright shadow record")
    return [groups[name].finish(logs) for name in sorted(groups)]


def _joined(known: LogEnds | None, measurement: Measurement) -> LogEnds:
    """Return a topic's logs; large topics take several messages in one pass."""
    logs = measured_ends(measurement, measurement.at_ms / 1000)
    if known is None or known.at_s != logs.at_s:
        return logs
    return replace(
        logs,
        ends={**known.ends, **logs.ends},
        rates={**known.rates, **logs.rates},
        starts={**known.starts, **logs.starts},
    )
