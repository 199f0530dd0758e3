"""The tables that this consumer writes: one task per table, independent of each other."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial

import structlog

from binwright.consumer.decide.writer.requests import WriterConfig
from binwright.consumer.writer.maintenance import MaintenanceConfig, TableMaintenance
from binwright.consumer.writer.table_writer import TableWriter, WriterContext
from binwright.protocol.messages import TableReport
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import ControlTopics, Intake
from binwright.protocol.ports.lake import Lake, Staging

log = structlog.get_logger()

COMMITS_AT_ONCE = 2
"""Concurrent appends of one process: more would make each of them slower, and smaller."""
STARTS_AT_ONCE = 3
"""Tables of one process that are opened, claimed and resolved concurrently: with no limit, fifty
tables that started together landed no row before the last one was resolved."""
STOP_S = 5.0
"""Seconds that a stop waits for the commit in flight; a new writer's claim fences a later one."""
DELETIONS_S = 1.0
"""Seconds that an end waits for staged files to be deleted; the rest is collected by age."""

_Task = asyncio.Task[None]
_Writing = tuple[TableWriter, _Task]


class Writers:
    """Starts and stops writing tables, as the controller commands."""

    def __init__(  # noqa: PLR0913 - the ports and callbacks of all writers
        self,
        *,
        open_lake: Callable[[], Awaitable[Lake]],
        bus: ControlTopics,
        landing_topic: str,
        intake: Intake,
        staging: Staging,
        config: Callable[[str, int], WriterConfig],
        maintenance: MaintenanceConfig,
        on_lost: Callable[[str], None],
        on_writing_stopped: Callable[[frozenset[str]], None],
        on_gap: Callable[[Mapping[TopicPartition, int]], None],
    ) -> None:
        """Prepare; `start` begins to write tables.

        Args:
            open_lake: Called when the first table is to be written; again only if it fails.
            bus: The connection to the control topics.
            landing_topic: The topic with the announcements of staged files.
            intake: Answers queries about data topics and the group's offsets.
            staging: The location of staged files.
            config: Data topic and controller's term -> the writer's settings, with a new writer id
                in each call.
            maintenance: When tables are compacted and vacuumed.
            on_lost: Called with the topic of a table that another writer has claimed.
            on_writing_stopped: Called with the topics whose writing has stopped after `stop`.
            on_gap: Called with what must be read again: partition -> first offset.
        """
        self._open_lake, self._config = open_lake, config
        self._on_lost, self._on_writing_stopped = on_lost, on_writing_stopped
        self._maintenance = TableMaintenance(maintenance)
        self._lake: Lake | None = None
        self._opening = asyncio.Lock()
        self._context = WriterContext(
            open_lake=self._shared_lake,
            bus=bus,
            landing_topic=landing_topic,
            intake=intake,
            staging=staging,
            maintenance=self._maintenance,
            append_permits=asyncio.Semaphore(COMMITS_AT_ONCE),
            start_permits=asyncio.Semaphore(STARTS_AT_ONCE),
            on_gap=on_gap,
        )
        self._writing: dict[str, _Writing] = {}
        self._ending: dict[str, _Task] = {}

    def start(self, topics: Collection[str], term: int) -> None:
        """Write these tables, as the controller of this term commands."""
        for topic in topics:
            if topic not in self._writing:
                writer = TableWriter(topic, self._context, partial(self._config, topic, term))
                self._writing[topic] = writer, asyncio.create_task(self._write(topic, writer))

    def stop(self, topics: Collection[str]) -> None:
        """Stop writing after the commit in flight, then call `on_writing_stopped`."""
        for topic in topics:
            writing, before = self._writing.pop(topic, None), self._ending.get(topic)
            if writing is not None:
                writing[0].stopping = True
            self._ending[topic] = asyncio.create_task(self._end(topic, writing, before))

    def reports(self) -> dict[str, TableReport]:
        """Return the report of each table that is written here."""
        return {topic: writer.report() for topic, (writer, _) in sorted(self._writing.items())}

    async def run(self) -> None:
        """Maintain the tables until cancelled, then abandon all of them."""
        try:
            await self._maintenance.run()
        finally:
            tasks = {task for _, task in self._writing.values()} | {*self._ending.values()}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    # --- inside ----------------------------------------------------------------------------------

    async def _shared_lake(self) -> Lake:
        async with self._opening:
            if self._lake is None:
                self._lake = await self._open_lake()
            return self._lake

    async def _write(self, topic: str, writer: TableWriter) -> None:
        if (before := self._ending.get(topic)) is not None:
            await asyncio.wait({before})
        try:
            lost = await writer.run()
        finally:
            await writer.end(DELETIONS_S)
        if lost and self._writing.get(topic, (None,))[0] is writer:
            del self._writing[topic]
            self._on_lost(topic)

    async def _end(self, topic: str, writing: _Writing | None, before: _Task | None) -> None:
        """Wait for the commit in flight, then abandon it: whether it lands is unknown."""
        if before is not None:
            await asyncio.wait({before})
        if writing is not None:
            writer, task = writing
            if writer.committing:
                _, late = await asyncio.wait({task}, timeout=STOP_S)
                if late:
                    log.warning("commit.abandoned", table=topic, waited_s=STOP_S)
            task.cancel()
            await asyncio.wait({task})
        if self._ending.get(topic) is asyncio.current_task():
            del self._ending[topic]
        self._on_writing_stopped(frozenset({topic}))
