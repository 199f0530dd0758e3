"""Carries out what the machine of a table's writer returns.

Requests run on Spark, Kafka and the staging location, one at a time, and each has one outcome.
Effects (deleted files, committed offsets, reports of missing rows) have none: deletions and offsets
are worked off in the background, and no commit waits for them.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import structlog

from binwright.consumer.decide.writer.chain import same_topic
from binwright.consumer.decide.writer.states import (
    Append,
    ClaimTable,
    CommitOffsets,
    Committed,
    Conflict,
    DeleteFiles,
    DeleteOtherLeases,
    Done,
    Effect,
    HistoryRead,
    LandedOffsets,
    LeaseGone,
    Log,
    Outcome,
    QueryKafka,
    ReadAnnouncements,
    ReadHistory,
    ReadLandedOffsets,
    Refused,
    Request,
    RereadPartitions,
    TopicState,
    Unclear,
    Unreadable,
    WriteLease,
)
from binwright.consumer.events import Emit, RowsMissing
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
from binwright.protocol.ports.kafka import DataReader, GroupOffset
from binwright.protocol.ports.lake import Batch, FileSlice, Footer, Lake, Staging

log = structlog.get_logger()

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
            case WriteLease(lease=lease):
                await self.context.staging.write_lease(self.topic, lease)
                return Done()
            case DeleteOtherLeases(lease=lease):
                await self.context.staging.delete_other_leases(self.topic, lease)
                return Done()
            case ClaimTable(writer=writer, stamp=stamp):
                await self.lake.claim(self.topic, writer, stamp)
                return Committed()
            case QueryKafka():
                return await self._query_kafka()
            case ReadLandedOffsets():
                return await self._landed_offsets(topic_id)
            case Append():
                return await self._append(request)

    async def _append(self, request: Append) -> Outcome:
        batch, lease = request.batch, request.lease
        if not await self._holds(lease):
            return LeaseGone()
        if lost := await self._not_as_announced(batch):
            return Unreadable(lost, "gone, damaged, or not what was announced")
        try:
            if batch.slices:
                await self.lake.append(self.topic, batch, lease, request.stamp)
            else:
                await self.lake.commit_stamp(self.topic, lease, request.number, request.stamp)
        except StagedUnreadable as exc:
            # Deleted by another writer, which has landed them? Then the lease went before (†).
            if not await self._holds(lease):
                return LeaseGone()
            lost = await self._unreadable(batch, exc.files)
            return Unreadable(lost, str(exc)) if lost else Refused(str(exc))
        return Committed()

    async def _holds(self, lease: str) -> bool:
        return lease in await self.context.staging.existing(self.topic, {lease})

    async def _not_as_announced(self, batch: Batch) -> frozenset[str]:
        """Return the files that do not hold what their announcements say (†).

        Spark would read an empty one as no rows. Whoever may write to the landing topic could
        announce other offsets than a file has.
        """
        footers = await self.context.staging.footers(self.topic, batch.files)
        return frozenset(
            part.file
            for part in batch.slices
            if (footer := footers.get(part.file)) is None or not _holds_slice(footer, part)
        )

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
                partitions = await reader.partitions(self.topic)
                bounds = await reader.bounds(partitions)
                landing_id = await bus.topic_id(landing_topic)
                landing_end = await bus.end(landing_topic, partition)
                id_after = await reader.topic_id(self.topic)
        except TimeoutError:
            return Unclear(f"Kafka did not answer within {KAFKA_TIMEOUT_S:g} s")
        if id_after != topic_id:
            return Unclear(f"topic {self.topic} is being recreated")
        by_number = {p.partition: bound for p, bound in bounds.items()}
        leaderless = frozenset(p.partition for p in partitions if p not in bounds)
        return TopicState(topic_id, by_number, landing_id, landing_end, leaderless)

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


def _holds_slice(footer: Footer, part: FileSlice) -> bool:
    if part.whole:
        return footer.ranges == part.ranges
    return all(
        p in footer.ranges and footer.ranges[p][0] <= first and end <= footer.ranges[p][1]
        for p, (first, end) in part.ranges.items()
    )


TRIES, RETRY_S = 4, 5.0
AT_ONCE = 500  # files
REFRESH_S = 3600.0
"""Offsets are committed again so often: Kafka deletes them days after their last commit."""


class Effects:
    """Carries out the effects of one table's writer; no commit waits for them."""

    def __init__(self, topic: str, context: WriterContext, emit: Emit) -> None:
        self._topic, self._emit = topic, emit
        self._deletions = Deletions(context.staging, topic)
        self._offsets = OffsetCommitter(context.reader)
        self._committing: asyncio.Task[None] | None = None

    def carry_out(self, effects: Iterable[Effect], topic_id: str | None) -> int | None:
        """Carry out the effects; return the offset to read announcements from, None if unchanged.

        Args:
            effects: In the order in which the machine returned them.
            topic_id: The id of the data topic that the offsets belong to.
        """
        begin = None
        for effect in effects:
            match effect:
                case DeleteFiles(files=files):
                    self._deletions.add(files)
                case CommitOffsets(committed=committed):
                    self._commit_offsets(committed, topic_id)
                case RereadPartitions(committed=committed):
                    log.warning("rows.missing", table=self._topic, read_again_from=committed)
                    self._emit(RowsMissing(self._by_partition(committed)))
                case Log(event=event, facts=facts, fault=fault):
                    (log.error if fault else log.info)(event, table=self._topic, **facts)
                case ReadAnnouncements(offset=offset):
                    begin = offset
        return begin

    def _commit_offsets(self, committed: Mapping[int, int], topic_id: str | None) -> None:
        offsets = {p: GroupOffset(o, topic_id) for p, o in self._by_partition(committed).items()}
        self._offsets.add(offsets)
        if self._committing is None:
            self._committing = asyncio.create_task(self._offsets.run())

    def _by_partition(self, offsets: Mapping[int, int]) -> dict[TopicPartition, int]:
        return {TopicPartition(self._topic, p): offset for p, offset in offsets.items()}

    async def end(self, timeout_s: float) -> None:
        """Wait for deletions, `timeout_s` seconds at most, then stop."""
        if self._committing is not None:
            self._committing.cancel()
        await self._deletions.end(timeout_s)


