"""Runs the requests of a table's writer on Spark, Kafka and the staging location.

Each request has one outcome.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

from binwright.consumer.decide.writer.chain import same_topic
from binwright.consumer.decide.writer.states import (
    Append,
    Claim,
    Committed,
    Conflict,
    HistoryRead,
    LandedOffsets,
    Outcome,
    QueryKafka,
    ReadHistory,
    ReadLandedOffsets,
    Refused,
    Request,
    Skipped,
    TopicState,
    Unclear,
    Unreadable,
)
from binwright.consumer.writer.announcements import landing_partition
from binwright.consumer.writer.context import WriterContext
from binwright.protocol.errors import (
    BrokerUnavailable,
    LakeUnavailable,
    StagedUnreadable,
    StagingUnavailable,
    TableRefused,
    TopicMissing,
    WriteConflict,
    WriteUnclear,
)
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.lake import Batch, Lake

KAFKA_TIMEOUT_S = 10.0  # of a query about one table

_WITHOUT_VERDICT = (
    WriteUnclear,
    LakeUnavailable,
    BrokerUnavailable,
    TopicMissing,
    StagingUnavailable,
)


@dataclass(frozen=True, slots=True)
class RequestRunner:
    """Runs the requests of one table's writer."""

    topic: str
    lake: Lake
    context: WriterContext

    async def run(self, request: Request, topic_id: str | None) -> Outcome:
        """Run a request once and return its outcome; errors of Spark and Kafka are outcomes, too.

        Args:
            request: What to do.
            topic_id: The id of the data topic that the writer lands; for `ReadLandedOffsets`.
        """
        try:
            return await self._dispatch(request, topic_id)
        except WriteConflict as exc:
            return Conflict(str(exc))
        except _WITHOUT_VERDICT as exc:
            return Unclear(str(exc))
        except TableRefused as exc:
            return Refused(str(exc))

    async def _dispatch(self, request: Request, topic_id: str | None) -> Outcome:
        match request:
            case ReadHistory(limit=limit):
                history = await self.lake.history(self.topic, limit)
                return HistoryRead(history.commits, history.complete)
            case Claim(app=app, version=version, stamp=stamp):
                return _verdict(await self.lake.claim(self.topic, app, version, stamp))
            case QueryKafka():
                return await self._query_kafka()
            case ReadLandedOffsets():
                return await self._landed_offsets(topic_id)
            case Append():
                return await self._append(request)

    async def _append(self, request: Append) -> Outcome:
        if lost := await self._missing(request.batch):
            return Unreadable(lost, "gone, or empty: Spark would skip them")
        app, version, stamp = request.app, request.version, request.stamp
        try:
            return _verdict(await self.lake.append(self.topic, request.batch, app, version, stamp))
        except StagedUnreadable as exc:
            lost = await self._unreadable(request.batch, exc.files)
            return Unreadable(lost, str(exc)) if lost else Refused(str(exc))

    async def _missing(self, batch: Batch) -> frozenset[str]:
        """Return the missing and empty files: Spark would read an empty one as no rows (†)."""
        files = frozenset(batch.files)
        if not files:
            return files
        return files - frozenset(await self.context.staging.existing(self.topic, files))

    async def _unreadable(self, batch: Batch, suspected: Collection[str]) -> frozenset[str]:
        """Return the files of the batch that are missing or damaged, looking at suspects first."""
        every = frozenset(batch.files)
        for suspects in (every.intersection(suspected), every):
            try:
                readable = await self.context.staging.readable(self.topic, suspects)
            except StagingUnavailable:
                break  # unknown, so no file is given up
            if lost := suspects.difference(readable):
                return lost
        return frozenset()

    async def _query_kafka(self) -> Outcome:
        """Query Kafka; the topic id first and last, so that the rest is about one topic."""
        reader, bus = self.context.reader, self.context.bus
        landing_topic, partition = self.context.landing_topic, landing_partition(self.topic)
        try:
            async with asyncio.timeout(KAFKA_TIMEOUT_S):
                topic_id = await reader.topic_id(self.topic)
                bounds = await reader.bounds(await reader.partitions(self.topic))
                landing_id = await bus.topic_id(landing_topic)
                landing_end = await bus.end(landing_topic, partition)
                id_after = await reader.topic_id(self.topic)
        except TimeoutError:
            return Unclear(f"Kafka did not answer within {KAFKA_TIMEOUT_S:g} s")
        if id_after != topic_id:
            return Unclear(f"topic {self.topic} is being recreated")
        by_number = {p.partition: bound for p, bound in bounds.items()}
        return TopicState(topic_id, by_number, landing_id, landing_end)

    async def _landed_offsets(self, topic_id: str | None) -> Outcome:
        """Query the table's rows and the group's offsets for what has landed.

        Rows do not carry a topic id. If a partition's committed offset belongs to another topic of
        the same name, so do its rows, and neither counts.
        """
        highest = await self.lake.highest_offsets(self.topic)
        partitions = await self.context.reader.partitions(self.topic)
        landed = {p: TopicPartition(self.topic, p) for p in highest}
        offsets = await self.context.reader.committed({*partitions, *landed.values()})
        return LandedOffsets(
            highest_offsets={
                p: offset
                for p, offset in highest.items()
                if landed[p] not in offsets or same_topic(offsets[landed[p]].topic_id, topic_id)
            },
            group={p.partition: o.offset for p, o in offsets.items() if o.topic_id == topic_id},
        )


def _verdict(version: int | None) -> Outcome:
    return Skipped() if version is None else Committed()
