"""Writes taken rows to staged files and announces them; rows are kept until both are done."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from binwright.consumer.decide.buffer import TakenRows
from binwright.consumer.events import Emit, FileAnnounced, FileDropped, StagingStarted
from binwright.consumer.read.meters import Meter
from binwright.consumer.read.partitions import AssignedPartitions
from binwright.consumer.stage.file_writer import FileWriter, Origin
from binwright.kafka.control_records import LANDING_CONFIG, LANDING_PARTITIONS, landing_partition
from binwright.kafka.publishing import Publisher
from binwright.protocol.errors import ExternalError
from binwright.protocol.landing import Staged
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.tables.targets import Target

STAGING_FOUND = LogEvent.warning(
    "staging.found",
    "Retention deleted records before they were read, and a staged file has them: it is announced "
    "again.",
)
STAGING_FAILED = LogEvent.error(
    "staging.failed", "A defect of binwright: a topic's rows cannot be staged; tried again."
)
STAGING_DELAYED = LogEvent.error(
    "staging.delayed", "A file cannot be staged or announced: its rows wait; tried again."
)
STAGING_RECOVERED = LogEvent.info("staging.recovered", "Files can be staged again.")
LANDING_TOPIC_MISSING = LogEvent.warning(
    "landing_topic.missing",
    "The landing topic is gone; it is created again, and what it held is announced or read again.",
)


@dataclass(slots=True)
class _Work:
    """Taken rows until they are announced for each of their topic's tables."""

    taken: TakenRows
    files: dict[Target, str] | None = None  # that are not announced yet; None: not known yet
    undecoded: set[Target] = field(default_factory=set)  # tables whose rows are not encoded yet
    failing: frozenset[str] = frozenset()  # tables, or the topic


class Stager:
    """Stages taken rows: one file at a time per table, several tables concurrently.

    Attributes:
        rows: How many rows were staged.
        rate: Bytes of rows staged per second.
        faults: Tables for which taken rows cannot be staged, and why.
    """

    def __init__(
        self,
        *,
        origin: Origin,
        partitions: AssignedPartitions,
        writer: FileWriter,
        bus: ControlTopics,
        emit: Emit,
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.rows, self.rate = 0, Meter()
        self.faults: dict[str, str] = {}
        self._origin, self._partitions, self._writer = origin, partitions, writer
        self._bus, self._emit, self._beat = bus, emit, beat

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
            if not await self._partitions.check_topic(taken.topic, taken.topic_id):
                self._emit(FileDropped(taken.ranges.keys()))
                self._note(work, {}, work.failing)
                return True
            if lost := self._partitions.lost(taken.topic):
                # What others staged of it goes first: behind what is announced now it is lost (†).
                for staged in await self._writer.staged_before(taken.topic, taken.topic_id, lost):
                    log(STAGING_FOUND, topic=taken.topic, file=staged.file)
                    await announce(self._bus, self._origin, self._writer, staged, lambda: 0.0)
                self._partitions.announced(taken.topic, lost)
            if work.files is None:
                targets = self._writer.targets(taken.topic)
                work.files = {target: self._writer.file_name() for target in targets}
                work.undecoded.update(targets)
        except Exception as exc:  # noqa: BLE001 - a bug, or a name that no table can have
            self._note(work, {taken.topic: exc}, ())
            return False
        failed = await self._stage_files(work.files, work)
        self._note(work, failed, work.failing)
        if failed:
            return False
        self.rows += taken.count
        self.rate.add(loop_s(), taken.bytes)
        self._emit(FileAnnounced(taken.ranges.keys()))
        return True

    async def _stage_files(self, files: dict[Target, str], work: _Work) -> Mapping[str, Exception]:
        """Stage these files, and remove those that are announced; return why others are not."""
        failed: dict[str, Exception] = {}
        left = dict(files)
        results = await asyncio.gather(
            *(self._stage_file(name, target, work) for target, name in left.items()),
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
                log(STAGING_FAILED, topic=topic, table=name, exc_info=exc)
            elif name not in self.faults:
                log(STAGING_DELAYED, topic=topic, table=name, reason=str(exc))
            self.faults[name] = str(exc) if expected else repr(exc)
        recovered = work.failing.intersection(tried) - failed.keys()
        for name in sorted(recovered):
            del self.faults[name]
            log(STAGING_RECOVERED, topic=topic, table=name)
        work.failing = work.failing - recovered | failed.keys()

    async def _stage_file(self, name: str, target: Target, work: _Work) -> None:
        """Write a table's file and announce it."""
        taken = work.taken

        def encoded() -> None:
            work.undecoded.discard(target)
            if not work.undecoded:
                self._partitions.decoded(taken.topic)

        staged = await self._writer.write(name, target, taken, encoded)
        await announce(
            self._bus, self._origin, self._writer, staged, lambda: loop_s() - taken.oldest_at
        )


async def announce(
    bus: ControlTopics,
    origin: Origin,
    writer: FileWriter,
    staged: Staged,
    age_s: Callable[[], float],
) -> None:
    """Publish a file's announcement, and count the file from then on.

    Before, it counts nowhere: what came of a part too late is never announced.

    Args:
        bus: Where announcements go.
        origin: This consumer, whoever staged the file.
        writer: Counts it.
        staged: The file.
        age_s: Returns how old its rows are now.
    """
    landing_topic = origin.landing_topic

    async def create() -> None:
        # It was deleted. All that it announced can be read again from the data topics.
        log(LANDING_TOPIC_MISSING, topic=landing_topic, then="recreated")
        await bus.ensure(landing_topic, LANDING_PARTITIONS, LANDING_CONFIG)

    partition = landing_partition(staged.target)
    publisher = Publisher(bus, landing_topic, partition, create=create)
    await publisher.publish(lambda: replace(staged, age_s=age_s()))
    writer.keep(staged)
