"""What is timed, from the records of a group's control topics in the order of their times.

Times are those of records: seconds since 1970 by the clock of who sent them, or of the broker where
a topic has its time of append. Clocks of several machines differ; on one machine they do not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import merge

from binwright.group.fold import Measured, RecordRead
from binwright.group.group import Group
from binwright.group.observer import observe_measurement, observe_record
from binwright.group.plans import overloaded
from binwright.group.rates import MeasuredRates
from binwright.lab.timings.steps import Pass
from binwright.protocol.metadata import (
    CatchingUp,
    Claim,
    Dead,
    Goodbye,
    Hello,
    Inbound,
    Planned,
    Report,
    Started,
    Stopped,
)
from binwright.protocol.metrics import Measurement
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot, TopicPartition
from binwright.runtime.settings.group_config import config_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTrigger:
    """A measurement showed an overload, and a plan was published (the paper's Δt2)."""

    at_s: float  # of the plan
    seconds: float  # from the measurement, or from the end of the last change if that was later:
    # its partitions are read, and the writers that it stops have stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStart:
    """A consumer that a plan asked for became ready (Δt3)."""

    at_s: float  # when it was ready
    slot: Slot
    seconds: float  # from the plan
    process_s: float | None  # from its Hello; None: that was not read


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A plan whose partitions are all read by their new readers (Δt4)."""

    at_s: float  # of the last confirmation
    seconds: float  # from the plan
    partitions: int  # that got another reader
    started: int  # consumers that it had to wait for
    after_ready_s: float  # from when the last of these was ready


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterStop:
    """A plan took a table from its writer, whose commit in flight ended."""

    at_s: float  # of the acknowledgement
    seconds: float  # from the plan
    tables: int


@dataclass(slots=True)
class _Pending:
    """A plan that is being carried out."""

    at_s: float
    left: dict[TopicPartition, Slot]  # partitions whose new reader has not confirmed
    partitions: int
    starting: set[Slot]
    started: int
    ready_s: float


@dataclass(slots=True)
class GroupTimings:
    """The timed events of a group.

    Attributes:
        limits: What consumers sustain, as the group's controller has it.
        untriggered: Plans without an overload: first readers, deaths, consumers saved.
        unfinished: Plans that another plan or another controller replaced.
    """

    limits: PerSlot
    triggers: list[PlanTrigger] = field(default_factory=list)
    starts: list[ConsumerStart] = field(default_factory=list)
    changes: list[StateChange] = field(default_factory=list)
    writer_stops: list[WriterStop] = field(default_factory=list)
    untriggered: int = 0
    unfinished: int = 0
    plans: int = 0
    _group: Group = field(init=False)
    _ended: set[int] = field(default_factory=set)  # epochs that a Dead or a Goodbye named
    _overloaded_s: float | None = None  # since when, with no change under way
    _pending: _Pending | None = None
    _planned_s: float | None = None  # time of the last plan
    _ordered_s: dict[Slot, float] = field(default_factory=dict)  # slots that are not ready yet
    _hello_s: dict[Slot, float] = field(default_factory=dict)
    _ready: set[Slot] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with the limits as the controller has them."""
        self._group = Group(config=config_of().with_limits(self.limits), controller="")

    @property
    def changing(self) -> bool:
        """Whether a plan is being carried out."""
        return self._pending is not None

    def forget_events(self) -> None:
        """Forget what was timed, not who reads what: a range begins here."""
        for events in (self.triggers, self.starts, self.changes, self.writer_stops):
            events.clear()
        self.untriggered = self.unfinished = self.plans = 0

    def apply_measurement(self, at_s: float, measurement: Measurement) -> None:
        """Apply a record of the metrics topic."""
        self._group, accepted = observe_measurement(self._group, Measured(at_s, measurement))
        if accepted:
            self._look_for_overload(at_s)

    def apply(self, at_s: float, offset: int, message: Inbound) -> None:
        """Apply a record of metadata partition 0."""
        if isinstance(message, Report) and self._is_unknown(message):
            hello = Hello(slot=message.slot, process="", version="")
            self._observe(at_s, message.epoch, hello)
        self._observe(at_s, offset, message)
        match message:
            case Planned():
                self._plan(at_s, message)
            case Hello(slot=slot):
                self._ready.discard(slot)
                self._hello_s[slot] = at_s
            case Report(slot=slot, ready=True) if slot not in self._ready:
                self._became_ready(at_s, slot)
            case Started(slot=slot):
                self._confirm(at_s, slot, message)
            case Stopped() if message.tables:
                self._stop_writer(at_s, message)
            case Dead(epoch=epoch) | Goodbye(epoch=epoch):
                self._ended.add(epoch)
            case CatchingUp():
                self._look_for_overload(at_s)
            case Claim():
                self._abandon()
                self._overloaded_s = self._planned_s = None
            case _:
                pass
        self._ready &= self._group.members.living()

    def _is_unknown(self, report: Report) -> bool:
        """Whether it is of a living process whose Hello is older than the first record read."""
        epoch = self._group.members.get(report.slot).epoch
        return epoch is None and report.epoch not in self._ended

    def _observe(self, at_s: float, offset: int, message: Inbound) -> None:
        self._group, _ = observe_record(self._group, RecordRead(at_s, offset, message))

    def _look_for_overload(self, at_s: float) -> None:
        if self._pending is not None:
            return  # the controller compares again once the change is complete
        if not any(overloaded(self._group)):
            self._overloaded_s = None
        elif self._overloaded_s is None:
            self._overloaded_s = at_s

    def overloads(self, rates: Mapping[TopicPartition, float]) -> bool:
        """Whether a consumer would carry more than its limit at these rates, bytes/s."""
        topics: dict[str, dict[int, BytesPerSecond]] = {}
        for partition, rate in rates.items():
            topics.setdefault(partition.topic, {})[partition.partition] = BytesPerSecond(rate)
        measured = MeasuredRates()
        for topic, numbers in topics.items():
            measured = measured.with_topic(topic, max(numbers) + 1, numbers)
        load = replace(self._group.load, rates=measured)
        return any(overloaded(replace(self._group, load=load)))

    def _plan(self, at_s: float, plan: Planned) -> None:
        self.plans += 1
        self._abandon()
        self._planned_s = at_s
        if self._overloaded_s is None:
            self.untriggered += 1
        else:
            self.triggers.append(PlanTrigger(at_s=at_s, seconds=at_s - self._overloaded_s))
        self._overloaded_s = None
        owned = self._group.members.assignment()
        left = {p: slot for p, slot in plan.targets.items() if owned.get(p) != slot}
        for slot in sorted(set(left.values()) - self._group.members.living()):
            self._ordered_s.setdefault(slot, at_s)
        if left:
            starting = set(left.values()) - self._ready
            self._pending = _Pending(at_s, left, len(left), starting, len(starting), at_s)

    def _became_ready(self, at_s: float, slot: Slot) -> None:
        self._ready.add(slot)
        hello_s = self._hello_s.pop(slot, None)
        if (ordered_s := self._ordered_s.pop(slot, None)) is not None:
            process_s = None if hello_s is None else at_s - hello_s
            start = ConsumerStart(
                at_s=at_s, slot=slot, seconds=at_s - ordered_s, process_s=process_s
            )
            self.starts.append(start)
        if self._pending is not None and slot in self._pending.starting:
            self._pending.starting.discard(slot)
            self._pending.ready_s = at_s

    def _confirm(self, at_s: float, slot: Slot, message: Started) -> None:
        pending = self._pending
        if pending is None:
            return
        for partition in message.offsets:
            # Of a process that was replaced: another.
            at = self._group.members.partitions.get(partition)
            if at is not None and pending.left.get(partition) == slot == at.slot:
                del pending.left[partition]
        if pending.left:
            return
        change = StateChange(
            at_s=at_s,
            seconds=at_s - pending.at_s,
            partitions=pending.partitions,
            started=pending.started,
            after_ready_s=at_s - pending.ready_s,
        )
        self.changes.append(change)
        self._pending = None
        self._look_for_overload(at_s)

    def _stop_writer(self, at_s: float, message: Stopped) -> None:
        if self._planned_s is None:
            return
        stop = WriterStop(at_s=at_s, seconds=at_s - self._planned_s, tables=len(message.tables))
        self.writer_stops.append(stop)
        if self._overloaded_s is not None:
            self._overloaded_s = at_s  # the change ended only now

    def _abandon(self) -> None:
        self.unfinished += self._pending is not None
        self._pending = None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A record of metadata partition 0; its time is in s since 1970."""

    at_s: float
    offset: int
    message: Inbound


def timings_since(
    records: Iterable[GroupRecord], passes: Iterable[Pass], limits: PerSlot, since_s: float
) -> GroupTimings:
    """Return what was timed from `since_s` on.

    Args:
        records: In the order of the topic; those before `since_s` only say who reads what.
        passes: In the order of the metrics topic.
        limits: What consumers sustain.
        since_s: Where the range begins, s since 1970.
    """
    timed, begun = GroupTimings(limits), False
    # At the same time, the measurement is first: it may be what the plan answers.
    events = merge(_ordered(passes), _ordered(records), key=lambda event: event[0])
    for at_s, event in events:
        if not begun and at_s >= since_s:
            timed.forget_events()
            begun = True
        match event:
            case Pass(measurement=measurement):
                timed.apply_measurement(at_s, measurement)
            case GroupRecord(offset=offset, message=message):
                timed.apply(at_s, offset, message)
    if not begun:
        timed.forget_events()
    return timed


def _ordered(
    events: Iterable[Pass] | Iterable[GroupRecord],
) -> Iterable[tuple[float, Pass | GroupRecord]]:
    """Yield events with times that never fall: senders' clocks differ, the topic's order counts."""
    latest = 0.0
    for event in events:
        latest = max(latest, event.at_s)
        yield latest, event
