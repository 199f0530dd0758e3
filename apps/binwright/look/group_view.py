"""A group seen from outside, folded from its metadata, orders and metrics topics, for display.

It takes no part in the protocol: every process that can read the topics gets the same view.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from operator import itemgetter

from binwright.cli.terminal import data_size
from binwright.look.plan_history import PlanHistory
from binwright.look.table_view import TableViews
from binwright.packing.zones import Zones
from binwright.protocol.group_orders import (
    MAX_SHOWN,
    AdoptOrder,
    CordonOrder,
    FreezeOrder,
    GroupOrder,
    Held,
    PinOrder,
    ScaleOrder,
    StandingOrders,
    describe,
)
from binwright.protocol.measurements import Measurement
from binwright.protocol.messages import (
    Accepted,
    Approved,
    Claim,
    Dead,
    Gap,
    Goodbye,
    Hello,
    LimitsMeasured,
    Planned,
    Proposed,
    Report,
    Started,
    StateRecord,
    Stopped,
    Withdrawn,
)
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot, TopicPartition
from binwright.protocol.monitors import Monitors, accept_measurement
from binwright.protocol.savings import Savings
from binwright.protocol.splits import StagedShare

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
    limits: PerSlot  # what its consumers sustain
    measured: bool = False  # the limits


@dataclass(frozen=True, slots=True)
class ProposedPlan:
    """A plan that is only shown, or that waits for its approval."""

    number: int
    plan: Proposed
    at_ms: int
    approved: bool = False


@dataclass(slots=True)
class GroupView:
    """The group as last reported."""

    reports: dict[Slot, Report] = field(default_factory=dict)  # of live consumers
    seen_ms: dict[Slot, int] = field(default_factory=dict)  # last message of each live consumer
    leadership: LastClaim | None = None
    planned_ms: int | None = None  # wall clock of the last plan
    measured_ms: dict[str, int] = field(default_factory=dict)  # topic -> its last measurement
    proposal: ProposedPlan | None = None
    rates: dict[TopicPartition, BytesPerSecond] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)  # first offset kept
    record_bytes: dict[TopicPartition, float] = field(default_factory=dict)
    readable_in: dict[TopicPartition, frozenset[str]] = field(default_factory=dict)
    """The zones in which partitions can be read; empty: not known."""
    tables: TableViews = field(default_factory=TableViews)
    orders: StandingOrders = field(default_factory=StandingOrders)
    held: tuple[str, ...] = ()  # what the controller does not do, and why
    monitors: Monitors = field(default_factory=Monitors)
    plan: Planned | None = None  # the last one
    history: PlanHistory = field(default_factory=PlanHistory)
    savings: Savings | None = None  # the last ones
    savings_number: int = 0  # the offset of their record
    rscores: list[float] = field(default_factory=list)  # of each plan
    moves: list[Move] = field(default_factory=list)
    on_move: Callable[[Move], None] | None = None  # called with each further one
    deaths: int = 0
    rescued: int = 0  # times a partition was taken over from a dead consumer
    gaps: int = 0  # partitions that were read again because staged files were missing
    terms: int = 0
    staged_rows: Counter[tuple[Slot, int]] = field(default_factory=Counter)  # by slot and epoch
    lost_offsets: Counter[tuple[Slot, int]] = field(default_factory=Counter)  # likewise
    recent_events: deque[tuple[int, str]] = field(
        default_factory=lambda: deque(maxlen=MAX_EVENTS)
    )  # wall clock in ms, text
    _epochs: dict[Slot, int] = field(default_factory=dict)
    _owners: dict[TopicPartition, tuple[Slot, int]] = field(default_factory=dict)
    _stopped: dict[TopicPartition, Stopped] = field(default_factory=dict)
    _measured_limits: PerSlot | None = None
    _approved: int | None = None  # the last approved plan, which may not be read yet

    def apply_measurement(self, measurement: Measurement) -> None:
        """Apply rates of a topic, all or some of them; remove partitions that no longer exist."""
        self.monitors, counts, _ = accept_measurement(
            self.monitors, measurement.at_ms / 1000, measurement
        )
        if not counts:
            return
        self.measured_ms[measurement.topic] = measurement.at_ms
        self._remove_partitions(measurement.topic, measurement.count)
        self.rates.update(measurement.rates())
        if measurement.zones or self.readable_in:
            for number, near in measurement.readable_in().items():
                self.readable_in[TopicPartition(measurement.topic, number)] = near
        for rate in measurement.partitions:
            partition = TopicPartition(measurement.topic, rate.partition)
            self.ends[partition], self.starts[partition] = rate.end, rate.start
            if rate.bytes_per_record is not None:
                self.record_bytes[partition] = rate.bytes_per_record

    def _remove_partitions(self, topic: str, count: int) -> None:
        removed = {p for p in self.ends if p.topic == topic and p.partition >= count}
        every = (self.rates, self.ends, self.starts, self.record_bytes, self.readable_in)
        for known in every:
            for partition in removed & known.keys():
                del known[partition]
        self.tables.remove_partitions(topic, count)

    def apply(self, offset: int, at_ms: int, message: StateRecord) -> None:
        """Apply a record of metadata partition 0 or of the orders topic; `at_ms`: wall clock."""
        match message:
            case Hello() | Report() | Dead() | Goodbye():
                self._apply_consumer(offset, at_ms, message)
            case Gap():
                self._gap(at_ms, message)
            case Stopped():
                self._stopped_reading(message)
            case Started():
                self._started(at_ms, message)
            case Planned() | Proposed() | Approved() | Accepted() | Withdrawn():
                self._apply_plan(offset, at_ms, message)
            case Claim():
                self.terms += 1
                measured = self._measured_limits if message.measured else None
                limits = measured or _limits(message)
                self.leadership = LastClaim(
                    offset, message.controller, at_ms, limits, message.measured
                )
                self._log_event(at_ms, "a controller took the lead")
            case LimitsMeasured():
                self._apply_limits(at_ms, message)
            case PinOrder() | CordonOrder() | FreezeOrder() | ScaleOrder() | AdoptOrder():
                self._apply_order(at_ms, message)
            case Held() | Savings():
                self._apply_note(offset, message)

    def _apply_note(self, offset: int, message: Held | Savings) -> None:
        if isinstance(message, Held):
            self.held = message.reasons[:MAX_SHOWN]
        else:
            self.savings, self.savings_number = message, offset

    def _apply_order(self, at_ms: int, order: GroupOrder) -> None:
        self.orders = self.orders.apply(order)
        why = f": {order.reason}" if order.reason else ""
        self._log_event(at_ms, f"{describe(order)}, by {order.by}{why}")

    def _apply_limits(self, at_ms: int, message: LimitsMeasured) -> None:
        self._measured_limits = limits = _limits(message)
        if self.leadership is not None and self.leadership.measured:
            self.leadership = replace(self.leadership, limits=limits)
            self._log_event(
                at_ms, f"the limit of a consumer is {data_size(limits.default)}/s, as measured"
            )

    def _apply_consumer(
        self, offset: int, at_ms: int, message: Hello | Report | Dead | Goodbye
    ) -> None:
        slot = message.slot
        if isinstance(message, Hello):
            self._remove_consumer(slot)
            self._epochs[slot], self.seen_ms[slot] = offset, at_ms
            self._log_event(at_ms, f"consumer {slot} started")
            return
        if message.epoch != self._epochs.get(slot):
            return  # from a superseded process
        match message:
            case Report():
                self._report(at_ms, message)
            case Dead():
                self.deaths += 1
                self._remove_consumer(slot)
                self._log_event(at_ms, f"consumer {slot} is declared dead")
            case Goodbye():
                for partition in message.next:
                    self._owners.pop(
                        partition, None
                    )  # handed back: not rescued from a dead consumer
                self._remove_consumer(slot)
                self._log_event(at_ms, f"consumer {slot} ended")

    def _apply_plan(
        self,
        offset: int,
        at_ms: int,
        message: Planned | Proposed | Approved | Accepted | Withdrawn,
    ) -> None:
        match message:
            case Planned():
                self._planned(offset, at_ms, message)
            case Proposed():
                approved = message.waits and offset == self._approved
                self.proposal = ProposedPlan(offset, message, at_ms, approved)
                self._log_event(at_ms, f"plan {offset} is proposed: {'; '.join(message.reasons)}")
            case Approved(plan=number, by=by):
                self._approved = number
                if self.proposal and self.proposal.number == number and self.proposal.plan.waits:
                    self.proposal = replace(self.proposal, approved=True)
                self._log_event(at_ms, f"plan {number} is approved by {by}")
            case Accepted(plan=number):
                self._close_proposal(number)
                self._log_event(at_ms, f"plan {number} goes ahead")
            case Withdrawn(plan=number, reason=reason):
                self._close_proposal(number)
                self._log_event(at_ms, f"plan {number} is out of date: {reason}")

    def _planned(self, offset: int, at_ms: int, plan: Planned) -> None:
        self.plan = plan
        self.history.apply(offset, at_ms, plan)
        self.rscores.append(plan.rscore)
        self.planned_ms = at_ms
        self._log_event(at_ms, f"plan: {'; '.join(plan.reasons)}")
        if plan.keeps is None and self.proposal and self.proposal.plan.term <= plan.term:
            self.proposal = None  # this controller needs no approval

    def _close_proposal(self, number: int) -> None:
        if self.proposal and self.proposal.number <= number:
            self.proposal = None

    def _remove_consumer(self, slot: Slot) -> None:
        self.tables.remove_consumer(slot)
        for known in (self.reports, self.seen_ms, self._epochs):
            known.pop(slot, None)

    def _gap(self, at_ms: int, message: Gap) -> None:
        self.gaps += len(message.committed)
        again = ", ".join(f"{p} from {at}" for p, at in sorted(message.committed.items()))
        self._log_event(at_ms, f"consumer {message.slot} needs again: {again}")

    def _report(self, at_ms: int, report: Report) -> None:
        before = self.reports.get(report.slot)
        if report.ready and not (before and before.ready):
            self._log_event(at_ms, f"consumer {report.slot} is ready")
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

    def _stopped_reading(self, message: Stopped) -> None:
        gone = {p for p, at in message.next.items() if at is not None}
        self._stopped |= dict.fromkeys(gone, message)
        if report := self._last_report(message):
            left = {p: at for p, at in report.reading.items() if p not in gone}
            self.reports[message.slot] = replace(report, reading=left)

    def _last_report(self, message: Stopped | Started) -> Report | None:
        """Return the report of the same process, which a move makes old before the next one."""
        report = self.reports.get(message.slot)
        return report if report and report.epoch == message.epoch else None

    def _started(self, at_ms: int, message: Started) -> None:
        if report := self._last_report(message):
            reading = {**report.reading, **message.offsets}
            self.reports[message.slot] = replace(report, reading=reading)
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

    @property
    def landed(self) -> dict[TopicPartition, int]:
        """Partition -> the next offset to land, of its topic's tables the lowest, as reported."""
        return self.tables.committed

    @property
    def landed_rows(self) -> int:
        """Rows that the tables' writers have landed."""
        return sum(view.rows for view in self.tables.by_name.values())

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
        of_slot = {s: r.zone for s, r in self.reports.items() if r.zone is not None}
        return Zones(of_slot, self.readable_in, price)

    def load(self, slot: Slot) -> BytesPerSecond:
        """Return the write rate of the partitions that a consumer reads, bytes/s.

        Of a split partition each of its consumers has an equal share.
        """
        report, splits = self.reports.get(slot), self.splits
        reading = set(report.reading) if report else set()
        reading |= {p for p, shares in splits.items() if any(s.slot == slot for s in shares)}
        return BytesPerSecond(
            sum(self.rates.get(p, 0.0) / max(1, len(splits.get(p, ()))) for p in sorted(reading))
        )

    @property
    def splits(self) -> dict[TopicPartition, tuple[StagedShare, ...]]:
        """Split partitions -> what each consumer has staged, as the owner reports, itself first."""
        return {
            p: shares
            for slot, report in self.reports.items()
            for p, shares in report.splits.items()
            if p in report.reading and shares and shares[0].slot == slot
        }


def _limits(message: Claim | LimitsMeasured) -> PerSlot:
    return PerSlot(message.limit, dict(message.slot_limits))


def percentile(values: list[float], share: float) -> float | None:
    """Return the smallest value that at least `share` (0 to 1) of them do not exceed."""
    if not values:
        return None
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]
