"""Writes taken rows to staged files and announces them; rows are kept until both are done."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import structlog

from binwright.consumer.backlog import Backlog
from binwright.consumer.decoding.decoders import DecoderOf, no_decoder
from binwright.consumer.events import Emit, FileAnnounced, FileDropped, StagingStarted
from binwright.consumer.meters import Meter
from binwright.consumer.partitions import AssignedPartitions, TakenRows
from binwright.consumer.timings import Timings
from binwright.kafka.control_records import LANDING_CONFIG, LANDING_PARTITIONS, landing_partition
from binwright.kafka.publishing import Publisher
from binwright.protocol.errors import ExternalError
from binwright.protocol.messages import Staged
from binwright.protocol.model import Slot
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.ports.lake import Footer, Staging
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import loop_s

log = structlog.get_logger()

CONCURRENT_WRITES = 4  # files, each of another topic
SLOW_S = 15.0  # a slower write is logged


@dataclass(frozen=True, slots=True)
class Origin:
    """The consumer that stages, and the topic of its announcements."""

    slot: Slot
    epoch: int
    landing_topic: str


class Stager:
    """Stages taken rows: one file at a time per topic, several topics concurrently.

    Attributes:
        rows: How many rows were staged.
        rate: Bytes of rows staged per second.
        faults: Topics whose taken rows cannot be staged, and why.
    """

    def __init__(  # noqa: PLR0913 - its ports and collaborators
        self,
        *,
        origin: Origin,
        partitions: AssignedPartitions,
        staging: Staging,
        bus: ControlTopics,
        backlog: Backlog,
        emit: Emit,
        timings: Timings,
        decoder_of: DecoderOf = no_decoder,
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.rows, self.rate = 0, Meter()
        self.faults: dict[str, str] = {}
        self._origin, self._partitions, self._staging, self._bus = origin, partitions, staging, bus
        self._backlog, self._emit, self._beat = backlog, emit, beat
        self._decoder_of, self._timings = decoder_of, timings
        self._slots = asyncio.Semaphore(CONCURRENT_WRITES)
        self._count = 0

    async def run(self) -> None:
        """Stage what is due until cancelled."""
        async with asyncio.TaskGroup() as files:
            while True:
                self._beat("stage")
                if (taken := self._partitions.take_due()) is None:
                    await self._partitions.wait_for_rows()
                    continue
                self._emit(StagingStarted({p: part.range.next for p, part in taken.ranges.items()}))
                files.create_task(self._stage(taken))

    async def _stage(self, taken: TakenRows) -> None:
        """Stage the rows; whatever fails is tried again, and stops no other topic."""
        topic, name, pause = taken.topic, self._file_name(), Backoff()
        try:
            while True:
                try:
                    await self._attempt(name, taken)
                except ExternalError as exc:
                    if topic not in self.faults:
                        log.error("staging.delayed", topic=topic, reason=str(exc))  # noqa: TRY400 - expected
                    self.faults[topic] = str(exc)
                except Exception as exc:  # a bug: other topics must go on
                    log.exception("staging.failed", topic=topic)
                    self.faults[topic] = repr(exc)
                else:
                    break
                await asyncio.sleep(pause.next())
            if self.faults.pop(topic, None):
                log.info("staging.recovered", topic=topic)
        finally:
            self._partitions.release(topic)

    async def _attempt(self, name: str, taken: TakenRows) -> None:
        if not await self._partitions.check_topic(taken):
            self._emit(FileDropped(taken.ranges.keys()))
            return
        rows = {p: part.records for p, part in taken.ranges.items()}
        ranges = {p.partition: (r.range.first, r.range.next) for p, r in taken.ranges.items()}
        footer = Footer(taken.topic_id, taken.count, ranges)
        decoder = await self._decoder_of(taken.topic, rows)
        async with self._slots:
            writing = self._staging.write(taken.topic, name, rows, footer, decoder)
            began_at = loop_s()
            size = await self._warn_if_slow(writing, taken.topic)
            self._timings.staging.observe(loop_s() - began_at)
        await self._announce(name, taken, size)
        self._backlog.add(taken.topic, name, size)
        self.rows += taken.count
        self.rate.add(loop_s(), taken.bytes)
        self._emit(FileAnnounced(taken.ranges.keys()))

    def _file_name(self) -> str:
        self._count += 1
        origin = self._origin
        return f"{origin.slot}-{origin.epoch}-{self._count}-{uuid4().hex[:8]}.parquet"

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

    async def _announce(self, name: str, taken: TakenRows, size: int) -> None:
        """Publish the file's ranges until that is confirmed."""

        def staged() -> Staged:
            return Staged(
                topic=taken.topic,
                topic_id=taken.topic_id,
                file=name,
                rows=taken.count,
                bytes=size,
                ranges={p: part.range for p, part in taken.ranges.items()},
                slot=self._origin.slot,
                epoch=self._origin.epoch,
                age_s=loop_s() - taken.oldest_at,
                cut=tuple(p for p, part in taken.ranges.items() if part.cut),
            )

        await Publisher(
            self._bus,
            self._origin.landing_topic,
            landing_partition(taken.topic),
            create=self._create_landing_topic,
        ).publish(staged)

    async def _create_landing_topic(self) -> None:
        # It was deleted. All that it announced can be read again from the data topics.
        landing = self._origin.landing_topic
        log.warning("landing_topic.missing", topic=landing, then="recreated")
        await self._bus.ensure(landing, LANDING_PARTITIONS, LANDING_CONFIG)
