"""Carries out the effects of a table's writer: deleted files, committed offsets, missing rows.

They have no outcome: deletions and offsets are worked off in the background, and no commit waits.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping

from binwright.consumer.decide.land.chain import same_topic
from binwright.consumer.decide.land.landed_offsets import least_landed
from binwright.consumer.decide.land.landing import ANNOUNCEMENT_REFUSED
from binwright.consumer.decide.land.states import (
    CommitOffsets,
    DeleteFiles,
    Effect,
    ReadAnnouncements,
    RereadPartitions,
    by_name,
)
from binwright.consumer.events import Emit, RowsMissing
from binwright.consumer.land.context import WriterContext
from binwright.consumer.read.start_offsets import OFFSETS_NOT_COMMITTED
from binwright.protocol.errors import BrokerUnavailable, StagingUnavailable, TopicMissing
from binwright.protocol.landing import Staged
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import DataReader, GroupOffset
from binwright.runtime.logs import log
from binwright.tables.ports import PartitionOffsets, Staging

ROWS_MISSING = LogEvent.warning(
    "rows.missing",
    "Nothing is staged for the offsets that come next in a table; they are read again.",
)
DELETION_FAILED = LogEvent.warning("deletion.failed", "Landed staged files could not be deleted.")
OFFSET_SET_BACK = LogEvent.warning(
    "offset.set_back",
    "The group's offset of a partition is set back to where the table says that rows continue.",
)

TRIES, RETRY_S = 4, 5.0
AT_ONCE = 500  # files
REFRESH_S = 3600.0
"""Offsets are committed again so often: Kafka deletes them days after their last commit."""


class Effects:
    """Carries out the effects of one table's writer; no commit waits for them."""

    def __init__(
        self, table: str, context: WriterContext, offsets: "OffsetCommitters", emit: Emit
    ) -> None:
        self._table, self._emit = table, emit
        self._deletions = Deletions(context.staging, table)
        self._offsets = offsets

    def carry_out(
        self, effects: Iterable[Effect], topic_ids: Mapping[str, str | None]
    ) -> int | None:
        """Carry out the effects; return the offset to read announcements from, None if unchanged.

        Args:
            effects: In the order in which the machine returned them.
            topic_ids: The ids of the topics that the offsets belong to.
        """
        begin = None
        for effect in effects:
            match effect:
                case DeleteFiles(files=files, unproven=unproven):
                    self._deletions.add(files, unproven)
                case CommitOffsets(committed=committed):
                    self._commit_offsets(committed, topic_ids)
                case RereadPartitions(committed=committed):
                    again = by_name(committed)
                    log(ROWS_MISSING, table=self._table, read_again_from=again)
                    self._emit(RowsMissing(self._table, committed))
                case Log():
                    log(effect.event, table=self._table, **effect.facts)
                case ReadAnnouncements(offset=offset):
                    begin = offset
        return begin

    def _commit_offsets(
        self, committed: PartitionOffsets, topic_ids: Mapping[str, str | None]
    ) -> None:
        offsets = {p: GroupOffset(o, topic_ids.get(p.topic)) for p, o in committed.items()}
        for topic in sorted({p.topic for p in offsets}):
            # A topic that this process has not the role for has its offsets committed elsewhere.
            if (committer := self._offsets.get(topic)) is not None:
                own = {p: offset for p, offset in offsets.items() if p.topic == topic}
                committer.add(self._table, own)

    async def end(self, timeout_s: float) -> None:
        """Wait for deletions, `timeout_s` seconds at most, then stop."""
        await self._deletions.end(timeout_s)


class Deletions:
    """Deletes staged files of one table; files that it cannot delete are collected by age."""

    def __init__(self, staging: Staging, table: str) -> None:
        self._staging, self._table = staging, table
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, files: Collection[str], unproven: Collection[Staged] = ()) -> None:
        """Delete these files in the background; of the unproven those that their footer is of."""
        ordered, claims = sorted(files), {staged.file: staged for staged in unproven}
        for begin in range(0, len(ordered), AT_ONCE):
            names = ordered[begin : begin + AT_ONCE]
            claimed = [claims[name] for name in names if name in claims]
            task = asyncio.create_task(self._delete(names, claimed))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _delete(self, files: Collection[str], unproven: Collection[Staged]) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                kept = await self._not_as_announced(unproven) if unproven else set[str]()
                await self._staging.delete(self._table, [f for f in files if f not in kept])
            except StagingUnavailable as exc:
                last = attempt == TRIES
                then = "left to collection by age" if last else "tried again"
                fields = {"table": self._table, "files": len(files), "reason": str(exc)}
                log(DELETION_FAILED, then=then, **fields)
                if not last:
                    await asyncio.sleep(RETRY_S * attempt)
            else:
                return

    async def _not_as_announced(self, unproven: Collection[Staged]) -> set[str]:
        """Return the files that are there and not what was announced of them (†)."""
        footers = await self._staging.footers(self._table, [each.file for each in unproven])
        kept = {
            staged.file
            for staged in unproven
            if (footer := footers.get(staged.file)) is not None and not footer.agrees(staged)
        }
        if kept:
            reason = "the file holds other rows than was announced: it is not deleted"
            fields = {"table": self._table, "files": sorted(kept)}
            log(ANNOUNCEMENT_REFUSED, **fields, reason=reason)
        return kept

    async def end(self, timeout_s: float) -> None:
        """Wait until all are deleted, `timeout_s` seconds at most, then cancel the rest."""
        if tasks := set(self._tasks):
            _, late = await asyncio.wait(tasks, timeout=timeout_s)
            for task in late:
                task.cancel()


def _of_one_topic(
    known: Mapping[TopicPartition, GroupOffset], new: Mapping[TopicPartition, GroupOffset]
) -> dict[TopicPartition, GroupOffset]:
    """Return known and new offsets, without known ones of an earlier topic of the same name."""
    ids = {offset.topic_id for offset in new.values()}
    return {p: o for p, o in known.items() if o.topic_id in ids} | {**new}


class OffsetCommitter:
    """Commits what of a topic has landed in all of its tables, and again while they are idle.

    Nothing is committed of a partition before each of the tables has resolved it.
    """

    def __init__(self, reader: DataReader, tables: Collection[str]) -> None:
        """Commit under the group's name, for a topic with these tables."""
        self._reader = reader
        self._landed: dict[str, dict[TopicPartition, GroupOffset]] = {t: {} for t in tables}
        self._known: dict[TopicPartition, GroupOffset] = {}
        self._compared: set[TopicPartition] = set()
        self._due: dict[TopicPartition, GroupOffset] = {}
        self._changed = asyncio.Event()
        self._failing = False

    def add(self, table: str, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Apply what a table has; forget offsets of an earlier topic of the same name."""
        self._landed[table] = _of_one_topic(self._landed[table], offsets)
        changed = {
            p: each for p, each in least_landed(self._landed.values()).items() if p in offsets
        }
        if changed:
            self._known = _of_one_topic(self._known, changed)
            self._due = _of_one_topic(self._due, changed)
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
                log(OFFSETS_NOT_COMMITTED, partitions=len(due), reason=str(exc))
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
                log(OFFSET_SET_BACK, partition=str(partition), was=was.offset, now=now.offset)


OffsetCommitters = Mapping[str, OffsetCommitter]
"""Of the topics for whose tables this process has the role."""
