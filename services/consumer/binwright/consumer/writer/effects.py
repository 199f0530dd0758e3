"""Side effects of a table's writer: deletes files, commits offsets, reports gaps, logs."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

import structlog

from binwright.consumer.decide.writer.requests import (
    CommitOffsets,
    DeleteFiles,
    Effect,
    Log,
    ReadAnnouncements,
    RereadPartitions,
)
from binwright.consumer.writer.after_commit import Deletions, OffsetCommitter
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset, Intake
from binwright.protocol.ports.lake import Staging

log = structlog.get_logger()


class Effects:
    """Carries out the effects of one table's writer; no commit waits for them."""

    def __init__(
        self,
        topic: str,
        intake: Intake,
        staging: Staging,
        on_gap: Callable[[Mapping[TopicPartition, int]], None],
    ) -> None:
        self._topic, self._on_gap = topic, on_gap
        self._deletions = Deletions(staging, topic)
        self._offsets = OffsetCommitter(intake)
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
                    self._on_gap(self._by_partition(committed))
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
