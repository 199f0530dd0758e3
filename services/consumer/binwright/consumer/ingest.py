"""One consumer at work: obeys the controller, reads and stages partitions, writes tables.

Its tasks share one `Consumer` state (core.consumer.handover). The state changes between awaits
only, through `_apply`, which also begins what the change asks for. Replies leave by the outbox, in
the order they came about.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from binwright.consumer.backlog import Backlog, collect
from binwright.consumer.locator import Locator, Need, Place
from binwright.consumer.mailbox import Mailbox
from binwright.consumer.outbox import Outbox
from binwright.consumer.reading import Reading
from binwright.consumer.stager import Origin, Stager
from binwright.core.consumer import handover
from binwright.core.consumer.batch import BatchRules
from binwright.core.consumer.buffer import Buffer
from binwright.core.consumer.handover import (
    Consumer,
    Exit,
    Fetch,
    Reply,
    ReportNow,
    Step,
    StopFetching,
    StopWrite,
    Write,
)
from binwright.core.errors import StagingUnavailable, Superseded
from binwright.core.messages import Report, TableReport
from binwright.core.model import TopicPartition
from binwright.core.ports import Intake, Staging
from binwright.core.writer.chain import same_topic
from binwright.shell.letters import commands
from binwright.shell.pauses import Pause
from binwright.shell.run import endless

log = structlog.get_logger()

DRAIN_AFTER_S = 3.0
"""How long a consumer that was asked to end waits for a controller's next command."""


@dataclass(frozen=True, slots=True)
class IngestRules:
    """A consumer's settings."""

    batch: BatchRules = field(default_factory=BatchRules)
    from_latest: bool = False
    report_s: float = 1.0
    drain_s: float = 30.0  # at most from the wish to leave until everything is stopped
    staged_bytes: int = 2_000_000_000  # how much may wait in the staging place to be landed
    staged_keep_s: float = 345_600.0


class TableWriters(Protocol):
    """The tables that this consumer writes; see `consumer.writer.writers.Writers`."""

    def start(self, topics: Collection[str], term: int) -> None:
        """Be the writer of these tables."""

    def stop(self, topics: Collection[str]) -> None:
        """Write these no more, once the commit in flight has ended."""

    def reports(self) -> Mapping[str, TableReport]:
        """Return how each table is."""

    async def run(self) -> None:
        """Work, for ever."""


class _Left(Exception):
    """The process has published its last message."""


