"""Claims, fences, writes and resolves: the table is the truth about what has landed.

Each call here goes on until its outcome is known. A write without a verdict settles nothing: the
same batch goes again under the same version, and the stamp in the history decides.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from binwright.core.errors import Fenced, LakeUnavailable, WriteConflict, WriteUnclear
from binwright.core.messages import Fence
from binwright.core.model import Slot, TopicPartition
from binwright.core.ports import Hint, History, Lake, Record
from binwright.core.stamp import (
    Stamp,
    app_id,
    fence_version,
    landed_already,
    resolve,
    same_topic,
    write_version,
)

log = structlog.get_logger()

Rows = Mapping[TopicPartition, Sequence[Record]]
RETRY_S = 1.0
T = TypeVar("T")


@dataclass(slots=True)
class Tables:
    """The tables of a group, as one epoch of one slot writes them."""

    lake: Lake
    group: str
    slot: Slot
    epoch: int
    ids: dict[str, str] = field(default_factory=dict)  # topic -> table id
    topic_ids: dict[str, str | None] = field(default_factory=dict)  # as when we claimed
    versions: dict[str, int] = field(default_factory=dict)  # topic -> our own last commit's
    sequence: int = 0

    async def claim(self, topic: str, topic_id: str | None) -> None:
        """Shut out older epochs of this slot; nothing may be written before.

        Everything said later is about the topic of this id.

        Raises:
            Fenced: A number as high stands already.
            UserError: The table cannot be had.
        """
        self.topic_ids[topic] = topic_id
        self.ids[topic] = await self._read(lambda: self.lake.open(topic))
        number = write_version(self.epoch)
        version = await self._until_known(topic, app_id(self.group, self.slot), number)
        if version is None:
            raise Fenced(
                f"slot {self.slot}: a number as high as epoch {self.epoch} stands in the table of "
                f"{topic}. Either a newer process has this slot, or the metadata topic was made "
                "anew and counts from 0 again: then give the group a new name"
            )
        self.versions[topic] = version

    async def fence(self, topic: str, fence: Fence) -> None:
        """Shut out a dead slot; skipped means that it is shut out already."""
        number = fence_version(fence.number)
        await self._until_known(topic, app_id(self.group, fence.slot), number)
        log.info("fence.raised", topic=topic, slot=fence.slot, number=fence.number)

    async def _until_known(self, topic: str, app: str, number: int) -> int | None:
        """Claim until it commits or is skipped: a conflict, or no word, proves nothing (†)."""
        while True:
            try:
                return await self.lake.claim(topic, app, number)
            except (WriteConflict, WriteUnclear) as exc:
                log.warning("claim.repeated", topic=topic, app=app, reason=str(exc))
                await asyncio.sleep(RETRY_S)

    async def write(self, topic: str, rows: Rows, landed: Mapping[TopicPartition, int]) -> None:
        """Land `rows`, and say in the stamp that everything before `landed` is in the table.

        Raises:
            Fenced: Nothing of this epoch can land any more.
        """
        self.sequence += 1
        stamp = Stamp(
            group=self.group,
            slot=self.slot,
            epoch=self.epoch,
            sequence=self.sequence,
            landed=landed,
            topic_id=self.topic_ids[topic],
        )
        self.versions[topic] = await self._land(topic, rows, stamp)

    async def _land(self, topic: str, rows: Rows, stamp: Stamp) -> int:
        app, number = app_id(self.group, self.slot), write_version(self.epoch, stamp.sequence)
        unclear = False
        while True:
            try:
                version = await self.lake.append(topic, rows, app, number, stamp.encode())
            except (WriteConflict, WriteUnclear) as exc:
                unclear = True
                log.warning("write.unclear", topic=topic, sequence=stamp.sequence, reason=str(exc))
                await asyncio.sleep(RETRY_S)
                continue
            if version is not None:
                return version
            if unclear and (version := await self._landed_already(topic, stamp)) is not None:
                return version
            raise Fenced(
                f"slot {self.slot}: epoch {self.epoch} is shut out of the table of {topic}"
            )

    async def _landed_already(self, topic: str, stamp: Stamp) -> int | None:
        """Return where the own stamp stands: a skipped write proves nothing by itself (†)."""
        history = await self.history(topic, self.versions[topic])
        return landed_already(history.commits, self.group, self.slot, self.epoch, stamp.sequence)

    async def resolve(
        self, partitions: Sequence[TopicPartition], hints: Mapping[TopicPartition, Hint]
    ) -> dict[TopicPartition, int]:
        """Return the next offset to land of these partitions of one topic, where any is known.

        The fences must stand before (†): a dead writer's commit may come late.
        """
        topic = partitions[0].topic
        topic_id = self.topic_ids[topic]
        hints = {
            p: hint
            for p, hint in hints.items()
            if hint.table == self.ids[topic] and same_topic(hint.topic_id, topic_id)
        }
        after = min((hints[p].version if p in hints else -1 for p in partitions), default=-1)
        history = await self.history(topic, after)
        told = {
            p: resolve(p, hints.get(p), history.commits, self.group, topic_id) for p in partitions
        }
        if not history.complete:
            # The log was cleaned up further back than we need to look: ask the rows themselves.
            newest = await self._read(lambda: self.lake.newest(topic, partitions))
            for partition, offset in newest.items():
                told[partition] = max(told[partition] or 0, offset + 1)
        return {p: offset for p, offset in told.items() if offset is not None}

    async def history(self, topic: str, after: int) -> History:
        """Return the table's versions later than `after`, however long that takes."""
        return await self._read(lambda: self.lake.history(topic, after))

    async def _read(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except LakeUnavailable as exc:
                log.warning("lake.unavailable", reason=str(exc))
                await asyncio.sleep(RETRY_S)
