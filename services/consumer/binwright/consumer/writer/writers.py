"""The tables that this consumer writes: one task each, and none of them ends another."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial

import structlog

from binwright.consumer.writer.housekeeping import Housekeeper, HousekeepingRules
from binwright.consumer.writer.table_writer import TableWriter, World
from binwright.core.messages import TableReport
from binwright.core.model import TopicPartition
from binwright.core.ports import Bus, Intake, Lake, Staging
from binwright.core.writer.requests import WriterRules

log = structlog.get_logger()

COMMITS_AT_ONCE = 2
"""Appends of one process at a time: more would only make each of them slower, and smaller."""
STARTS_AT_ONCE = 3
"""Tables of one process that are opened, claimed and resolved at a time: of fifty that began
together, none landed a row before all of them could."""
STOP_S = 5.0
"""How long a stop waits for the commit in flight; a new writer's claim shuts out what is left."""
DELETING_S = 1.0
"""How long an end waits for staged files to be deleted; the others are collected by age."""

_Task = asyncio.Task[None]
_Writing = tuple[TableWriter, _Task]


class Writers:
    """Starts and stops writing tables, as the controller says."""

    def __init__(  # noqa: PLR0913 - what a writer needs of the world, and whom it tells
        self,
        *,
        open_lake: Callable[[], Awaitable[Lake]],
        bus: Bus,
        landing_topic: str,
        intake: Intake,
        staging: Staging,
        rules: Callable[[str, int], WriterRules],
        housekeeping: HousekeepingRules,
        on_lost: Callable[[str], None],
        on_written: Callable[[frozenset[str]], None],
        on_gap: Callable[[Mapping[TopicPartition, int]], None],
    ) -> None:
        """Write nothing yet.

        Args:
            open_lake: Called once, when the first table is to be written; again if it fails.
            bus: Where the landing topic is.
            landing_topic: Its name.
            intake: Knows the data topics and the group's offsets.
            staging: Where staged files are.
            rules: Topic and the controller's term -> rules with a writer id that is new each time.
            housekeeping: When files are compacted and deleted.
            on_lost: Told that another writer has this table.
            on_written: Told that these are written no more, as `stop` asked for.
            on_gap: Told what must be read again: partition -> from where.
        """
        self._open_lake, self._rules = open_lake, rules
        self._on_lost, self._on_written = on_lost, on_written
        self._housekeeper = Housekeeper(housekeeping)
        self._lake: Lake | None = None
        self._opening = asyncio.Lock()
        self._world = World(
            open_lake=self._opened,
            bus=bus,
            landing_topic=landing_topic,
            intake=intake,
            staging=staging,
            housekeeper=self._housekeeper,
            turns=asyncio.Semaphore(COMMITS_AT_ONCE),
            starts=asyncio.Semaphore(STARTS_AT_ONCE),
            on_gap=on_gap,
        )
        self._writing: dict[str, _Writing] = {}
        self._ending: dict[str, _Task] = {}

    def start(self, topics: Collection[str], term: int) -> None:
        """Be the writer of these tables, as the controller of this term grants."""
        for topic in topics:
            if topic not in self._writing:
                writer = TableWriter(topic, self._world, partial(self._rules, topic, term))
                self._writing[topic] = writer, asyncio.create_task(self._write(topic, writer))

    def stop(self, topics: Collection[str]) -> None:
        """Write these no more once the commit in flight has ended; then `on_written` is told."""
        for topic in topics:
            writing, before = self._writing.pop(topic, None), self._ending.get(topic)
            if writing is not None:
                writing[0].stopping = True
            self._ending[topic] = asyncio.create_task(self._end(topic, writing, before))

    def reports(self) -> dict[str, TableReport]:
        """Return how each table is that is written here."""
        return {topic: writer.report() for topic, (writer, _) in sorted(self._writing.items())}

    async def run(self) -> None:
        """Keep the tables' house, for ever; when cancelled, abandon all tables."""
        try:
            await self._housekeeper.run()
        finally:
            tasks = {task for _, task in self._writing.values()} | {*self._ending.values()}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    # --- inside ----------------------------------------------------------------------------------

    async def _opened(self) -> Lake:
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
            await writer.end(DELETING_S)
        if lost and self._writing.get(topic, (None,))[0] is writer:
            del self._writing[topic]
            self._on_lost(topic)

    async def _end(self, topic: str, writing: _Writing | None, before: _Task | None) -> None:
        """Wait for the commit in flight, then abandon it: it may still land, or may not."""
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
        self._on_written(frozenset({topic}))
