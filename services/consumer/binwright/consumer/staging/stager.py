"""Writes buffered rows to staged files and announces them; rows are kept until both are done."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

import structlog

from binwright.consumer.decide.buffer import Buffer, BufferedRange, size_of
from binwright.consumer.decide.writer.chain import same_topic
from binwright.consumer.landing_topic import landing_partition
from binwright.consumer.meters import Meter
from binwright.consumer.staging.backlog import Backlog, StagedFile
from binwright.kafka.control_records import LANDING_CONFIG, LANDING_PARTITIONS
from binwright.kafka.publishing import Publisher
from binwright.protocol.errors import BrokerUnavailable, StagingUnavailable, TopicMissing
from binwright.protocol.messages import Staged
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.ports.kafka import ControlTopics, Intake
from binwright.protocol.ports.lake import Staging
from binwright.runtime.backoff import Backoff, until_set

log = structlog.get_logger()

CONCURRENT_WRITES = 4  # files, each of another topic
SLOW_S = 15.0  # a slower write is logged
SHORTEST_S, IDLE_S = 0.01, 5.0

TakenRanges = Mapping[TopicPartition, BufferedRange]


@dataclass(frozen=True, slots=True)
class Origin:
    """The consumer that stages, and the topic of its announcements."""

    slot: Slot
    epoch: int
    landing_topic: str


class StagingObserver(Protocol):
    """The part of a consumer that is notified of what is being staged."""

    def staging(self, ends: Mapping[TopicPartition, int]) -> None:
        """Apply that a file with rows up to these offsets is being written."""

    def announced(self, partitions: Collection[TopicPartition]) -> None:
        """Apply that the file with rows of these partitions is announced."""

    def dropped(
        self, topic: str, topic_id: str | None, partitions: Collection[TopicPartition]
    ) -> None:
        """Apply that the file is not written: its topic was recreated, with this id."""

    def topic_id(self, topic: str) -> str | None:
        """Return the id of the topic whose rows are in the buffer under this name."""


class Stager:
    """Stages a consumer's buffer: one file at a time per topic, several topics concurrently.

    Attributes:
        in_flight: Topic -> bytes of rows that are being staged.
        rows: How many rows were staged.
        rate: Bytes of rows staged per second.
    """

    def __init__(  # noqa: PLR0913 - its ports and collaborators
        self,
        *,
        origin: Origin,
        buffer: Buffer,
        observer: StagingObserver,
        intake: Intake,
        staging: Staging,
        bus: ControlTopics,
        backlog: Backlog,
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.in_flight: dict[str, int] = {}
        self.rows, self.rate = 0, Meter()
        self._origin, self._buffer, self._observer = origin, buffer, observer
        self._intake, self._staging, self._bus = intake, staging, bus
        self._backlog, self._beat = backlog, beat
        self._slots = asyncio.Semaphore(CONCURRENT_WRITES)
        self._wake = asyncio.Event()
        self._count = 0

    def wake(self) -> None:
        """Check whether something is due: rows arrived, or no more will."""
        self._wake.set()

    async def run(self) -> None:
        """Stage what is due until cancelled."""
        async with asyncio.TaskGroup() as files:
            while True:
                now = asyncio.get_running_loop().time()
                self._beat("stage")
                if (topic := self._buffer.due(now, self.in_flight)) is not None:
                    self._start_file(files, topic)
                    continue
                due_in = self._buffer.due_in(now, self.in_flight)
                await self._wait(IDLE_S if due_in is None else max(due_in, SHORTEST_S))

    async def _wait(self, timeout_s: float) -> None:
        self._wake.clear()
        await until_set(self._wake, timeout_s)

    def _start_file(self, files: asyncio.TaskGroup, topic: str) -> None:
        oldest = self._buffer.oldest_at(topic)
        taken = self._buffer.take_ranges(topic)
        if not taken or oldest is None:
            return
        self.in_flight[topic] = sum(size_of(part.records) for part in taken.values())
        self._observer.staging({p: part.range.next for p, part in taken.items()})
        topic_id = self._observer.topic_id(topic)
        files.create_task(self._stage(topic, topic_id, taken, oldest))

    async def _stage(
        self, topic: str, topic_id: str | None, taken: TakenRanges, oldest: float
    ) -> None:
        now = asyncio.get_running_loop().time
        try:
            found = await self._current_topic_id(topic, topic_id)
            if not same_topic(found, topic_id):
                self._observer.dropped(topic, found, taken.keys())
                return
            name = self._file_name()
            size = await self._write(topic, name, taken)
            await self._announce(topic, topic_id, name, taken, size, oldest)
            self._backlog.add(StagedFile(topic, name, size))
            self.rows += sum(len(part.records) for part in taken.values())
            self.rate.add(now(), self.in_flight[topic])
            self._observer.announced(taken.keys())
        finally:
            del self.in_flight[topic]
            self.wake()

    def _file_name(self) -> str:
        self._count += 1
        origin = self._origin
        return f"{origin.slot}-{origin.epoch}-{self._count}-{uuid4().hex[:8]}.parquet"

    async def _current_topic_id(self, topic: str, known: str | None) -> str | None:
        """Return the topic's current id; if it is the one known, the taken rows belong to it.

        Rows of a topic that was deleted are staged under the known id.
        """
        pause = Backoff(5.0)
        while True:
            try:
                return await self._intake.topic_id(topic)
            except TopicMissing:
                return known
            except BrokerUnavailable as exc:
                log.warning("topic.unknown", topic=topic, reason=str(exc))
                await asyncio.sleep(pause.next())

    async def _write(self, topic: str, name: str, taken: TakenRanges) -> int:
        rows = {p: part.records for p, part in taken.items()}

        pause, delayed = Backoff(), False
        while True:
            try:
                async with self._slots:
                    size = await self._warn_if_slow(self._staging.write(topic, name, rows), topic)
            except StagingUnavailable as exc:
                if not delayed:
                    log.error("staging.delayed", topic=topic, reason=str(exc))  # noqa: TRY400 - expected
                delayed = True
                await asyncio.sleep(pause.next())
            else:
                if delayed:
                    log.info("staging.recovered", topic=topic)
                return size

    @staticmethod
    async def _warn_if_slow(writing: Coroutine[Any, Any, int], topic: str) -> int:
        """Wait for a write; log when it takes long."""
        slow = asyncio.get_running_loop().call_later(
            SLOW_S, lambda: log.warning("staging.slow", topic=topic, waited_s=SLOW_S)
        )
        try:
            return await writing
        finally:
            slow.cancel()

    async def _announce(  # noqa: PLR0913, PLR0917 - the fields of a Staged
        self,
        topic: str,
        topic_id: str | None,
        name: str,
        taken: TakenRanges,
        size: int,
        oldest: float,
    ) -> None:
        """Publish the file's ranges until that is confirmed."""

        def staged() -> Staged:
            return Staged(
                topic=topic,
                topic_id=topic_id,
                file=name,
                rows=sum(len(part.records) for part in taken.values()),
                bytes=size,
                ranges={p: part.range for p, part in taken.items()},
                slot=self._origin.slot,
                epoch=self._origin.epoch,
                age_s=asyncio.get_running_loop().time() - oldest,
                cut=tuple(p for p, part in taken.items() if part.cut),
            )

        await Publisher(
            self._bus,
            self._origin.landing_topic,
            landing_partition(topic),
            create=self._create_landing_topic,
        ).publish(staged)

    async def _create_landing_topic(self) -> None:
        # It was deleted. All that it announced can be read again from the data topics.
        landing = self._origin.landing_topic
        log.warning("landing_topic.missing", topic=landing, then="recreated")
        await self._bus.ensure(landing, LANDING_PARTITIONS, LANDING_CONFIG)
