"""Runs one consumer: applies commands and the events of its parts, and sends replies.

Its tasks share one `Consumer` state (`decide.machine`). The state changes between awaits
only, through `_apply`, which also starts the actions of the change. Replies are sent by the outbox
in the order of their events.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from binwright.consumer.decide import machine
from binwright.consumer.decide.buffer import BatchConfig
from binwright.consumer.decide.machine import (
    Consumer,
    Exit,
    Fetch,
    Reply,
    ReportNow,
    Share,
    StartWriter,
    Step,
    StopFetching,
    StopWriter,
)
from binwright.consumer.decode.decoders import DecoderOf, MaskOf, no_decoder, no_mask
from binwright.consumer.events import (
    Emit,
    Event,
    FileAnnounced,
    FileDropped,
    PartAnnounced,
    PositionFound,
    RowsMissing,
    StagingStarted,
    TableLost,
    WritingStopped,
)
from binwright.consumer.mailbox import Mailbox, Outbox
from binwright.consumer.read.backlog import Backlog
from binwright.consumer.read.capacity import CapacityMeter
from binwright.consumer.read.partitions import AssignedPartitions
from binwright.consumer.read.ranges import OpenReader
from binwright.consumer.stage.collection import collect_regularly
from binwright.consumer.stage.file_writer import FileWriter, Origin, one_raw_table
from binwright.consumer.stage.part_stager import PartStager
from binwright.consumer.stage.splits import Splits
from binwright.consumer.stage.stager import Stager
from binwright.consumer.stage.timings import Timings
from binwright.kafka.control_records import messages
from binwright.protocol.commands import decode_command
from binwright.protocol.errors import StagingUnavailable, Superseded, TableRefused
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metadata import Report, TableReport
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import DataReader, ReadProgress
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.run import must_not_end
from binwright.tables.ports import Staging
from binwright.tables.targets import Target

CONSUMER_ENDED = LogEvent.info(
    "consumer.ended", "The consumer has handed everything over and ends."
)
STAGING_UNAVAILABLE = LogEvent.error(
    "staging.unavailable", "The staging directory cannot be written; the consumer is not ready."
)
CONSUMER_READY = LogEvent.info(
    "consumer.ready", "This consumer can write to its staging directory, and takes partitions."
)
DRAIN_STARTED = LogEvent.warning(
    "drain.started",
    "No controller moved everything away in time; the consumer stops by itself and sends "
    "`Goodbye`.",
)

DRAIN_AFTER_S = 3.0
"""Seconds that a leaving consumer waits for the next command before it drains by itself."""


@dataclass(frozen=True, slots=True)
class IngestConfig:
    """The settings of one consumer."""

    batch: BatchConfig = field(default_factory=BatchConfig)
    targets: Callable[[str], Collection[Target]] = one_raw_table
    decoder_of: DecoderOf = no_decoder
    mask_of: MaskOf = no_mask
    new_fields: Callable[[], Mapping[str, tuple[str, ...]]] = dict
    """Returns fields that are left out, by table."""
    from_latest: bool = False
    freshness_s: float = 5.0  # age of rows when they land, as wanted
    report_s: float = 1.0
    zone: str | None = None  # where the process runs
    drain_s: float = 30.0  # from the start of leaving until all is stopped, at most
    staged_bytes: int = 2_000_000_000  # staged and not landed; fetching pauses above it
    staged_retention_s: float = 345_600.0  # age at which staged files are collected
    staging_owner: str = ""  # the group and its cluster; "": not checked

    def is_masked(self, topic: str) -> bool:
        """Whether a table of the topic has a mask, as far as its tables are known."""
        try:
            return any(target.masking for target in self.targets(topic))
        except TableRefused:
            return True


class TableWriters(Protocol):
    """The writers of topics' tables; see `consumer.land.writers.Writers`."""

    def start(self, topics: Collection[str]) -> None:
        """Start writing the tables of these topics."""

    def stop(self, topics: Collection[str]) -> None:
        """Stop writing the tables of these topics after the commits in flight."""

    def reports(self) -> Mapping[str, Mapping[str, TableReport]]:
        """Return the reports of each topic's tables, by their names."""

    async def run(self) -> None:
        """Write tables until cancelled."""


class _Ended(Exception):
    """The process has published its last message."""


