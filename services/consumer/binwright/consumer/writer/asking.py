"""What a table's writer requests, asked of Spark, Kafka and the staging place: one outcome each."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from zlib import crc32

from binwright.core.errors import (
    BrokerUnavailable,
    LakeUnavailable,
    StagedUnreadable,
    StagingUnavailable,
    TableRefused,
    TopicMissing,
    WriteConflict,
    WriteUnclear,
)
from binwright.core.model import TopicPartition
from binwright.core.ports import Bus, Intake, Lake, Staging
from binwright.core.writer.batch import Batch
from binwright.core.writer.chain import same_topic
from binwright.core.writer.requests import (
    Append,
    AskKafka,
    Claim,
    Committed,
    Conflict,
    Facts,
    Fence,
    Outcome,
    ReadHistory,
    ReadRows,
    Refused,
    Request,
    Rows,
    Skipped,
    Told,
    Unclear,
    Unreadable,
)
from binwright.shell.letters import LANDING_PARTITIONS

KAFKA_S = 10.0  # a table does not wait longer for what Kafka says of it

_UNANSWERED = (
    WriteUnclear,
    LakeUnavailable,
    BrokerUnavailable,
    TopicMissing,
    StagingUnavailable,
)


def landing_partition(topic: str) -> int:
    """Return in which partition of the landing topic a table's files are announced."""
    return crc32(topic.encode()) % LANDING_PARTITIONS


@dataclass(frozen=True, slots=True)
class Asker:
    """Whom the writer of one table asks."""

    topic: str
    lake: Lake
    bus: Bus
    landing_topic: str
    intake: Intake
    staging: Staging

    async def ask(self, wanted: Request, topic_id: str | None) -> Outcome:
        """Do what is requested, once, and return how it ended.

        Args:
            wanted: What to do.
            topic_id: Which topic of this name the writer goes by; for `ReadRows`.
        """
        try:
            return await self._ask(wanted, topic_id)
        except WriteConflict as exc:
            return Conflict(str(exc))
        except _UNANSWERED as exc:
            return Unclear(str(exc))
        except TableRefused as exc:
            return Refused(str(exc))

    async def _ask(self, wanted: Request, topic_id: str | None) -> Outcome:
        match wanted:
            case ReadHistory(limit=limit):
                history = await self.lake.history(self.topic, limit)
                return Told(history.commits, history.complete)
            case Claim(app=app, version=version, stamp=stamp):
                return _verdict(await self.lake.claim(self.topic, app, version, stamp))
            case Fence(app=app, version=version):
                return _verdict(await self.lake.claim(self.topic, app, version, None))
            case AskKafka():
                return await self._facts()
            case ReadRows():
                return await self._rows(topic_id)
            case Append():
                return await self._append(wanted)

    async def _append(self, wanted: Append) -> Outcome:
        if lost := await self._missing(wanted.batch):
            return Unreadable(lost, "gone, or empty: Spark would pass over them")
        app, version, stamp = wanted.app, wanted.version, wanted.stamp
        try:
            return _verdict(await self.lake.append(self.topic, wanted.batch, app, version, stamp))
        except StagedUnreadable as exc:
            lost = await self._unreadable(wanted.batch, exc.files)
            return Unreadable(lost, str(exc)) if lost else Refused(str(exc))

    async def _missing(self, batch: Batch) -> frozenset[str]:
        """Return which files are not there. A file without content is none: Spark takes it (†)."""
        wanted = frozenset(batch.files)
        if not wanted:
            return wanted
        return wanted - frozenset(await self.staging.existing(self.topic, wanted))

    async def _unreadable(self, batch: Batch, blamed: Collection[str]) -> frozenset[str]:
        """Return which files of the batch are really gone or torn."""
        every = frozenset(batch.files)
        for suspects in (every.intersection(blamed), every):
            try:
                lost = suspects - frozenset(await self.staging.present(self.topic, suspects))
            except StagingUnavailable:
                break  # nobody can tell, so none is given up
            if lost:
                return lost
        return frozenset()

    async def _facts(self) -> Outcome:
        """Ask Kafka; the topic's id before and behind the rest, which must be about one topic."""
        partition = landing_partition(self.topic)
        try:
            async with asyncio.timeout(KAFKA_S):
                topic_id = await self.intake.topic_id(self.topic)
                bounds = await self.intake.bounds(await self.intake.partitions(self.topic))
                landing_id = await self.bus.topic_id(self.landing_topic)
                landing_end = await self.bus.end(self.landing_topic, partition)
                again = await self.intake.topic_id(self.topic)
        except TimeoutError:
            return Unclear(f"Kafka did not answer within {KAFKA_S:g} s")
        if again != topic_id:
            return Unclear(f"topic {self.topic} is being made anew")
        found = {p.partition: known for p, known in bounds.items()}
        return Facts(topic_id, found, landing_id, landing_end)

    async def _rows(self, topic_id: str | None) -> Outcome:
        """Ask the rows and the group's offsets; neither says by itself which topic it is about.

        An offset counts if it is of this very topic. If it is of another one of this name, so are
        the partition's rows.
        """
        newest = await self.lake.newest(self.topic)
        partitions = await self.intake.partitions(self.topic)
        known = {p: TopicPartition(self.topic, p) for p in newest}
        offsets = await self.intake.committed({*partitions, *known.values()})
        return Rows(
            newest={
                p: offset
                for p, offset in newest.items()
                if known[p] not in offsets or same_topic(offsets[known[p]].topic_id, topic_id)
            },
            group={p.partition: o.offset for p, o in offsets.items() if o.topic_id == topic_id},
        )


def _verdict(version: int | None) -> Outcome:
    return Skipped() if version is None else Committed()
