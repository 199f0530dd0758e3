"""What all table writers of a process share."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from binwright.consumer.decide.land.chain import MOST_FILES
from binwright.consumer.decide.land.states import WriterConfig
from binwright.consumer.land.announcements import LandingTopic
from binwright.consumer.land.backfill import EarlierStager
from binwright.consumer.land.maintenance import TableMaintenance
from binwright.consumer.land.orders import TableOrders
from binwright.consumer.land.replay import BadRecordDecoder
from binwright.consumer.stage.timings import Timings
from binwright.protocol.ports.kafka import ControlTopics, DataReader
from binwright.tables.ports import Lake, Staging
from binwright.tables.targets import Target

COMMITS_AT_ONCE = 2
"""Concurrent appends of one process on one Spark server: more would make each of them slower, and
smaller."""
STARTS_AT_ONCE = 3
"""Tables of one process and server that are opened, claimed and resolved concurrently: with no
limit, fifty tables that started together landed no row before the last one was resolved."""
MOST_PENDING = 2 * MOST_FILES
"""Announcements of one table in memory, as long as some of them join: what two commits take. Each
is 350 bytes and 240 for each of its partitions."""


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


class Permit:
    """One permit of a semaphore; acquiring and releasing it twice does nothing."""

    def __init__(self, semaphore: asyncio.Semaphore) -> None:
        self._semaphore, self._acquired = semaphore, False

    async def acquire(self) -> None:
        """Wait for a permit, unless this one is acquired."""
        if not self._acquired:
            await self._semaphore.acquire()
            self._acquired = True

    def release(self) -> None:
        """Give the permit back, if it is acquired."""
        if self._acquired:
            self._semaphore.release()
            self._acquired = False


class Permits:
    """Permits of one kind for each Spark server: a server that hangs keeps none of another's."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._semaphores: dict[str, asyncio.Semaphore] = {}

    def of(self, server: str) -> asyncio.Semaphore:
        """Return the permits of a server."""
        return self._semaphores.setdefault(server, asyncio.Semaphore(self._at_once))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterContext:
    """The ports, settings and limits of the table writers of a process."""

    lake: SharedLake
    targets: Callable[[str], Collection[Target]]  # of a data topic: its tables
    server: Callable[[str], str]  # of a table's name: the Spark server that writes it
    append_limit_s: float  # after which an append gives its permit back
    bus: ControlTopics
    landing_topic: str  # with the announcements of staged files
    announcements: LandingTopic
    orders: TableOrders  # of people, about tables
    reader: DataReader  # for queries about data topics and the group's offsets
    staging: Staging
    config: Callable[[Target], WriterConfig]  # of a table, with a new writer id in each call
    maintenance: TableMaintenance
    bad_records: BadRecordDecoder
    earlier: EarlierStager
    timings: Timings = field(default_factory=Timings)
    append_permits: Permits = field(default_factory=lambda: Permits(COMMITS_AT_ONCE))
    start_permits: Permits = field(default_factory=lambda: Permits(STARTS_AT_ONCE))