class Ingest:
    """A consumer process between its Hello and its exit.

    Attributes:
        consumer: The state: what it reads and writes.
        ready: Set once the staging location is writable.
    """

    def __init__(
        self,
        *,
        mailbox: Mailbox,
        reader: DataReader,
        part_reader: OpenReader,
        staging: Staging,
        landing_topic: str,
        writers: Callable[[Emit], TableWriters],
        config: IngestConfig,
        wall_ms: Callable[[], int],
        timings: Timings | None = None,
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.consumer = Consumer(mailbox.slot, mailbox.epoch)
        self.ready = asyncio.Event()
        self._mailbox, self._config = mailbox, config
        self._staging, self._reader = staging, reader
        self._wall_ms, self._beat = wall_ms, beat
        self._outbox = Outbox(mailbox, self.report)
        self._capacity = CapacityMeter()
        self._backlog = Backlog(
            staging, config.staged_bytes, config.freshness_s, config.batch.wait_s, config.targets
        )
        self._helped = Backlog(  # of its own: what no owner announces lands never
            staging, config.staged_bytes, config.freshness_s, config.batch.wait_s
        )
        self._partitions = AssignedPartitions(
            reader=reader,
            config=config.batch,
            from_latest=config.from_latest,
            staging=staging,
            backlog=self._backlog,
            emit=self.apply_event,
            is_masked=config.is_masked,
            reclaimed=self._reclaim,
            beat=beat,
        )
        origin = Origin(mailbox.slot, mailbox.epoch, landing_topic)
        writer = FileWriter(
            origin=origin,
            staging=staging,
            backlog=self._backlog,
            timings=timings or Timings(),
            targets=config.targets,
            decoder_of=config.decoder_of,
            mask_of=config.mask_of,
        )
        self._stager = Stager(
            origin=origin,
            partitions=self._partitions,
            writer=writer,
            bus=mailbox.bus,
            emit=self.apply_event,
            beat=beat,
        )
        self._parts = PartStager(
            part_reader, writer, self._backlog, config.batch.bytes, self._stager.rate
        )
        self._splits = Splits(
            origin=origin,
            bus=mailbox.bus,
            reader=reader,
            partitions=self._partitions,
            stager=self._parts,
            helped=self._helped,
            writer=writer,
            next_offset=self._next_offset,
            emit=self.apply_event,
            wall_ms=wall_ms,
        )
        self._writers = writers(self.apply_event)
        self._leave_requested = asyncio.Event()
        self._command_at = 0.0  # time of the last command of any controller, s

    async def run(self) -> None:
        """Run until a controller ends this consumer, or until it is drained.

        Raises:
            Superseded: A newer process has this slot, or this one was declared dead.
        """
        works = (
            self._apply_commands,
            self._report_regularly,
            self._partitions.run,
            self._stager.run,
            self._splits.run,
            self._backlog.run,
            self._helped.run,
            self._collect,
            self._writers.run,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in works:
                    tasks.create_task(must_not_end(work()))
                tasks.create_task(self._prepare())
                tasks.create_task(self._publish())
                tasks.create_task(self._drain())
        except* _Ended as left:
            log(CONSUMER_ENDED, reason=str(left.exceptions[0]))

    def leave(self) -> None:
        """Begin a graceful exit; `run` returns when nothing is owned or in flight.

        Reading and writing go on until the controller has moved all partitions and tables. They
        are stopped after `DRAIN_AFTER_S` without a command, and `drain_s` after this call.
        """
        self._command_at = loop_s()
        self._leave_requested.set()
        self._apply(machine.leave(self.consumer))

    # --- the state and its actions ---------------------------------------------------------------

    def apply_event(self, event: Event) -> None:
        """Apply what a part of this consumer reports."""
        consumer = self.consumer
        match event:
            case PositionFound(partition=partition, offset=offset, cut=cut):
                self._apply(machine.position_found(consumer, partition, offset, cut=cut))
            case StagingStarted(ends=ends):
                self.consumer = machine.staging_started(consumer, ends)
            case FileAnnounced(partitions=partitions):
                self._apply(machine.file_announced(consumer, partitions))
            case PartAnnounced(partition=partition, range=offsets):
                self.consumer = machine.part_announced(consumer, partition, offsets)
            case FileDropped(partitions=partitions):
                self._apply(machine.dropped(consumer, partitions))
            case TableLost(topic=topic):
                self._apply(machine.table_lost(consumer, topic))
            case WritingStopped(topic=topic):
                self._apply(machine.writing_stopped(consumer, {topic}))
            case RowsMissing(table=table, committed=committed):
                self._outbox.gap(table, committed)

    def _apply(self, step: Step) -> None:
        self.consumer, actions = step
        for action in actions:
            match action:
                case StopFetching(partition=partition):
                    self._partitions.stop(partition)
                case Fetch(partition=partition, offset=offset):
                    self._partitions.read(partition, offset)
                case Share(partitions=shares):
                    self._splits.share(shares)
                case StartWriter(topics=topics):
                    self._writers.start(topics)
                case StopWriter(topics=topics):
                    self._writers.stop(topics)
                case ReportNow():
                    self._outbox.report()
                case Reply() | Exit():
                    self._outbox.reply(action)

    def _next_offset(self, partition: TopicPartition) -> int | None:
        part = self.consumer.partitions.get(partition)
        return None if part is None else part.next

    def _reclaim(self, partition: TopicPartition) -> None:
        self._splits.reclaim(partition)

    # --- the tasks -------------------------------------------------------------------------------

    async def _apply_commands(self) -> None:
        async for _, command in messages(self._mailbox.reader, decode_command):
            self._command_at = loop_s()
            self._apply(machine.handle_command(self.consumer, command, self._wall_ms()))

    async def _publish(self) -> None:
        reason = await self._outbox.run()
        if self.consumer.leaving or not self.consumer.ready:
            raise _Ended(reason)
        raise Superseded(reason)

    async def _prepare(self) -> None:
        """Report ready once the staging location is writable."""
        pause = Backoff(10.0)
        while True:
            try:
                await self._staging.prepare(self._config.staging_owner)
            except StagingUnavailable as exc:
                log(STAGING_UNAVAILABLE, reason=str(exc))
                await asyncio.sleep(pause.next())
            else:
                break
        self._apply(machine.staging_ready(self.consumer))
        self.ready.set()
        log(CONSUMER_READY)

    async def _report_regularly(self) -> None:
        while True:
            waiting = self._partitions.waiting.total, self._partitions.held_s
            self._capacity.look(loop_s(), self._progress, *waiting)
            self._outbox.report()
            self._beat("report")
            await asyncio.sleep(self._config.report_s)

    def _progress(self) -> ReadProgress:
        """Return what was read, also of split partitions."""
        own = self._reader.progress()
        return ReadProgress(own.stored_bytes + self._parts.stored_bytes, own.offsets)

    def report(self) -> Report:
        """Return this process's state for the controller."""
        consumer, now = self.consumer, loop_s()
        return Report(
            slot=consumer.slot,
            epoch=consumer.epoch,
            term=consumer.term,
            ready=consumer.ready,
            reading={p: part.next for p, part in consumer.partitions.items()},
            writing=self._writing(),
            rate=self._stager.rate.per_s(now),
            busy=min(self._partitions.waiting.per_s(now), 1.0),
            capacity=self._capacity.capacity,
            staged_rows=self._stager.rows + self._parts.rows,
            staged_bytes=self._backlog.bytes,
            lost_offsets=self._partitions.lost_offsets,
            faults={**self._partitions.faults, **self._stager.faults},
            new_fields=self._config.new_fields(),
            leaving=consumer.leaving,
            zone=self._config.zone,
            splits=self._splits.report(),
        )

    def _writing(self) -> dict[str, TableReport]:
        """Return the tables written here, including those whose last commit has not ended."""
        reports, writing = self._writers.reports(), dict[str, TableReport]()
        for topic in sorted({*self.consumer.tables, *self.consumer.closing}):
            new = {topic: TableReport(topic=topic, state="claiming", committed={})}
            writing |= reports.get(topic, new)
        return writing

    async def _collect(self) -> None:
        await collect_regularly(self._staging, self._reader, self._config.staged_retention_s)

    async def _drain(self) -> None:
        """Stop everything once a leaving consumer gets no more commands, or takes too long."""
        await self._leave_requested.wait()
        last = loop_s() + self._config.drain_s
        while (left_s := min(self._command_at + DRAIN_AFTER_S, last) - loop_s()) > 0:  # noqa: ASYNC110 - each command moves the deadline
            await asyncio.sleep(max(left_s, 0.01))
        if self.consumer.busy:
            log(DRAIN_STARTED, partitions=len(self.consumer.partitions))
        self._apply(machine.drain(self.consumer))
