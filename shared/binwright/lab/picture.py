"""What a group looks like from outside: folded from its metadata and metrics topics, for people.

Nobody obeys it and nobody reports to it: anyone who can read the two topics sees the same.
"""

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from math import ceil

from binwright.core.messages import (
    Accepted,
    Approved,
    Claim,
    Dead,
    Gap,
    Goodbye,
    Hello,
    Inbound,
    Measurement,
    Planned,
    Proposed,
    Report,
    Started,
    Stopped,
    Withdrawn,
)
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.monitors import Monitors, take
from binwright.lab.tables import TableViews

NEWS = 200  # events remembered


@dataclass(frozen=True, slots=True)
class Move:
    """A partition that changed hands while both owners lived; nobody read it for `pause_s`."""

    partition: TopicPartition
    old: Slot
    new: Slot
    pause_s: float


@dataclass(frozen=True, slots=True)
class Reign:
    """Who claimed to be the controller last."""

    term: int
    controller: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A plan that is shown and not carried out, or not yet."""

    number: int
    plan: Proposed
    at_ms: int
    approved: bool = False


@dataclass(slots=True)
class Picture:
    """The group as last heard of."""

    reports: dict[Slot, Report] = field(default_factory=dict)  # of the living
    heard_ms: dict[Slot, int] = field(default_factory=dict)  # when each spoke last, of the living
    reign: Reign | None = None
    planned_ms: int | None = None  # when the last plan was told
    waiting: Waiting | None = None
    rates: dict[TopicPartition, BytesPerSecond] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)  # first offset kept
    record_bytes: dict[TopicPartition, float] = field(default_factory=dict)
    tables: TableViews = field(default_factory=TableViews)
    monitors: Monitors = field(default_factory=Monitors)
    plans: list[Planned] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    deaths: int = 0
    rescued: int = 0  # times a partition was taken over from a process that died
    gaps: int = 0  # partitions that were read again, because what was staged was missing
    terms: int = 0
    staged_rows: Counter[tuple[Slot, int]] = field(default_factory=Counter)  # by slot and epoch
    lost_offsets: Counter[tuple[Slot, int]] = field(default_factory=Counter)
    news: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=NEWS))  # ms, words
    _epochs: dict[Slot, int] = field(default_factory=dict)
    _owners: dict[TopicPartition, tuple[Slot, int]] = field(default_factory=dict)
    _stopped: dict[TopicPartition, Stopped] = field(default_factory=dict)

    def measured(self, measurement: Measurement) -> None:
        """Take a topic's rates, or some of them; forget partitions that are gone."""
        self.monitors, counts, _ = take(self.monitors, measurement.at_ms / 1000, measurement)
        if not counts:
            return
        self._forget(measurement.topic, measurement.count)
        self.rates.update(measurement.rates())
        for found in measurement.partitions:
            partition = TopicPartition(measurement.topic, found.partition)
            self.ends[partition], self.starts[partition] = found.end, found.start
            if found.bytes_per_record is not None:
                self.record_bytes[partition] = found.bytes_per_record

    def _forget(self, topic: str, count: int) -> None:
        gone = {p for p in self.ends if p.topic == topic and p.partition >= count}
        for known in (self.rates, self.ends, self.starts, self.record_bytes):
            for partition in gone & known.keys():
                del known[partition]
        self.tables.forget(topic, count)

    def heard(self, offset: int, at_ms: int, message: Inbound) -> None:
        """Take a record of metadata partition 0."""
        match message:
            case Hello() | Report() | Dead() | Goodbye():
                self._about_consumers(offset, at_ms, message)
            case Gap():
                self._gap(at_ms, message)
            case Stopped():
                self._stopped |= {p: message for p, at in message.next.items() if at is not None}
            case Started():
                self._started(at_ms, message)
            case Planned() | Proposed() | Approved() | Accepted() | Withdrawn():
                self._about_plans(offset, at_ms, message)
            case Claim():
                self.terms += 1
                self.reign = Reign(offset, message.controller, at_ms)
                self._tell(at_ms, f"a controller claims (term {offset})")

    def _about_consumers(
        self, offset: int, at_ms: int, message: Hello | Report | Dead | Goodbye
    ) -> None:
        slot = message.slot
        if isinstance(message, Hello):
            self._leave(slot)
            self._epochs[slot], self.heard_ms[slot] = offset, at_ms
            self._tell(at_ms, f"consumer {slot} is there (epoch {offset})")
            return
        if message.epoch != self._epochs.get(slot):
            return  # of a process that is superseded
        match message:
            case Report():
                self._report(at_ms, message)
            case Dead():
                self.deaths += 1
                self._leave(slot)
                self._tell(at_ms, f"consumer {slot} is declared dead")
            case Goodbye():
                for partition in message.next:
                    self._owners.pop(partition, None)  # nobody has to rescue it
                self._leave(slot)
                self._tell(at_ms, f"consumer {slot} said goodbye")

    def _about_plans(
        self,
        offset: int,
        at_ms: int,
        message: Planned | Proposed | Approved | Accepted | Withdrawn,
    ) -> None:
        match message:
            case Planned():
                self._planned(at_ms, message)
            case Proposed():
                self.waiting = Waiting(offset, message, at_ms)
                self._tell(at_ms, f"plan {offset} is proposed: {'; '.join(message.reasons)}")
            case Approved(plan=number, by=by):
                if self.waiting and self.waiting.number == number and self.waiting.plan.waits:
                    self.waiting = replace(self.waiting, approved=True)
                self._tell(at_ms, f"plan {number} is approved by {by}")
            case Accepted(plan=number):
                self._waits_no_more(number)
                self._tell(at_ms, f"plan {number} goes ahead")
            case Withdrawn(plan=number, reason=reason):
                self._waits_no_more(number)
                self._tell(at_ms, f"plan {number} is out of date: {reason}")

    def _planned(self, at_ms: int, plan: Planned) -> None:
        self.plans.append(plan)
        self.planned_ms = at_ms
        self._tell(at_ms, f"plan: {'; '.join(plan.reasons)}")
        if plan.keeps is None and self.waiting and self.waiting.plan.term <= plan.term:
            self.waiting = None  # by a controller that asks nobody

    def _waits_no_more(self, number: int) -> None:
        if self.waiting and self.waiting.number <= number:
            self.waiting = None

    def _leave(self, slot: Slot) -> None:
        self.tables.left(slot)
        for known in (self.reports, self.heard_ms, self._epochs):
            known.pop(slot, None)

    def _gap(self, at_ms: int, message: Gap) -> None:
        self.gaps += len(message.committed)
        again = ", ".join(f"{p} from {at}" for p, at in sorted(message.committed.items()))
        self._tell(at_ms, f"consumer {message.slot} needs again: {again}")

    def _report(self, at_ms: int, report: Report) -> None:
        before = self.reports.get(report.slot)
        if report.ready and not (before and before.ready):
            self._tell(at_ms, f"consumer {report.slot} is ready")
        self.reports[report.slot] = report
        self.heard_ms[report.slot] = at_ms
        self.staged_rows[report.slot, report.epoch] = report.staged_rows
        self.lost_offsets[report.slot, report.epoch] = report.lost_offsets
        for words in self.tables.reported(at_ms, report):
            self._tell(at_ms, words)

    def _started(self, at_ms: int, message: Started) -> None:
        for partition in sorted(message.offsets):
            stopped = self._stopped.pop(partition, None)
            before = self._owners.get(partition)
            self._owners[partition] = (message.slot, message.epoch)
            if stopped is None:  # its owner went without a word, or it is the first
                self.rescued += before not in {None, (message.slot, message.epoch)}
            elif stopped.slot != message.slot:
                pause_s = max(0.0, (at_ms - stopped.quit_ms) / 1000)
                self.moves.append(Move(partition, stopped.slot, message.slot, pause_s))
                self._tell(
                    at_ms,
                    f"{partition} moved {stopped.slot} → {message.slot}, paused {pause_s:.2f} s",
                )

    def _tell(self, at_ms: int, words: str) -> None:
        self.news.append((at_ms, words))

    @property
    def landed(self) -> dict[TopicPartition, int]:
        """The next offset to land of each partition, as the tables' writers report it."""
        return self.tables.committed

    @property
    def landed_rows(self) -> int:
        """Rows that the tables' writers have landed."""
        return sum(view.rows for view in self.tables.by_topic.values())

    @property
    def staging(self) -> float:
        """Bytes/s that consumers stage."""
        return sum(report.rate for report in self.reports.values())

    @property
    def between(self) -> set[TopicPartition]:
        """Partitions whose old owner has stopped and whose new one has not confirmed its start."""
        return set(self._stopped)

    def partition_lag(self, partition: TopicPartition) -> int:
        """Records of one partition that the topic still keeps and that have not landed."""
        start = self.starts.get(partition, 0)
        return max(0, self.ends.get(partition, 0) - max(self.landed.get(partition, 0), start))

    @property
    def lag(self) -> int:
        """Records that are written and not landed yet."""
        return sum(map(self.partition_lag, self.ends))

    @property
    def lag_bytes(self) -> float:
        """About how many bytes those are."""
        return sum(self.partition_lag(p) * self.record_bytes.get(p, 0.0) for p in self.ends)

    def load(self, slot: Slot) -> BytesPerSecond:
        """Bytes/s written to what this consumer reads."""
        report = self.reports.get(slot)
        reading = report.reading if report else {}
        return BytesPerSecond(sum(self.rates.get(p, 0.0) for p in reading))


def percentile(values: list[float], share: float) -> float | None:
    """Return the smallest value that at least `share` (0 to 1) of them do not exceed."""
    if not values:
        return None
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]
