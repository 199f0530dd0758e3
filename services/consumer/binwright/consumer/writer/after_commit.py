"""What follows a commit and holds nothing up: files deleted, offsets told to Kafka."""

import asyncio
from collections.abc import Collection, Mapping

import structlog

from binwright.core.errors import BrokerUnavailable, StagingUnavailable, TopicMissing
from binwright.core.model import TopicPartition
from binwright.core.ports import GroupOffset, Intake, Staging

log = structlog.get_logger()

TRIES, RETRY_S = 4, 5.0
AT_ONCE = 500  # files
REFRESH_S = 3600.0
"""Kafka forgets a group's offsets some days after they were committed last."""


class Deletions:
    """Deletes staged files of one topic; those that cannot be are collected by age, by others."""

    def __init__(self, staging: Staging, topic: str) -> None:
        self._staging, self._topic = staging, topic
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, files: Collection[str]) -> None:
        """Delete these in the background."""
        ordered = sorted(files)
        for begin in range(0, len(ordered), AT_ONCE):
            task = asyncio.create_task(self._delete(ordered[begin : begin + AT_ONCE]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _delete(self, files: Collection[str]) -> None:
        for tried in range(1, TRIES + 1):
            try:
                await self._staging.delete(self._topic, files)
            except StagingUnavailable as exc:
                last = tried == TRIES
                then = "left to collection by age" if last else "tried again"
                facts = {"table": self._topic, "files": len(files), "reason": str(exc)}
                log.warning("deletion.failed", then=then, **facts)
                if not last:
                    await asyncio.sleep(RETRY_S * tried)
            else:
                return

    async def end(self, patience_s: float) -> None:
        """Wait until all are deleted, for so long at most."""
        if tasks := set(self._tasks):
            _, late = await asyncio.wait(tasks, timeout=patience_s)
            for task in late:
                task.cancel()


class Offsets:
    """Commits what has landed under the group's name: newest first, again while a table idles."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._known: dict[TopicPartition, GroupOffset] = {}
        self._due: dict[TopicPartition, GroupOffset] = {}
        self._changed = asyncio.Event()
        self._failing = False

    def add(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Commit these soon; what is known of a topic before it was made anew is forgotten."""
        ids = {offset.topic_id for offset in offsets.values()}
        self._known = {p: o for p, o in self._known.items() if o.topic_id in ids} | {**offsets}
        self._due = {p: o for p, o in self._due.items() if o.topic_id in ids} | {**offsets}
        self._changed.set()

    async def run(self) -> None:
        """Commit what is due, for ever."""
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
