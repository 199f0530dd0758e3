"""A group whose controller decides by records and measurements that a view reads, too."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.controller.decide.driver import CONFIG

from binwright.controller.decide.events import (
    Broadcast,
    Destroy,
    Event,
    Packed,
    Publish,
    Reconcile,
    Send,
    Tick,
)
from binwright.controller.decide.machine import begin, transition
from binwright.controller.decide.states import State
from binwright.group.config import GroupConfig
from binwright.group.fold import Measured, RecordRead, StateRecord
from binwright.group.plans import Pack
from binwright.look.group_view import GroupView
from binwright.packing.catalogue import algorithm
from binwright.protocol.commands import (
    Command,
    Leave,
    SplitReading,
    StartReading,
    StartWriting,
    StateQuery,
    StopReading,
    StopWriting,
)
from binwright.protocol.metadata import (
    Goodbye,
    Hello,
    MeasuredCapacity,
    Report,
    StagedShare,
    Started,
    Stopped,
    TableReport,
)
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.orders import Approved

RECORD_BYTES = 10
PASS_S = 2
TOPIC = "orders"
ZONES = "ab"


@dataclass
class Consumer:
    """A process that does what it is told at once, or, if it is slow, when a second has passed."""

    slot: Slot
    epoch: int
    term: int = 0
    reading: dict[TopicPartition, int] = field(default_factory=dict)
    writing: set[str] = field(default_factory=set)
    splits: Mapping[TopicPartition, tuple[Slot, ...]] = field(default_factory=dict)
    inbox: deque[Command] = field(default_factory=deque)
    slow: bool = False
    leaving: bool = False

    def report(self, commits: int, capacity: float | None) -> Report:
        table = TableReport(state="landing", committed={}, commits=commits, rows=commits)
        shares = {p: tuple(StagedShare(s, 1) for s in slots) for p, slots in self.splits.items()}
        measured = None
        if capacity is not None:
            per_s = BytesPerSecond(capacity)
            measured = MeasuredCapacity(bytes_per_s=per_s, spread=0.1, used=0.9, seconds=60.0)
        return Report(
            slot=self.slot,
            epoch=self.epoch,
            term=self.term,
            ready=True,
            reading=dict(self.reading),
            writing=dict.fromkeys(sorted(self.writing), table),
            leaving=self.leaving,
            capacity=measured,
            zone=ZONES[self.slot % 2],
            splits=shares,
        )


@dataclass
class History:
    """One group on virtual time; each second consumers report, and the controller ticks."""

    config: GroupConfig = CONFIG
    view: GroupView = field(default_factory=GroupView)
    rates: dict[int, float] = field(default_factory=dict)  # of the topic's partitions
    ends: dict[int, int] = field(default_factory=dict)
    consumers: dict[Slot, Consumer] = field(default_factory=dict)
    desired: frozenset[Slot] = frozenset()
    capacity: float | None = None  # that consumers measure, bytes/s
    slow: bool = False  # consumers that start
    now: float = 0.0
    passes: int = 0
    records: list[StateRecord] = field(default_factory=list)
    unread: int = 0  # offset of the next record that the controller reads
    controllers: int = 0
    state: State = field(init=False)

    def __post_init__(self) -> None:
        self.lead()

    @property
    def now_ms(self) -> int:
        return round(self.now * 1000)

    def lead(self) -> None:
        """Let a controller begin, which reads all records; another one that leads steps down."""
        self.controllers += 1
        own = self.records
        self.state, actions = begin(self.config, f"controller-{self.controllers}", self.now)
        for offset, message in enumerate(own):
            self.state, _ = transition(self.state, RecordRead(self.now, offset, message))
        self._carry_out(actions)
        self._settle()

    def publish(self, message: StateRecord) -> None:
        self.records.append(message)

    def start(self, slot: Slot) -> None:
        epoch = len(self.records)
        self.publish(Hello(slot=slot, process=f"p{epoch}", version="1"))
        self.consumers[slot] = Consumer(slot, epoch, slow=self.slow)

    def stop(self, slot: Slot) -> None:
        """Let a consumer end orderly."""
        consumer = self.consumers.pop(slot)
        self.publish(Goodbye(slot=slot, epoch=consumer.epoch, next=dict(consumer.reading)))

    def seconds(self, number: int) -> None:
        for _ in range(number):
            self._second()

    def _second(self) -> None:
        self.now += 1.0
        for slot in sorted(self.desired - self.consumers.keys()):
            self.start(slot)
        for slot in sorted(self.consumers.keys() - self.desired):
            self.stop(slot)
        for partition, rate in self.rates.items():
            self.ends[partition] = self.ends.get(partition, 0) + round(rate / RECORD_BYTES)
        for consumer in self.consumers.values():
            for p, at in consumer.reading.items():
                more = round(1.2 * self.rates.get(p.partition, 0.0) / RECORD_BYTES) + 1
                consumer.reading[p] = min(self.ends.get(p.partition, at), at + more)
            self._obey(consumer)
        if self.now % PASS_S == 0:
            self._measure()
        for slot in sorted(self.consumers):
            self.publish(self.consumers[slot].report(int(self.now), self.capacity))
        self._settle()
        self._feed(Tick(self.now, self.now_ms))
        self._settle()

    def _measure(self) -> None:
        parts = tuple(
            PartitionRate(n, BytesPerSecond(rate), 30, self.ends.get(n, 0), 0, float(RECORD_BYTES))
            for n, rate in sorted(self.rates.items())
        )
        near = {
            zone: tuple(n for n in sorted(self.rates) if n % 2 == at)
            for at, zone in enumerate(ZONES)
        }
        self.passes += 1
        measurement = Measurement(
            topic=TOPIC,
            at_ms=self.now_ms,
            monitor="m",
            number=self.passes,
            interval_s=PASS_S,
            count=len(parts),
            partitions=parts,
            zones=near,
        )
        self.view.apply_measurement(measurement)
        self._feed(Measured(self.now, measurement))

    # --- the controller, and what it commands -----------------------------------------------------

    def _settle(self) -> None:
        """Let the controller, and the view, read all records, and quick consumers obey."""
        while self.unread < len(self.records):
            offset, self.unread = self.unread, self.unread + 1
            message = self.records[offset]
            self.view.apply(offset, self.now_ms, message)
            self._feed(RecordRead(self.now, offset, message))
            for consumer in [*self.consumers.values()]:
                if not consumer.slow:
                    self._obey(consumer)

    def _feed(self, event: Event) -> None:
        self.state, actions = transition(self.state, event)
        self._carry_out(actions)

    def _carry_out(self, actions: tuple[object, ...]) -> None:
        for action in actions:
            match action:
                case Publish(message=message):
                    self.publish(message)
                case Send(slot=slot, message=command):
                    if slot in self.consumers:
                        self.consumers[slot].inbox.append(command)
                case Broadcast(message=command):
                    for consumer in self.consumers.values():
                        consumer.inbox.append(command)
                case Pack() as request:
                    self._feed(Packed(self.now, algorithm("sticky")(request.load)))
                case Reconcile(slots=slots):
                    self.desired = slots
                case Destroy(slot=slot):
                    self.consumers.pop(slot, None)

    def _obey(self, consumer: Consumer) -> None:
        while consumer.inbox and self.consumers.get(consumer.slot) is consumer:
            self._do(consumer, consumer.inbox.popleft())

    def _do(self, consumer: Consumer, command: Command) -> None:
        if not isinstance(command, StateQuery) and command.epoch != consumer.epoch:
            return
        slot, epoch, reading = consumer.slot, consumer.epoch, consumer.reading
        match command:
            case StateQuery(term=term):
                consumer.term = max(consumer.term, term)
                self.publish(consumer.report(int(self.now), self.capacity))
            case StopReading(revision=revision, partitions=partitions):
                left = {p: reading.pop(p, None) for p in partitions}
                stopped = Stopped(slot=slot, epoch=epoch, revision=revision, next=left)
                self.publish(replace(stopped, stopped_ms=self.now_ms))
            case StartReading(revision=revision, offsets=offsets):
                began = {p: at or 0 for p, at in offsets.items()}
                reading.update(began)
                self.publish(Started(slot=slot, epoch=epoch, revision=revision, offsets=began))
            case StopWriting(revision=revision, tables=tables):
                consumer.writing.difference_update(tables)
                self.publish(
                    Stopped(slot=slot, epoch=epoch, revision=revision, next={}, tables=tables)
                )
            case StartWriting(revision=revision, tables=tables):
                consumer.writing.update(tables)
                self.publish(
                    Started(slot=slot, epoch=epoch, revision=revision, offsets={}, tables=tables)
                )
            case SplitReading(partitions=split):
                consumer.splits = split
            case Leave():
                del self.consumers[slot]

    def approve(self) -> None:
        """Approve the plan that waits, if one does."""
        proposal = self.state.group.people.proposal
        if proposal is not None and proposal.number is not None:
            self.publish(Approved(plan=proposal.number, by="alice"))
