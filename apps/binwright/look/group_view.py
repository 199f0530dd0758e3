"""A group for display: what its topics say it is (`group.observer`), and what happened in it.

It takes no part in the protocol: every process that can read the topics gets the same view.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from operator import itemgetter

from immutables import Map

from binwright.cli.terminal import data_size
from binwright.group.config import GroupConfig
from binwright.group.fold import (
    Change,
    ConsumerArrived,
    ConsumerDied,
    ConsumerLeft,
    ConsumerReady,
    Measured,
    RecordRead,
    StateRecord,
)
from binwright.group.group import Group
from binwright.group.observer import observe_measurement, observe_record
from binwright.group.people import Proposal
from binwright.group.rates import MeasuredRates
from binwright.group.zones import known_zones
from binwright.look.plan_history import PlanHistory
from binwright.look.table_view import TableViews
from binwright.packing.zones import Zones
from binwright.protocol.metadata import (
    Accepted,
    Claim,
    Gap,
    Goodbye,
    LimitsMeasured,
    Planned,
    Proposed,
    Report,
    StagedShare,
    Started,
    Stopped,
    Withdrawn,
)
from binwright.protocol.metrics import Measurement
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot, TopicPartition
from binwright.protocol.orders import (
    MAX_SHOWN,
    AdoptOrder,
    Approved,
    CordonOrder,
    FreezeOrder,
    PinOrder,
    Savings,
    ScaleOrder,
    StandingOrders,
    describe,
)
from binwright.runtime.settings.group_config import config_of

MAX_EVENTS = 200  # that are kept


@dataclass(frozen=True, slots=True)
class Move:
    """A partition that moved between two live consumers; it was not read for `pause_s` seconds."""

    partition: TopicPartition
    old: Slot
    new: Slot
    pause_s: float


@dataclass(frozen=True, slots=True)
class LastClaim:
    """The last claim of a controller."""

    term: int
    controller: str
    at_ms: int


@dataclass(slots=True)
class GroupView:
    """The group as last reported, as far as its own records tell.

    Attributes:
        group: What it is, by the configuration that its controller has, as far as that is known.
        on_move: Called with each further move.
    """

    group: Group = field(default_factory=lambda: Group(config=config_of(), controller=""))
    reports: dict[Slot, Report] = field(default_factory=dict)  # of live consumers
    seen_ms: dict[Slot, int] = field(default_factory=dict)  # last message of each live consumer
    leadership: LastClaim | None = None
    planned_ms: int | None = None  # wall clock of the last plan
    proposed_ms: int = 0  # of the last proposed one
    measured_ms: dict[str, int] = field(default_factory=dict)  # topic -> its last measurement
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)  # first offset kept
    record_bytes: dict[TopicPartition, float] = field(default_factory=dict)
    tables: TableViews = field(default_factory=TableViews)
    plan: Planned | None = None  # the last one
    history: PlanHistory = field(default_factory=PlanHistory)
    savings: Savings | None = None  # the last ones
    savings_number: int = 0  # the offset of their record
    rscores: list[float] = field(default_factory=list)  # of each plan
    moves: list[Move] = field(default_factory=list)
    on_move: Callable[[Move], None] | None = None
    deaths: int = 0
    rescued: int = 0  # times a partition was taken over from a dead consumer
    gaps: int = 0  # partitions that were read again because staged files were missing
    terms: int = 0
    staged_rows: Counter[tuple[Slot, int]] = field(default_factory=Counter)  # by slot and epoch
    lost_offsets: Counter[tuple[Slot, int]] = field(default_factory=Counter)  # likewise
    recent_events: deque[tuple[int, str]] = field(
        default_factory=lambda: deque(maxlen=MAX_EVENTS)
    )  # wall clock in ms, text
    _owners: dict[TopicPartition, tuple[Slot, int]] = field(default_factory=dict)
    _stopped: dict[TopicPartition, Stopped] = field(default_factory=dict)

    @classmethod
    def of(cls, config: GroupConfig | None) -> "GroupView":
        """Return the view of a group; None: its settings are not known."""
        return cls() if config is None else cls(Group(config=config, controller=""))

    def apply_measurement(self, measurement: Measurement) -> None:
        """Apply rates of a topic, all or some of them; remove partitions that no longer exist."""
        topic, before = measurement.topic, self.group.load.rates.count(measurement.topic)
        self.group, counts = observe_measurement(
            self.group, Measured(measurement.at_ms / 1000, measurement)
        )
        if not counts:
            return
        self.measured_ms[topic] = measurement.at_ms
        if before is not None and measurement.count < before:
            for known in (self.ends, self.starts, self.record_bytes):
                for number in range(measurement.count, before):
                    known.pop(TopicPartition(topic, number), None)
            self.tables.remove_partitions(topic, measurement.count)
        for rate in measurement.partitions:
            partition = TopicPartition(topic, rate.partition)
            self.ends[partition], self.starts[partition] = rate.end, rate.start
            if rate.bytes_per_record is not None:
                self.record_bytes[partition] = rate.bytes_per_record

    def apply(self, offset: int, at_ms: int, message: StateRecord) -> None:
        """Apply a record of metadata partition 0 or of the orders topic; `at_ms`: wall clock."""
        self.group, changes = observe_record(self.group, RecordRead(at_ms / 1000, offset, message))
        for change in changes:
            self._changed(at_ms, change)
        match message:
            case Goodbye() if ConsumerLeft(message.slot, message.epoch) in changes:
                for partition in message.next:
                    self._owners.pop(partition, None)  # handed back: not of a dead consumer
            case Report() | Stopped() | Started() | Gap():
                self._apply_consumer(at_ms, message)
            case Planned() | Proposed() | Approved() | Accepted() | Withdrawn():
                self._apply_plan(offset, at_ms, message)
            case Claim():
                self.terms += 1
                self.leadership = LastClaim(offset, message.controller, at_ms)
                self._log_event(at_ms, "a controller took the lead")
            case LimitsMeasured() if self.limits_measured:
                text = f"the limit of a consumer is {data_size(message.limit)}/s, as measured"
                self._log_event(at_ms, text)
            case PinOrder() | CordonOrder() | FreezeOrder() | ScaleOrder() | AdoptOrder():
                why = f": {message.reason}" if message.reason else ""
                self._log_event(at_ms, f"{describe(message)}, by {message.by}{why}")
            case Savings():
                self.savings, self.savings_number = message, offset

    def _changed(self, at_ms: int, change: Change) -> None:
        match change:
            case ConsumerArrived(slot=slot):
                self._remove_consumer(slot)
                self.seen_ms[slot] = at_ms
                self._log_event(at_ms, f"consumer {slot} started")
            case ConsumerReady(slot=slot):
                self._log_event(at_ms, f"consumer {slot} is ready")
            case ConsumerDied(slot=slot):
                self.deaths += 1
                self._remove_consumer(slot)
                self._log_event(at_ms, f"consumer {slot} is declared dead")
            case ConsumerLeft(slot=slot):
                self._remove_consumer(slot)
                self._log_event(at_ms, f"consumer {slot} ended")

    def _remove_consumer(self, slot: Slot) -> None:
        self.tables.remove_consumer(slot)
        self.reports.pop(slot, None)
        self.seen_ms.pop(slot, None)

    def _apply_consumer(self, at_ms: int, message: Report | Stopped | Started | Gap) -> None:
        match message:
            case Gap():
                self.gaps += len(message.committed)
                again = ", ".join(f"{p} from {at}" for p, at in sorted(message.committed.items()))
                self._log_event(at_ms, f"consumer {message.slot} needs again: {again}")
            case Report() if message.epoch == self.group.members.get(message.slot).epoch:
                self._report(at_ms, message)
            case Stopped():
                gone = (p for p, at in message.next.items() if at is not None)
                self._stopped |= dict.fromkeys(gone, message)
                self._update_reading(message)
            case Started():
                self._update_reading(message)
                self._started(at_ms, message)

    def _update_reading(self, message: Stopped | Started) -> None:
        """Update the report of the same process, which a move makes old before the next one."""
        report = self.reports.get(message.slot)
        if report is not None and report.epoch == message.epoch:
            reading = self.group.members.get(message.slot).reading
            self.reports[message.slot] = replace(report, reading=reading)

    def _apply_plan(
        self,
        offset: int,
        at_ms: int,
        message: Planned | Proposed | Approved | Accepted | Withdrawn,
    ) -> None:
        match message:
            case Planned():
                self.plan, self.planned_ms = message, at_ms
                self.history.apply(offset, at_ms, message)
                self.rscores.append(message.rscore)
                text = f"plan: {'; '.join(message.reasons)}"
            case Proposed():
                self.proposed_ms = at_ms
                text = f"plan {offset} is proposed: {'; '.join(message.reasons)}"
            case Approved(plan=number, by=by):
                text = f"plan {number} is approved by {by}"
            case Accepted(plan=number):
                text = f"plan {number} goes ahead"
            case Withdrawn(plan=number, reason=reason):
                text = f"plan {number} is out of date: {reason}"
        self._log_event(at_ms, text)

    def _report(self, at_ms: int, report: Report) -> None:
        self.reports[report.slot] = report
        self.seen_ms[report.slot] = at_ms
        self.staged_rows[report.slot, report.epoch] = report.staged_rows
        self._lost(at_ms, report)
        for text in self.tables.apply_report(at_ms, report):
            self._log_event(at_ms, text)

    def _lost(self, at_ms: int, report: Report) -> None:
        """Count offsets that were lost; log the new ones."""
        process = report.slot, report.epoch
        if (more := report.lost_offsets - self.lost_offsets[process]) > 0:
            self._log_event(at_ms, f"consumer {report.slot} lost {more:,} offsets")
        self.lost_offsets[process] = report.lost_offsets

    def _started(self, at_ms: int, message: Started) -> None:
        for partition in sorted(message.offsets):
            stopped = self._stopped.pop(partition, None)
            before = self._owners.get(partition)
            self._owners[partition] = (message.slot, message.epoch)
            if stopped is None:  # its owner died, or this is its first owner
                self.rescued += before not in {None, (message.slot, message.epoch)}
            elif stopped.slot != message.slot:
                pause_s = max(0.0, (at_ms - stopped.stopped_ms) / 1000)
                self._moved(Move(partition, stopped.slot, message.slot, pause_s))
                self._log_event(
                    at_ms,
                    f"{partition} moved {stopped.slot} → {message.slot}, paused {pause_s:.2f} s",
                )

    def _moved(self, move: Move) -> None:
        self.moves.append(move)
        if self.on_move is not None:
            self.on_move(move)

    def _log_event(self, at_ms: int, text: str) -> None:
        events = self.recent_events
        events.append((at_ms, text))
        if len(events) > 1 and at_ms < events[-2][0]:  # of another topic, which is read by itself
            self.recent_events = deque(sorted(events, key=itemgetter(0)), MAX_EVENTS)

    def at(self, now_ms: int) -> Group:
        """Return the group at this time, by the wall clock: some orders have ended by then."""
        return replace(self.group, people=self.group.people.at(now_ms, self.group.config))

    @property
    def orders(self) -> StandingOrders:
        """What people have ordered."""
        return self.group.people.orders

    @property
    def held(self) -> tuple[str, ...]:
        """What the controller does not do, and why."""
        return self.group.people.held[:MAX_SHOWN]

    @property
    def proposal(self) -> Proposal | None:
        """The plan that is only shown, or that waits for its approval."""
        return self.group.people.proposal

    @property
    def rates(self) -> MeasuredRates:
        """The last known rate of each partition that was measured, bytes/s."""
        return self.group.load.rates

    @property
    def limits(self) -> PerSlot | None:
        """What consumers sustain, as the last controller has it; None: none ever led."""
        return None if self.leadership is None else self.group.config.limits

    @property
    def limits_measured(self) -> bool:
        """Whether consumers measure the limits; else they are given."""
        return self.leadership is not None and self.group.config.start_limits is not None

    @property
    def landed(self) -> dict[TopicPartition, int]:
        """Partition -> the next offset to land, of its topic's tables the lowest, as reported."""
        return self.tables.committed

    @property
    def landed_rows(self) -> int:
        """Rows that the tables' writers have landed."""
        return sum(view.report.rows for view in self.tables.by_name.values())

    @property
    def staging(self) -> float:
        """Bytes/s that all consumers stage."""
        return sum(report.rate for report in self.reports.values())

    @property
    def in_handover(self) -> set[TopicPartition]:
        """Partitions whose old owner has stopped and whose new one has not confirmed its start."""
        return set(self._stopped)

    def partition_lag(self, partition: TopicPartition) -> int:
        """Return how many records of a partition the topic keeps that have not landed."""
        return self.lag_behind(partition, self.landed.get(partition))

    def lag_behind(self, partition: TopicPartition, committed: int | None) -> int:
        """Return how many records the topic keeps from an offset on; None: all."""
        start = self.starts.get(partition, 0)
        return max(0, self.ends.get(partition, 0) - max(committed or 0, start))

    def zones(self, price: float = 0.0) -> Zones:
        """Return where consumers run, and where partitions can be read; see `Zones.price`."""
        return replace(known_zones(self.group), price=price)

    def written(self) -> dict[Slot, BytesPerSecond]:
        """Return the write rate of what each consumer reads, bytes/s.

        Of a split partition each of its consumers has an equal share. What backlogs count for is
        not in it: see `Group.loads`.
        """
        load = replace(self.group.load, catch_up=Map())
        return replace(self.group, load=load).loads()

    @property
    def splits(self) -> dict[TopicPartition, tuple[StagedShare, ...]]:
        """Split partitions -> what each consumer has staged, as the owner reports, itself first."""
        return {
            p: shares
            for slot, report in self.reports.items()
            for p, shares in report.splits.items()
            if p in report.reading and shares and shares[0].slot == slot
        }


def percentile(values: list[float], share: float) -> float | None:
    """Return the smallest value that at least `share` (0 to 1) of them do not exceed."""
    if not values:
        return None
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]
