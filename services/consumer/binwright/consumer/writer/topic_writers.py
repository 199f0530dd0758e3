"""The writers of one topic's tables: they begin together, and end together."""

import asyncio

from binwright.consumer.events import Emit
from binwright.consumer.writer.context import WriterContext
from binwright.consumer.writer.effects import OffsetCommitter
from binwright.consumer.writer.table_writer import TableWriter
from binwright.protocol.errors import TableRefused
from binwright.protocol.messages import TableReport

DELETIONS_S = 1.0
"""Seconds that an end waits for staged files to be deleted; the rest is collected by age."""


class TopicWriters:
    """Writes all tables of a topic, each on its own: what holds one of them holds no other.

    One process has the role for all: it knows what has landed in each (`OffsetCommitter`).
    """

    def __init__(self, topic: str, context: WriterContext, emit: Emit) -> None:
        """Prepare to write the tables that the settings give the topic; `run` begins."""
        self._topic, self._fault = topic, ""
        self._tasks: dict[asyncio.Task[bool], TableWriter] = {}
        try:
            targets = context.targets(topic)
        except TableRefused as exc:
            targets, self._fault = (), str(exc)
        self._offsets = OffsetCommitter(context.reader, [target.name for target in targets])
        self._writers = {
            target.name: TableWriter(target, context, self._offsets, emit) for target in targets
        }

    @property
    def committing(self) -> bool:
        """Whether a call that may change a table is in progress."""
        return any(writer.committing for writer in self._writers.values())

    def reports(self) -> dict[str, TableReport]:
        """Return each table's report, by its name."""
        if self._fault:
            return {self._topic: TableReport(state="refused", committed={}, fault=self._fault)}
        return {name: writer.report() for name, writer in self._writers.items()}

    def stop(self) -> None:
        """Make `run` return once the commits in progress have ended."""
        for task, writer in self._tasks.items():
            writer.stopping = True
            if not writer.committing:
                task.cancel()

    async def run(self) -> bool:
        """Write the tables; return True once another writer claimed one, False if stopped."""
        if self._fault:
            await asyncio.Event().wait()  # for a restart with other settings, or a stop
        offsets = asyncio.create_task(self._offsets.run())
        self._tasks = {asyncio.create_task(w.run()): w for w in self._writers.values()}
        left, lost = set(self._tasks), False
        try:
            while left and not lost:
                done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                lost = any(not task.cancelled() and task.result() for task in done)
        finally:
            offsets.cancel()
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)
            await asyncio.gather(*(writer.end(DELETIONS_S) for writer in self._writers.values()))
        return lost