class Ingest:
    """A consumer process between its Hello and its exit.

    Attributes:
        consumer: What it reads and writes.
        ready: Set once the staging place can be written.
    """

    def __init__(  # noqa: PLR0913 - its neighbours, its rules, a wall clock
        self,
        *,
        mailbox: Mailbox,
        intake: Intake,
        staging: Staging,
        landing_topic: str,
        rules: IngestRules,
        wall_ms: Callable[[], int],
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.consumer = Consumer(mailbox.slot, mailbox.epoch)
        self.ready = asyncio.Event()
        self._mailbox, self._staging, self._rules = mailbox, staging, rules
        self._wall_ms, self._beat = wall_ms, beat
        self._outbox = Outbox(mailbox, self.report)
        self._buffer = Buffer(rules.batch)
        self._locator = Locator(
            intake,
            from_latest=rules.from_latest,
            on_place=self._found,
            on_renewed=self._renew,
        )
        self._backlog = Backlog(staging, rules.staged_bytes, self._wake)
        self._stager = Stager(
            origin=Origin(mailbox.slot, mailbox.epoch, landing_topic),
            buffer=self._buffer,
            reader=self,
            intake=intake,
            staging=staging,
            bus=mailbox.bus,
            backlog=self._backlog,
            beat=beat,
        )
        self._reading = Reading(
            intake=intake,
            buffer=self._buffer,
            locator=self._locator,
            backlog=self._backlog,
            in_flight=self._stager.in_flight,
            on_rows=self._stager.wake,
            beat=beat,
        )
        self._writers: TableWriters | None = None
        self._asked = asyncio.Event()  # to end
        self._command_at = 0.0  # the last one by any controller
        self._topics: set[str] = set()  # staged by this process

    async def run(self, writers: TableWriters) -> None:
        """Work until told to leave, or drained.

        Raises:
            Superseded: A newer process has this slot, or it was declared dead.
        """
        self._writers = writers
        works = (
            self._listen,
            self._report_often,
            self._locator.run,
            self._reading.run,
            self._stager.run,
            self._backlog.run,
            self._collect,
            writers.run,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in works:
                    tasks.create_task(endless(work()))
                tasks.create_task(self._prepare())
                tasks.create_task(self._publish())
                tasks.create_task(self._drain())
        except* _Left as left:
            log.info("consumer.ended", reason=str(left.exceptions[0]))

    def leave(self) -> None:
        """Begin a graceful exit; `run` returns when nothing is held or in flight any more.

        Reading and writing go on while the controller moves everything away. All is stopped when
        it has commanded nothing for some seconds, or takes too long.
        """
        self._command_at = self._now()
        self._asked.set()
        self._apply(handover.leave(self.consumer))

    # --- what the tables' writers tell -----------------------------------------------------------

    def lost(self, topic: str) -> None:
        """Take that another writer has this table."""
        self._apply(handover.lost(self.consumer, topic))

    def written(self, topics: Collection[str]) -> None:
        """Take that these tables are written no more, as was asked."""
        self._apply(handover.written(self.consumer, topics))

    def gap(self, committed: Mapping[TopicPartition, int]) -> None:
        """Take that partitions must be read again from these offsets."""
        self._outbox.gap(committed)

    # --- what the stager tells and asks ----------------------------------------------------------

    def staging(self, ends: Mapping[TopicPartition, int]) -> None:
        """Take that a file with rows up to these offsets is being written."""
        self.consumer = handover.staging(self.consumer, ends)
        self._topics.update(p.topic for p in ends)

    def announced(self, partitions: Collection[TopicPartition]) -> None:
        """Take that the file with rows of these is announced."""
        self._apply(handover.announced(self.consumer, partitions))

    def dropped(
        self, topic: str, topic_id: str | None, partitions: Collection[TopicPartition]
    ) -> None:
        """Take that the file is not written: its topic was made anew, and has this id."""
        self._renew(topic, topic_id)
        self._apply(handover.dropped(self.consumer, partitions))

    def topic_id(self, topic: str) -> str | None:
        """Return which topic of this name is read."""
        return self._locator.ids.get(topic)

    # --- the state, and what follows from its changes --------------------------------------------

    def _apply(self, step: Step) -> None:
        self.consumer, actions = step
        for action in actions:
            match action:
                case StopFetching(partition=partition):
                    self._stop(partition)
                case Fetch(partition=partition, offset=None):
                    self._locator.locate(partition)
                case Fetch(partition=partition, offset=int(offset)):
                    self._reading.begin(partition, offset)
                case Write(topics=topics, term=term) if self._writers:
                    self._writers.start(topics, term)
                case StopWrite(topics=topics) if self._writers:
                    self._writers.stop(topics)
                case ReportNow():
                    self._outbox.report()
                case Reply() | Exit():
                    self._outbox.reply(action)
        self._wake()

    def _wake(self) -> None:
        self._reading.wake()
        self._stager.wake()

    def _stop(self, partition: TopicPartition) -> None:
        self._reading.stop(partition)
        last = all(p.topic != partition.topic for p in self.consumer.parts if p != partition)
        self._locator.forget(partition, last=last)
        log.info("partition.stopped", partition=str(partition))

    def _found(self, place: Place, need: Need) -> None:
        """Begin a partition where the locator says."""
        partition, offset = place.partition, place.offset
        part = self.consumer.parts.get(partition)
        if part is None:
            return
        if need is Need.BEYOND and not place.cut and self._buffer.next_offset(partition) == offset:
            self._locator.start(partition, offset)  # it is there after all: a broker lagged behind
            return
        if part.next is None:
            found = Fetch(partition, None, part.revision)
            self._apply(handover.located(self.consumer, found, offset))
        else:
            self.consumer = handover.moved(self.consumer, partition, offset, cut=place.cut)
        self._reading.begin(partition, offset, cut=place.cut)

    def _renew(self, topic: str, topic_id: str | None) -> None:
        """Drop what was read of a topic that is no more, and begin the one that has its name."""
        if same_topic(topic_id, self._locator.ids.get(topic)):
            return  # somebody noticed before
        partitions = [p for p in self.consumer.parts if p.topic == topic]
        for partition in partitions:
            self._reading.stop(partition)
        self._locator.renew(topic, topic_id, partitions)

    # --- the tasks -------------------------------------------------------------------------------

    async def _listen(self) -> None:
        async for _, command in commands(self._mailbox.reader):
            self._command_at = self._now()
            self._apply(handover.obey(self.consumer, command, self._wall_ms()))

    async def _publish(self) -> None:
        reason = await self._outbox.run()
        if self.consumer.leaving or not self.consumer.ready:
            raise _Left(reason)
        raise Superseded(reason)

    async def _prepare(self) -> None:
        """Have partitions come once the staging place can be written."""
        pause = Pause(10.0)
        while True:
            try:
                await self._staging.prepare()
            except StagingUnavailable as exc:
                log.error("staging.refused", reason=str(exc))  # noqa: TRY400 - expected
                await asyncio.sleep(pause.next())
            else:
                break
        self._apply(handover.prepared(self.consumer))
        self.ready.set()
        log.info("consumer.ready")

    async def _report_often(self) -> None:
        while True:
            self._outbox.report()
            self._beat("report")
            await asyncio.sleep(self._rules.report_s)

    def report(self) -> Report:
        """Return what this process does, as the controller is told."""
        consumer, now = self.consumer, self._now()
        return Report(
            slot=consumer.slot,
            epoch=consumer.epoch,
            term=consumer.term,
            ready=consumer.ready,
            reading={p: part.next for p, part in consumer.parts.items()},
            writing=self._writing(),
            rate=self._stager.rate.per_s(now),
            busy=min(self._reading.waiting.per_s(now), 1.0),
            staged_rows=self._stager.rows,
            staged_bytes=self._backlog.bytes,
            lost_offsets=self._reading.lost_offsets,
            leaving=consumer.leaving,
        )

    def _writing(self) -> dict[str, TableReport]:
        """Return the tables whose writer this is, also those whose last commit has not ended."""
        told = self._writers.reports() if self._writers else {}
        new = TableReport(state="claiming", committed={})
        here = sorted({*self.consumer.tables, *self.consumer.closing})
        return {topic: told.get(topic, new) for topic in here}

    async def _collect(self) -> None:
        await collect(self._staging, lambda: self._topics, self._rules.staged_keep_s)

    async def _drain(self) -> None:
        """Stop everything when nobody moves it away from a consumer that was asked to end."""
        await self._asked.wait()
        last = self._now() + self._rules.drain_s
        while (left_s := min(self._command_at + DRAIN_AFTER_S, last) - self._now()) > 0:  # noqa: ASYNC110 - each command moves the deadline
            await asyncio.sleep(max(left_s, 0.01))
        if self.consumer.busy:
            log.warning("drain.begun", partitions=len(self.consumer.parts))
        self._apply(handover.drain(self.consumer))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