class Deletions:
    """Deletes staged files of one topic; files that it cannot delete are collected by age."""

    def __init__(self, staging: Staging, topic: str) -> None:
        self._staging, self._topic = staging, topic
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, files: Collection[str]) -> None:
        """Delete these files in the background."""
        ordered = sorted(files)
        for begin in range(0, len(ordered), AT_ONCE):
            task = asyncio.create_task(self._delete(ordered[begin : begin + AT_ONCE]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _delete(self, files: Collection[str]) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                await self._staging.delete(self._topic, files)
            except StagingUnavailable as exc:
                last = attempt == TRIES
                then = "left to collection by age" if last else "tried again"
                fields = {"table": self._topic, "files": len(files), "reason": str(exc)}
                log.warning("deletion.failed", then=then, **fields)
                if not last:
                    await asyncio.sleep(RETRY_S * attempt)
            else:
                return

    async def end(self, timeout_s: float) -> None:
        """Wait until all are deleted, `timeout_s` seconds at most, then cancel the rest."""
        if tasks := set(self._tasks):
            _, late = await asyncio.wait(tasks, timeout=timeout_s)
            for task in late:
                task.cancel()


class OffsetCommitter:
    """Commits landed offsets under the group's name, and again while a table is idle."""

    def __init__(self, reader: DataReader) -> None:
        self._reader = reader
        self._known: dict[TopicPartition, GroupOffset] = {}
        self._compared: set[TopicPartition] = set()
        self._due: dict[TopicPartition, GroupOffset] = {}
        self._changed = asyncio.Event()
        self._failing = False

    def add(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Commit these soon; forget offsets of an earlier topic of the same name."""
        ids = {offset.topic_id for offset in offsets.values()}
        self._known = {p: o for p, o in self._known.items() if o.topic_id in ids} | {**offsets}
        self._due = {p: o for p, o in self._due.items() if o.topic_id in ids} | {**offsets}
        self._changed.set()

    async def run(self) -> None:
        """Commit due offsets until cancelled."""
        while True:
            try:
                async with asyncio.timeout(RETRY_S if self._due else REFRESH_S):
                    await self._changed.wait()
            except TimeoutError:
                self._due = dict(self._known)
            self._changed.clear()
            if self._due:
                await self._commit()

    async def _commit(self) -> None:
        due, self._due = self._due, {}
        try:
            await self._log_set_back(due)
            await self._reader.commit(due)
        except (BrokerUnavailable, TopicMissing) as exc:
            self._due = {**due, **self._due}
            if not self._failing:
                log.warning("offsets.not_committed", partitions=len(due), reason=str(exc))
            self._failing = True
        else:
            self._failing = False

    async def _log_set_back(self, due: Mapping[TopicPartition, GroupOffset]) -> None:
        """Log each partition whose first commit here is below what Kafka has for this topic."""
        if not (new := due.keys() - self._compared):
            return
        before = await self._reader.committed(new)
        self._compared |= new
        for partition in sorted(new & before.keys()):
            was, now = before[partition], due[partition]
            if same_topic(was.topic_id, now.topic_id) and was.offset > now.offset:
                log.warning(
                    "offset.set_back", partition=str(partition), was=was.offset, now=now.offset
                )
