"""Writes taken rows to staged files and announces them; rows are kept until both are done."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
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
from binwright.runtime.settings import Target

log = structlog.get_logger()

CONCURRENT_WRITES = 4  # files, each of another table
SLOW_S = 15.0  # a slower write is logged


@dataclass(frozen=True, slots=True)
class Origin:
    """The consumer that stages, and the topic of its announcements."""

    slot: Slot
    epoch: int
    landing_topic: str


def one_raw_table(topic: str) -> tuple[Target, ...]:
    """Return the tables of a topic that no entry of the settings names."""
    return (Target(topic, topic),)


@dataclass(slots=True)
class _Work:
    """Taken rows until they are announced for each of their topic's tables."""

    taken: TakenRows
    files: dict[Target, str] | None = None  # that are not announced yet; None: not known yet
    failing: frozenset[str] = frozenset()  # tables, or the topic


class Stager:
    """Stages taken rows: one file at a time per table, several tables concurrently.

    Attributes:
        rows: How many rows were staged.
        rate: Bytes of rows staged per second.
        faults: Tables for which taken rows cannot be staged, and why.
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
        targets: Callable[[str], Collection[Target]] = one_raw_table,
        decoder_of: DecoderOf = no_decoder,
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.rows, self.rate = 0, Meter()
        self.faults: dict[str, str] = {}
        self._origin, self._partitions, self._staging, self._bus = origin, partitions, staging, bus
        self._backlog, self._emit, self._beat = backlog, emit, beat
        self._targets, self._decoder_of, self._timings = targets, decoder_of, timings
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
        """Stage the rows for each table; what fails is tried again, and stops no other table."""
        work, pause = _Work(taken), Backoff()
        try:
            while not await self._attempt(work):  # noqa: ASYNC110 - for what answers no event
                await asyncio.sleep(pause.next())
        finally:
            self._partitions.release(taken.topic)

    async def _attempt(self, work: _Work) -> bool:
        """Stage what is not announced yet; return whether nothing is left."""
        taken = work.taken
        try:
            # Before each attempt: the topic may have been recreated since the last one (†).
            if not await self._partitions.check_topic(taken):
                self._emit(FileDropped(taken.ranges.keys()))
                self._note(work, {}, work.failing)
                return True
            if work.files is None:
                work.files = {target: self._file_name() for target in self._targets(taken.topic)}
        except Exception as exc:  # noqa: BLE001 - a bug, or a name that no table can have
            self._note(work, {taken.topic: exc}, ())
            return False
        failed = await self._stage_files(work.files, taken)
        self._note(work, failed, work.failing)
        if failed:
            return False
        self.rows += taken.count
        self.rate.add(loop_s(), taken.bytes)
        self._emit(FileAnnounced(taken.ranges.keys()))
        return True

    async def _stage_files(
        self, files: dict[Target, str], taken: TakenRows
    ) -> Mapping[str, Exception]:
        """Stage these files, and remove those that are announced; return why others are not."""
        failed: dict[str, Exception] = {}
        left = dict(files)
        results = await asyncio.gather(
            *(self._stage_file(name, target, taken) for target, name in left.items()),
            return_exceptions=True,
        )
        for target, result in zip(left, results, strict=True):
            if result is None:
                del files[target]
            elif isinstance(result, Exception):
                failed[target.name] = result
            else:
                raise result
        return failed

    def _note(self, work: _Work, failed: Mapping[str, Exception], tried: Collection[str]) -> None:
        """Log what fails since this attempt, and what of what was tried no longer does."""
        topic = work.taken.topic
        for name, exc in failed.items():
            expected = isinstance(exc, ExternalError)
            if not expected:  # a bug: other topics must go on
                log.error("staging.failed", topic=topic, table=name, exc_info=exc)
            elif name not in self.faults:
                log.error("staging.delayed", topic=topic, table=name, reason=str(exc))
            self.faults[name] = str(exc) if expected else repr(exc)
        recovered = work.failing.intersection(tried) - failed.keys()
        for name in sorted(recovered):
            del self.faults[name]
            log.info("staging.recovered", topic=topic, table=name)
        work.failing = work.failing - recovered | failed.keys()

    async def _stage_file(self, name: str, target: Target, taken: TakenRows) -> None:
        """Write a table's file and announce it."""
        rows = {p: part.records for p, part in taken.ranges.items()}
        ranges = {p.partition: (r.range.first, r.range.next) for p, r in taken.ranges.items()}
        footer = Footer(taken.topic_id, taken.count, ranges, topic=taken.topic)
        decoder = await self._decoder_of(target, rows)
        async with self._slots:
            writing = self._staging.write(target.name, name, rows, footer, decoder)
            began_at = loop_s()
            size = await self._warn_if_slow(writing, taken.topic)
            self._timings.staging.observe(loop_s() - began_at)
        await self._announce(name, target, taken, size)
        self._backlog.add(target, name, size)

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

    async def _announce(self, name: str, target: Target, taken: TakenRows, size: int) -> None:
        """Publish the file's ranges until that is confirmed."""

        def staged() -> Staged:
            return Staged(
                topic=taken.topic,
                table=target.name,
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
            landing_partition(target.name),
            create=self._create_landing_topic,
        ).publish(staged)

    async def _create_landing_topic(self) -> None:
        # It was deleted. All that it announced can be read again from the data topics.
        landing = self._origin.landing_topic
        log.warning("landing_topic.missing", topic=landing, then="recreated")
        await self._bus.ensure(landing, LANDING_PARTITIONS, LANDING_CONFIG)
