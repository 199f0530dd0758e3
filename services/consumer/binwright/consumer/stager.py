"""Rows become staged files, and files announcements: what was taken is kept until both are done."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import structlog

from binwright.consumer.backlog import Backlog, StagedFile
from binwright.consumer.meters import Meter
from binwright.consumer.writer.asking import landing_partition
from binwright.core.consumer.buffer import Buffer, Stretch, size_of
from binwright.core.errors import BrokerUnavailable, StagingUnavailable, TopicMissing, WorldError
from binwright.core.messages import Staged
from binwright.core.model import Slot, TopicPartition
from binwright.core.ports import Bus, Intake, Staging
from binwright.core.writer.chain import same_topic
from binwright.shell.letters import LANDING_CONFIG, LANDING_PARTITIONS, post
from binwright.shell.pauses import Pause, until_set

log = structlog.get_logger()

T = TypeVar("T")

AT_ONCE = 4  # files being written, each of another topic
SLOW_S = 15.0  # a file that takes longer to write is worth a line
SHORTEST_S, IDLE_S = 0.01, 5.0

Stretches = Mapping[TopicPartition, Stretch]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who stages, and where it is announced."""

    slot: Slot
    epoch: int
    landing_topic: str


class Reader(Protocol):
    """The part of a consumer that is told of what is being staged."""

    def staging(self, ends: Mapping[TopicPartition, int]) -> None:
        """Take that a file with rows up to these offsets is being written."""

    def announced(self, partitions: Collection[TopicPartition]) -> None:
        """Take that the file with rows of these is announced."""

    def dropped(
        self, topic: str, topic_id: str | None, partitions: Collection[TopicPartition]
    ) -> None:
        """Take that the file is not written: its topic was made anew, and has this id."""

    def topic_id(self, topic: str) -> str | None:
        """Return which topic of this name the rows in the buffer are of."""


class Stager:
    """Stages a consumer's buffer: one file at a time of each topic, some topics side by side."""

    def __init__(  # noqa: PLR0913 - its neighbours
        self,
        *,
        origin: Origin,
        buffer: Buffer,
        reader: Reader,
        intake: Intake,
        staging: Staging,
        bus: Bus,
        backlog: Backlog,
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.in_flight: dict[str, int] = {}  # topic -> bytes of rows
        self.rows, self.rate = 0, Meter()
        self._origin, self._buffer, self._reader = origin, buffer, reader
        self._intake, self._staging, self._bus = intake, staging, bus
        self._backlog, self._beat = backlog, beat
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._wake = asyncio.Event()
        self._count = 0

    def wake(self) -> None:
        """Look whether something is due: rows came, or none will."""
        self._wake.set()

    async def run(self) -> None:
        """Stage what is due, for ever."""
        async with asyncio.TaskGroup() as files:
            while True:
                now = asyncio.get_running_loop().time()
                self._beat("stage")
                if (topic := self._buffer.due(now, self.in_flight)) is not None:
                    self._take(files, topic)
                    continue
                due_in = self._buffer.due_in(now, self.in_flight)
                await self._woken(IDLE_S if due_in is None else max(due_in, SHORTEST_S))

    async def _woken(self, timeout_s: float) -> None:
        self._wake.clear()
        await until_set(self._wake, timeout_s)

    def _take(self, files: asyncio.TaskGroup, topic: str) -> None:
        oldest = self._buffer.oldest_at(topic)
        taken = self._buffer.take(topic)
        if not taken or oldest is None:
            return
        self.in_flight[topic] = sum(size_of(part.records) for part in taken.values())
        self._reader.staging({p: part.range.next for p, part in taken.items()})
        topic_id = self._reader.topic_id(topic)
        files.create_task(self._stage(topic, topic_id, taken, oldest))

    async def _stage(
        self, topic: str, topic_id: str | None, taken: Stretches, oldest: float
    ) -> None:
        now = asyncio.get_running_loop().time
        try:
            found = await self._topic_id(topic, topic_id)
            if not same_topic(found, topic_id):
                self._reader.dropped(topic, found, taken.keys())
                return
            name = self._name()
            size = await self._write(topic, name, taken)
            await self._announce(topic, topic_id, name, taken, size, oldest)
            self._backlog.add(StagedFile(topic, name, size))
            self.rows += sum(len(part.records) for part in taken.values())
            self.rate.add(now(), self.in_flight[topic])
            self._reader.announced(taken.keys())
        finally:
            del self.in_flight[topic]
            self.wake()

    def _name(self) -> str:
        self._count += 1
        origin = self._origin
        return f"{origin.slot}-{origin.epoch}-{self._count}-{uuid4().hex[:8]}.parquet"

    async def _topic_id(self, topic: str, known: str | None) -> str | None:
        """Return which topic of this name there is now: rows fetched before are of no other.

        What was read of a topic that is no more is staged as its own.
        """
        pause = Pause(5.0)
        while True:
            try:
                return await self._intake.topic_id(topic)
            except TopicMissing:
                return known
            except BrokerUnavailable as exc:
                log.warning("topic.unknown", topic=topic, reason=str(exc))
                await asyncio.sleep(pause.next())

    async def _write(self, topic: str, name: str, taken: Stretches) -> int:
        rows = {p: part.records for p, part in taken.items()}

        async def write() -> int:
            async with self._slots:
                return await self._watched(self._staging.write(topic, name, rows), topic)

        return await _until_done(
            write, StagingUnavailable, ("staging.delayed", "staging.recovered"), topic
        )

    @staticmethod
    async def _watched(writing: Coroutine[Any, Any, int], topic: str) -> int:
        """Wait for a write, and say so when it takes long."""
        slow = asyncio.get_running_loop().call_later(
            SLOW_S, lambda: log.warning("staging.slow", topic=topic, waited_s=SLOW_S)
        )
        try:
            return await writing
        finally:
            slow.cancel()

    async def _announce(  # noqa: PLR0913, PLR0917 - all that a Staged says
        self,
        topic: str,
        topic_id: str | None,
        name: str,
        taken: Stretches,
        size: int,
        oldest: float,
    ) -> None:
        """Publish the file's ranges, however long that takes; twice changes nothing."""

        async def announce() -> None:
            staged = Staged(
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
            await self._publish(staged)

        await _until_done(
            announce, BrokerUnavailable, ("announcement.delayed", "announcement.recovered"), topic
        )

    async def _publish(self, staged: Staged) -> None:
        landing = self._origin.landing_topic
        partition = landing_partition(staged.topic)
        try:
            await post(self._bus, landing, partition, staged)
        except TopicMissing:
            # Somebody deleted it. All that stood there can be read again from the data topics.
            log.warning("landing.missing", topic=landing, then="made anew")
            try:
                await self._bus.ensure(landing, LANDING_PARTITIONS, LANDING_CONFIG)
            except TopicMissing as exc:
                raise BrokerUnavailable(str(exc)) from exc
            raise BrokerUnavailable(f"topic {landing} was not there") from None


async def _until_done(
    work: Callable[[], Awaitable[T]], fault: type[WorldError], events: tuple[str, str], topic: str
) -> T:
    """Return what `work` returns, however long that takes; tell of trouble once, and of its end."""
    (delayed, recovered), pause, told = events, Pause(), False
    while True:
        try:
            done = await work()
        except fault as exc:
            if not told:
                log.error(delayed, topic=topic, reason=str(exc))  # noqa: TRY400 - expected
            told = True
            await asyncio.sleep(pause.next())
        else:
            if told:
                log.info(recovered, topic=topic)
            return done
