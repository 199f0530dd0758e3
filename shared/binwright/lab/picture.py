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
    record_bytes: dict[TopicPartition, float] = field(default_factory=dict)
    landed: dict[TopicPartition, int] = field(default_factory=dict)  # next offset to land
    monitors: Monitors = field(default_factory=Monitors)
    plans: list[Planned] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    deaths: int = 0
    rescued: int = 0  # times a partition was taken over from a process that died
    terms: int = 0
    landed_rows: Counter[tuple[Slot, int]] = field(default_factory=Counter)  # by slot and epoch
    holes: Counter[tuple[Slot, int]] = field(default_factory=Counter)
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
            self.ends[partition] = found.end
            if found.bytes_per_record is not None:
                self.record_bytes[partition] = found.bytes_per_record

    def _forget(self, topic: str, count: int) -> None:
        gone = {p for p in self.ends if p.topic == topic and p.partition >= count}
        for known in (self.rates, self.ends, self.record_bytes, self.landed):
            for partition in gone & known.keys():
                del known[partition]

    def heard(self, offset: int, at_ms: int, message: Inbound) -> None:
        """Take a record of metadata partition 0."""
        match message:
            case Hello(slot=slot):
                self._epochs[slot] = offset
                self.heard_ms[slot] = at_ms
                self.reports.pop(slot, None)
                self._tell(at_ms, f"consumer {slot} is there (epoch {offset})")
            case Report(slot=slot) if message.epoch == self._epochs.get(slot):
                self._report(at_ms, message)
            case Dead(slot=slot):
                self.deaths += 1
                self._leave(slot)
                self._tell(at_ms, f"consumer {slot} is declared dead")
            case Goodbye(slot=slot):
                self._leave(slot)
                self._tell(at_ms, f"consumer {slot} said goodbye")
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
            case _:
                pass

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
        for known in (self.reports, self.heard_ms, self._epochs):
            known.pop(slot, None)

    def _report(self, at_ms: int, report: Report) -> None:
        before = self.reports.get(report.slot)
        if report.ready and not (before and before.ready):
            self._tell(at_ms, f"consumer {report.slot} is ready")
        self.reports[report.slot] = report
        self.heard_ms[report.slot] = at_ms
        self.landed_rows[report.slot, report.epoch] = report.landed_rows
        self.holes[report.slot, report.epoch] = report.holes
        for partition, offset in report.held.items():
            self.landed[partition] = max(offset, self.landed.get(partition, 0))

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
    def between(self) -> set[TopicPartition]:
        """Partitions whose owner has stopped and whose heir has not said yet that it reads."""
        return set(self._stopped)

    @property
    def lag(self) -> int:
        """Records that are written and not landed yet."""
        return sum(max(0, end - self.landed.get(p, 0)) for p, end in self.ends.items())

    @property
    def lag_bytes(self) -> float:
        """About how many bytes those are."""
        return sum(
            max(0, end - self.landed.get(p, 0)) * self.record_bytes.get(p, 0.0)
            for p, end in self.ends.items()
        )

    def load(self, slot: Slot) -> BytesPerSecond:
        """Bytes/s written to what this consumer holds."""
        report = self.reports.get(slot)
        held = report.held if report else {}
        return BytesPerSecond(sum(self.rates.get(p, 0.0) for p in held))


def percentile(values: list[float], share: float) -> float | None:
    """Return the smallest value that at least `share` (0 to 1) of them do not exceed."""
    if not values:
        return None
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]
