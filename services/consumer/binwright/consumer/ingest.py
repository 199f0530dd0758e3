"""Runs one consumer: applies commands, reads and stages partitions, writes tables.

Its tasks share one `Consumer` state (`core.consumer.handover`). The state changes between awaits
only, through `_apply`, which also starts the actions of the change. Replies are sent by the outbox
in the order of their events.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from binwright.consumer.decide import handover
from binwright.consumer.decide.actions import (
    Exit,
    Fetch,
    Reply,
    ReportNow,
    StartWriter,
    StopFetching,
    StopWriter,
)
from binwright.consumer.decide.batch import BatchConfig
from binwright.consumer.decide.buffer import Buffer
from binwright.consumer.decide.handover import Consumer, Step
from binwright.consumer.decide.writer.chain import same_topic
from binwright.consumer.mailbox import Mailbox
from binwright.consumer.outbox import Outbox
from binwright.consumer.reading.fetching import Fetcher
from binwright.consumer.reading.locator import Locator, Lookup, StartPosition
from binwright.consumer.staging.backlog import Backlog, collect
from binwright.consumer.staging.stager import Origin, Stager
from binwright.kafka.control_records import commands
from binwright.protocol.errors import StagingUnavailable, Superseded
from binwright.protocol.messages import Report, TableReport
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Intake
from binwright.protocol.ports.lake import Staging
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import loop_s
from binwright.runtime.run import must_not_end

log = structlog.get_logger()

DRAIN_AFTER_S = 3.0
"""Seconds that a leaving consumer waits for the next command before it drains by itself."""


@dataclass(frozen=True, slots=True)
class IngestConfig:
    """The settings of one consumer."""

    batch: BatchConfig = field(default_factory=BatchConfig)
    from_latest: bool = False
    report_s: float = 1.0
    drain_s: float = 30.0  # from the start of leaving until all is stopped, at most
    staged_bytes: int = 2_000_000_000  # staged and not landed; fetching pauses above it
    staged_keep_s: float = 345_600.0  # age at which staged files are collected


class TableWriters(Protocol):
    """The writers of this consumer's tables; see `consumer.writer.writers.Writers`."""

    def start(self, topics: Collection[str], term: int) -> None:
        """Start writing these tables, as the controller of `term` commands."""

    def stop(self, topics: Collection[str]) -> None:
        """Stop writing these tables after the commit in flight."""

    def reports(self) -> Mapping[str, TableReport]:
        """Return the report of each table."""

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

    def __init__(  # noqa: PLR0913 - its ports, its settings, a wall clock
        self,
        *,
        mailbox: Mailbox,
        intake: Intake,
        staging: Staging,
        landing_topic: str,
        config: IngestConfig,
        wall_ms: Callable[[], int],
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.consumer = Consumer(mailbox.slot, mailbox.epoch)
        self.ready = asyncio.Event()
        self._mailbox, self._staging, self._config = mailbox, staging, config
        self._wall_ms, self._beat = wall_ms, beat
        self._outbox = Outbox(mailbox, self.report)
        self._buffer = Buffer(config.batch)
        self._locator = Locator(
            intake,
            from_latest=config.from_latest,
            on_located=self._apply_start_position,
            on_recreated=self._restart_topic,
        )
        self._backlog = Backlog(staging, config.staged_bytes, self._wake)
        self._stager = Stager(
            origin=Origin(mailbox.slot, mailbox.epoch, landing_topic),
            buffer=self._buffer,
            observer=self,
            intake=intake,
            staging=staging,
            bus=mailbox.bus,
            backlog=self._backlog,
            beat=beat,
        )
        self._fetcher = Fetcher(
            intake=intake,
            buffer=self._buffer,
            locator=self._locator,
            backlog=self._backlog,
            in_flight=self._stager.in_flight,
            on_rows=self._stager.wake,
            beat=beat,
        )
        self._writers: TableWriters | None = None
        self._leave_requested = asyncio.Event()
        self._command_at = 0.0  # time of the last command of any controller, s
        self._staged_topics: set[str] = set()  # staged by this process

    async def run(self, writers: TableWriters) -> None:
        """Run until a controller ends this consumer, or until it is drained.

        Raises:
            Superseded: A newer process has this slot, or this one was declared dead.
        """
        self._writers = writers
        works = (
            self._apply_commands,
            self._report_regularly,
            self._locator.run,
            self._fetcher.run,
            self._stager.run,
            self._backlog.run,
            self._collect,
            writers.run,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in works:
                    tasks.create_task(must_not_end(work()))
                tasks.create_task(self._prepare())
                tasks.create_task(self._publish())
                tasks.create_task(self._drain())
        except* _Ended as left:
            log.info("consumer.ended", reason=str(left.exceptions[0]))

    def leave(self) -> None:
        """Begin a graceful exit; `run` returns when nothing is owned or in flight.

        Reading and writing go on until the controller has moved all partitions and tables. They
        are stopped after `DRAIN_AFTER_S` without a command, and `drain_s` after this call.
        """
        self._command_at = loop_s()
        self._leave_requested.set()
        self._apply(handover.leave(self.consumer))

    # --- callbacks of the table writers ----------------------------------------------------------

    def table_lost(self, topic: str) -> None:
        """Apply that another writer has claimed this table."""
        self._apply(handover.table_lost(self.consumer, topic))

    def writing_stopped(self, topics: Collection[str]) -> None:
        """Apply that these tables are no longer written, after `stop`."""
        self._apply(handover.writing_stopped(self.consumer, topics))

    def gap(self, committed: Mapping[TopicPartition, int]) -> None:
        """Report that partitions must be read again from these offsets."""
        self._outbox.gap(committed)

    # --- callbacks of the stager -----------------------------------------------------------------

    def staging(self, ends: Mapping[TopicPartition, int]) -> None:
        """Apply that a file with rows up to these offsets is being written."""
        self.consumer = handover.staging_started(self.consumer, ends)
        self._staged_topics.update(p.topic for p in ends)

    def announced(self, partitions: Collection[TopicPartition]) -> None:
        """Apply that the file with rows of these partitions is announced."""
        self._apply(handover.file_announced(self.consumer, partitions))

    def dropped(
        self, topic: str, topic_id: str | None, partitions: Collection[TopicPartition]
    ) -> None:
        """Apply that the file is not written: its topic was recreated, with this id."""
        self._restart_topic(topic, topic_id)
        self._apply(handover.dropped(self.consumer, partitions))

    def topic_id(self, topic: str) -> str | None:
        """Return the id of the topic that is read under this name."""
        return self._locator.topic_ids.get(topic)

    # --- the state and its actions ---------------------------------------------------------------

    def _apply(self, step: Step) -> None:
        self.consumer, actions = step
        for action in actions:
            match action:
                case StopFetching(partition=partition):
                    self._stop_partition(partition)
                case Fetch(partition=partition, offset=None):
                    self._locator.locate(partition)
                case Fetch(partition=partition, offset=int(offset)):
                    self._fetcher.begin(partition, offset)
                case StartWriter(topics=topics, term=term) if self._writers:
                    self._writers.start(topics, term)
                case StopWriter(topics=topics) if self._writers:
                    self._writers.stop(topics)
                case ReportNow():
                    self._outbox.report()
                case Reply() | Exit():
                    self._outbox.reply(action)
        self._wake()

    def _wake(self) -> None:
        self._fetcher.wake()
        self._stager.wake()

    def _stop_partition(self, partition: TopicPartition) -> None:
        self._fetcher.stop(partition)
        last = all(p.topic != partition.topic for p in self.consumer.partitions if p != partition)
        self._locator.forget(partition, last=last)
        log.info("partition.stopped", partition=str(partition))

    def _apply_start_position(self, position: StartPosition, need: Lookup) -> None:
        """Begin a partition at the position that the locator found."""
        partition, offset = position.partition, position.offset
        part = self.consumer.partitions.get(partition)
        if part is None:
            return
        if (
            need is Lookup.OUT_OF_RANGE
            and not position.cut
            and self._buffer.next_offset(partition) == offset
        ):
            self._locator.start(partition, offset)  # not out of range: a broker lagged
            return
        if part.next is None:
            fetch = Fetch(partition, None, part.revision)
            self._apply(handover.located(self.consumer, fetch, offset))
        else:
            self.consumer = handover.offset_reset(
                self.consumer, partition, offset, cut=position.cut
            )
        self._fetcher.begin(partition, offset, cut=position.cut)

    def _restart_topic(self, topic: str, topic_id: str | None) -> None:
        """Drop what was read of a deleted topic, and begin the one recreated under its name."""
        if same_topic(topic_id, self._locator.topic_ids.get(topic)):
            return  # already restarted
        partitions = [p for p in self.consumer.partitions if p.topic == topic]
        for partition in partitions:
            self._fetcher.stop(partition)
        self._locator.restart_topic(topic, topic_id, partitions)

    # --- the tasks -------------------------------------------------------------------------------

    async def _apply_commands(self) -> None:
        async for _, command in commands(self._mailbox.reader):
            self._command_at = loop_s()
            self._apply(handover.handle_command(self.consumer, command, self._wall_ms()))

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
                await self._staging.prepare()
            except StagingUnavailable as exc:
                log.error("staging.unavailable", reason=str(exc))  # noqa: TRY400 - expected
                await asyncio.sleep(pause.next())
            else:
                break
        self._apply(handover.staging_ready(self.consumer))
        self.ready.set()
        log.info("consumer.ready")

    async def _report_regularly(self) -> None:
        while True:
            self._outbox.report()
            self._beat("report")
            await asyncio.sleep(self._config.report_s)

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
            busy=min(self._fetcher.waiting.per_s(now), 1.0),
            staged_rows=self._stager.rows,
            staged_bytes=self._backlog.bytes,
            lost_offsets=self._fetcher.lost_offsets,
            leaving=consumer.leaving,
        )

    def _writing(self) -> dict[str, TableReport]:
        """Return the tables written here, including those whose last commit has not ended."""
        reports = self._writers.reports() if self._writers else {}
        new = TableReport(state="claiming", committed={})
        topics = sorted({*self.consumer.tables, *self.consumer.closing})
        return {topic: reports.get(topic, new) for topic in topics}

    async def _collect(self) -> None:
        await collect(self._staging, lambda: self._staged_topics, self._config.staged_keep_s)

    async def _drain(self) -> None:
        """Stop everything once a leaving consumer gets no more commands, or takes too long."""
        await self._leave_requested.wait()
        last = loop_s() + self._config.drain_s
        while (left_s := min(self._command_at + DRAIN_AFTER_S, last) - loop_s()) > 0:  # noqa: ASYNC110 - each command moves the deadline
            await asyncio.sleep(max(left_s, 0.01))
        if self.consumer.busy:
            log.warning("drain.started", partitions=len(self.consumer.partitions))
        self._apply(handover.drain(self.consumer))
