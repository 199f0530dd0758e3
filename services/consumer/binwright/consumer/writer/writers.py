"""The topics whose tables this consumer writes, independent of each other."""

import asyncio
from collections.abc import Collection

import structlog

from binwright.consumer.events import Emit, TableLost, WritingStopped
from binwright.consumer.writer.context import WriterContext
from binwright.consumer.writer.topic_writers import TopicWriters
from binwright.protocol.messages import TableReport

log = structlog.get_logger()

STOP_S = 5.0
"""Seconds that a stop waits for the commit in flight; a new writer's claim fences a later one."""

_Task = asyncio.Task[None]
_Writing = tuple[TopicWriters, _Task]


class Writers:
    """Starts and stops writing tables, as the controller commands."""

    def __init__(self, context: WriterContext, emit: Emit) -> None:
        """Prepare; `start` begins to write tables."""
        self._context, self._emit = context, emit
        self._writing: dict[str, _Writing] = {}
        self._ending: dict[str, _Task] = {}
        self._stopped: dict[str, TopicWriters] = {}  # whose commits in flight have not ended

    def start(self, topics: Collection[str]) -> None:
        """Write the tables of these topics."""
        for topic in topics:
            if topic not in self._writing:
                writers = TopicWriters(topic, self._context, self._emit)
                self._writing[topic] = writers, asyncio.create_task(self._write(topic, writers))

    def stop(self, topics: Collection[str]) -> None:
        """Stop writing after the commit in flight, then emit `WritingStopped`."""
        for topic in topics:
            writing, before = self._writing.pop(topic, None), self._ending.get(topic)
            if writing is not None:
                writing[0].stop()
                self._stopped[topic] = writing[0]
            self._ending[topic] = asyncio.create_task(self._end(topic, writing, before))

    def reports(self) -> dict[str, dict[str, TableReport]]:
        """Return the reports of each topic's tables, until the last commit here has ended."""
        writing = {topic: writers for topic, (writers, _) in self._writing.items()}
        return {topic: w.reports() for topic, w in sorted((self._stopped | writing).items())}

    async def run(self) -> None:
        """Maintain the tables until cancelled, then abandon all of them."""
        try:
            await self._context.maintenance.run()
        finally:
            tasks = {task for _, task in self._writing.values()} | {*self._ending.values()}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    # --- inside ----------------------------------------------------------------------------------

    async def _write(self, topic: str, writers: TopicWriters) -> None:
        if (before := self._ending.get(topic)) is not None:
            await asyncio.wait({before})
        lost = await writers.run()
        if lost and self._writing.get(topic, (None,))[0] is writers:
            del self._writing[topic]
            self._emit(TableLost(topic))

    async def _end(self, topic: str, writing: _Writing | None, before: _Task | None) -> None:
        """Wait for the commit in flight, then abandon it: whether it lands is unknown."""
        if before is not None:
            await asyncio.wait({before})
        if writing is not None:
            writers, task = writing
            if writers.committing:
                _, late = await asyncio.wait({task}, timeout=STOP_S)
                if late:
                    log.warning("commit.abandoned", table=topic, waited_s=STOP_S)
            task.cancel()
            await asyncio.wait({task})
        if self._ending.get(topic) is asyncio.current_task():
            del self._ending[topic]
            self._stopped.pop(topic, None)
        self._emit(WritingStopped(topic))
