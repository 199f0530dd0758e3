"""Work that follows a commit, in the background: deletes files, commits offsets to Kafka."""

import asyncio
from collections.abc import Collection, Mapping

import structlog

from binwright.protocol.errors import BrokerUnavailable, StagingUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset, Intake
from binwright.protocol.ports.lake import Staging

log = structlog.get_logger()

TRIES, RETRY_S = 4, 5.0
AT_ONCE = 500  # files
REFRESH_S = 3600.0
"""Offsets are committed again so often: Kafka deletes them days after their last commit."""


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

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._known: dict[TopicPartition, GroupOffset] = {}
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
            await self._intake.commit(due)
        except (BrokerUnavailable, TopicMissing) as exc:
            self._due = {**due, **self._due}
            if not self._failing:
                log.warning("offsets.not_committed", partitions=len(due), reason=str(exc))
            self._failing = True
        else:
            self._failing = False
