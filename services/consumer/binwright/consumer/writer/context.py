"""What all table writers of a process share."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from binwright.consumer.decide.writer.states import WriterConfig
from binwright.consumer.writer.maintenance import TableMaintenance
from binwright.protocol.ports.kafka import ControlTopics, DataReader
from binwright.protocol.ports.lake import Lake, Staging

COMMITS_AT_ONCE = 2
"""Concurrent appends of one process: more would make each of them slower, and smaller."""
STARTS_AT_ONCE = 3
"""Tables of one process that are opened, claimed and resolved concurrently: with no limit, fifty
tables that started together landed no row before the last one was resolved."""


class SharedLake:
    """The lake of all tables: opened when the first one is to be written, again if that failed."""

    def __init__(self, open_lake: Callable[[], Awaitable[Lake]]) -> None:
        self._open_lake = open_lake
        self._lake: Lake | None = None
        self._opening = asyncio.Lock()

    async def get(self) -> Lake:
        """Return the lake; raise what opening it raises."""
        async with self._opening:
            if self._lake is None:
                self._lake = await self._open_lake()
            return self._lake


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterContext:
    """The ports, settings and limits of the table writers of a process."""

    lake: SharedLake
    bus: ControlTopics
    landing_topic: str  # with the announcements of staged files
    reader: DataReader  # for queries about data topics and the group's offsets
    staging: Staging
    config: Callable[[str], WriterConfig]  # of a data topic, with a new writer id in each call
    maintenance: TableMaintenance
    append_permits: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(COMMITS_AT_ONCE)
    )
    start_permits: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(STARTS_AT_ONCE)
    )
