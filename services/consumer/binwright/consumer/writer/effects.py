"""What a table's writer causes beside its requests: files deleted, offsets told, gaps, logs."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

import structlog

from binwright.consumer.writer.after_commit import Deletions, Offsets
from binwright.core.model import TopicPartition
from binwright.core.ports import GroupOffset, Intake, Staging
from binwright.core.writer import requests as machine
from binwright.core.writer.requests import Delete, Effect, Log, ReadAgain

log = structlog.get_logger()


class Effects:
    """Carries out the effects of one table's writer; none of them holds up a commit."""

    def __init__(
        self,
        topic: str,
        intake: Intake,
        staging: Staging,
        on_gap: Callable[[Mapping[TopicPartition, int]], None],
    ) -> None:
        self._topic, self._on_gap = topic, on_gap
        self._deletions = Deletions(staging, topic)
        self._offsets = Offsets(intake)
        self._committing: asyncio.Task[None] | None = None

    def carry_out(self, effects: Iterable[Effect], topic_id: str | None) -> int | None:
        """Do all of it; return from where announcements are to be read, if they are.

        Args:
            effects: In their order.
            topic_id: Which topic of this name the offsets are of.
        """
        begin = None
        for effect in effects:
            match effect:
                case Delete(files=files):
                    self._deletions.add(files)
                case machine.Offsets(committed=committed):
                    self._tell_kafka(committed, topic_id)
                case ReadAgain(committed=committed):
                    log.warning("rows.missing", table=self._topic, read_again_from=committed)
                    self._on_gap(self._named(committed))
                case Log(event=event, facts=facts, fault=fault):
                    (log.error if fault else log.info)(event, table=self._topic, **facts)
                case machine.ReadAnnouncements(offset=offset):
                    begin = offset
        return begin

    def _tell_kafka(self, committed: Mapping[int, int], topic_id: str | None) -> None:
        offsets = {p: GroupOffset(o, topic_id) for p, o in self._named(committed).items()}
        self._offsets.add(offsets)
        if self._committing is None:
            self._committing = asyncio.create_task(self._offsets.run())

    def _named(self, offsets: Mapping[int, int]) -> dict[TopicPartition, int]:
        return {TopicPartition(self._topic, p): offset for p, offset in offsets.items()}

    async def end(self, patience_s: float) -> None:
        """Let files be deleted for so long at most, then stop."""
        if self._committing is not None:
            self._committing.cancel()
        await self._deletions.end(patience_s)
