"""Maintenance by a table's writer, concurrent with its commits: compaction, old rows, vacuum.

A process runs one job at a time on each Spark server: one that hangs holds up the tables of its own
server. A failed job is logged and retried later; it stops nothing else.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from zlib import crc32

from binwright.consumer.decide.turns import until_turn_s
from binwright.protocol.errors import ExternalError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log
from binwright.tables.ports import Compaction, Lake, Table

HOUSEKEEPING_FAILED = LogEvent.error(
    "housekeeping.failed", "The maintenance of tables failed unexpectedly; it is tried again."
)
HOUSEKEEPING_INSPECT_FAILED = LogEvent.warning(
    "housekeeping.inspect_failed",
    "A table's files could not be listed, so it is neither compacted nor vacuumed now.",
)
COMPACTION_FAILED = LogEvent.warning(
    "compaction.failed", "Merging a table's small files failed; it is tried again later."
)
TABLE_COMPACTED = LogEvent.info("table.compacted", "Small files of a table were merged.")
CLUSTERING_FAILED = LogEvent.warning(
    "clustering.failed", "Sorting a table's rows by `cluster_by` failed; it is tried again later."
)
TABLE_CLUSTERED = LogEvent.info(
    "table.clustered", "The rows of a table's files were sorted by `cluster_by`."
)
VACUUM_FAILED = LogEvent.warning(
    "vacuum.failed", "Deleting a table's old files failed; it is tried again later."
)
TABLE_VACUUMED = LogEvent.info(
    "table.vacuumed", "Files that no kept version of a table needs were deleted."
)
EXPIRY_FAILED = LogEvent.warning(
    "expiry.failed", "Old rows could not be deleted from a table; tried before its next vacuum."
)
TABLE_EXPIRED = LogEvent.info(
    "table.expired", "Rows older than `keep_days` were deleted from a table."
)

EARLIEST = 0.6  # of `compact_files`, at which a table is compacted


@dataclass(frozen=True, slots=True)
class MaintenanceConfig:
    """When a table is compacted and vacuumed."""

    compact_files: int = 0  # commits with rows (about one file each), at most; 0: never
    vacuum_interval_s: float = 0.0  # 0: never
    target_file_bytes: int = 128_000_000
    cluster_bytes: int = 4_000_000_000  # landed in a clustered table until it is sorted again

    @property
    def worth_sorting_bytes(self) -> int:
        """Return how much must have landed for a vacuum to sort it first."""
        return self.cluster_bytes // 16


def compaction_interval(name: str, compact_files: int) -> int:
    """Return after how many commits with rows a table is compacted.

    Tables differ: those that began together would all be compacted together, by one consumer each,
    and leave the server no time for commits.
    """
    share = crc32(name.encode()) % 1_000 / 1_000
    return max(round((EARLIEST + share * (1 - EARLIEST)) * compact_files), 1)


@dataclass(slots=True, eq=False)
class _Table:
    """The maintenance state of one table since it was claimed."""

    name: str
    server: str  # that writes it
    lake: Lake
    vacuum_at: float
    served_at: float  # start of its last job
    compact_after: int  # small files
    clustered: bool  # by columns
    keep_s: float  # as of `Table`
    unsorted_bytes: int  # landed since its files were sorted
    small_files: int = 0  # since the last compaction
    inspected: bool = False  # files of earlier writers are counted


class TableMaintenance:
    """Compacts and vacuums the tables that this process writes."""

    def __init__(
        self,
        config: MaintenanceConfig,
        server: Callable[[str], str],
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        """Maintain by `config`; `server` returns the Spark server of a table."""
        self._config, self._server, self._wall_s = config, server, wall_s
        self._tables: dict[str, _Table] = {}
        self._busy: set[str] = set()  # servers that run a job
        self._changed = asyncio.Event()

    def claimed(self, table: Table, lake: Lake) -> None:
        """Record that this process writes the table from now on; its files are not counted yet."""
        name = table.name
        now = asyncio.get_running_loop().time()
        interval = compaction_interval(name, self._config.compact_files)
        vacuum_at = now + self._until_vacuum_s(name)
        # What earlier writers left unsorted is not known: the first vacuum sorts.
        unsorted = self._config.worth_sorting_bytes
        clustered = bool(table.cluster_by)
        self._tables[name] = _Table(
            name,
            self._server(name),
            lake,
            vacuum_at,
            now,
            interval,
            clustered,
            table.keep_s,
            unsorted,
        )
        self._changed.set()

    def committed(self, name: str, size: int) -> None:
        """Record a commit of `size` staged bytes."""
        if (table := self._tables.get(name)) is not None:
            table.small_files += 1
            table.unsorted_bytes += size
            self._changed.set()

    def released(self, name: str) -> None:
        """Record that this process no longer writes the table, or that a person paused it."""
        self._tables.pop(name, None)

    def serves(self, name: str) -> bool:
        """Return whether the table's jobs are run."""
        return name in self._tables

    async def run(self) -> None:
        """Run due jobs, one after the other on each server, until cancelled."""
        async with asyncio.TaskGroup() as jobs:
            while True:
                self._changed.clear()
                for server in sorted({table.server for table in self._tables.values()}):
                    if server not in self._busy and (job := self._due(server)) is not None:
                        self._busy.add(server)
                        jobs.create_task(self._run(server, job))
                await self._idle()

    async def _run(self, server: str, job: Awaitable[None]) -> None:
        try:
            await job
        except Exception:  # noqa: BLE001 - a bug: landing must go on
            log(HOUSEKEEPING_FAILED, exc_info=True)
        finally:
            self._busy.discard(server)
            self._changed.set()

    def _due(self, server: str) -> Awaitable[None] | None:
        """Return a server's next due job, None if none is; its table served longest ago first."""
        now = asyncio.get_running_loop().time()
        own = (table for table in self._tables.values() if table.server == server)
        for table in sorted(own, key=lambda t: (t.served_at, t.name)):
            if self._config.compact_files and not table.inspected:
                return self._inspect(table)
            if self._config.compact_files and table.small_files >= table.compact_after:
                return self._compact(table)
            if table.clustered and table.unsorted_bytes >= self._config.cluster_bytes:
                return self._cluster(table)
            if self._config.vacuum_interval_s and now >= table.vacuum_at:
                return self._vacuum(table)
        return None

    async def _idle(self) -> None:
        """Wait for a change, or until a vacuum is due on a server that is idle."""
        at = None
        if self._config.vacuum_interval_s:
            idle = (t.vacuum_at for t in self._tables.values() if t.server not in self._busy)
            at = min(idle, default=None)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(at):
                await self._changed.wait()

    # --- jobs ------------------------------------------------------------------------------------

    async def _inspect(self, table: _Table) -> None:
        """Count the small files that earlier writers left: those beyond what its bytes need."""
        table.inspected = True
        try:
            files = await table.lake.files(table.name)
        except ExternalError as exc:
            log(HOUSEKEEPING_INSPECT_FAILED, table=table.name, reason=str(exc))
            return
        table.small_files += max(files.count - 1 - files.bytes // self._config.target_file_bytes, 0)

    async def _compact(self, table: _Table) -> None:
        """Merge small files; after a failure, retry as many commits later."""
        table.small_files = 0
        await self._rewrite(table, table.lake.compact, (COMPACTION_FAILED, TABLE_COMPACTED))

    async def _cluster(self, table: _Table) -> None:
        """Sort what has landed; after a failure, retry when as much has landed again."""
        table.unsorted_bytes = 0
        await self._rewrite(table, table.lake.cluster, (CLUSTERING_FAILED, TABLE_CLUSTERED))

    async def _rewrite(
        self,
        table: _Table,
        rewrite: Callable[[str], Awaitable[Compaction]],
        events: tuple[LogEvent, LogEvent],
    ) -> None:
        """Rewrite files, and log by one of these events that it failed, or what it did."""
        failed, succeeded = events
        began = self._start_job(table)
        try:
            done = await rewrite(table.name)
        except ExternalError as exc:
            log(failed, table=table.name, reason=str(exc))
            return
        took_s = round(asyncio.get_running_loop().time() - began, 1)
        counts = {"files_before": done.removed, "files_after": done.added}
        log(succeeded, table=table.name, **counts, took_s=took_s)

    async def _vacuum(self, table: _Table) -> None:
        """Delete unreferenced files; after a failure, retry one interval later.

        First delete old rows, whose files are then unreferenced, and sort what a slow table has,
        which may never be enough to be sorted for.
        """
        if table.keep_s:
            await self._expire(table)
        if table.clustered and table.unsorted_bytes >= self._config.worth_sorting_bytes:
            await self._cluster(table)
        began = self._start_job(table)
        half_s = self._config.vacuum_interval_s / 2
        table.vacuum_at = began + half_s + self._until_vacuum_s(table.name, half_s)
        try:
            await table.lake.vacuum(table.name)
        except ExternalError as exc:
            log(VACUUM_FAILED, table=table.name, reason=str(exc))
            return
        took_s = round(asyncio.get_running_loop().time() - began, 1)
        log(TABLE_VACUUMED, table=table.name, took_s=took_s)

    async def _expire(self, table: _Table) -> None:
        """Delete old rows; after a failure, retry before the next vacuum."""
        began = self._start_job(table)
        try:
            rows = await table.lake.expire(table.name, table.keep_s)
        except ExternalError as exc:
            log(EXPIRY_FAILED, table=table.name, reason=str(exc))
            return
        took_s = round(asyncio.get_running_loop().time() - began, 1)
        log(TABLE_EXPIRED, table=table.name, rows=rows, took_s=took_s)

    def _until_vacuum_s(self, name: str, later_s: float = 0.0) -> float:
        """Return the time from `later_s` on to when this table is vacuumed next, s.

        Each table has its own time of day, whoever writes it then: how long a consumer keeps the
        role does not matter.
        """
        if not (interval_s := self._config.vacuum_interval_s):
            return 0.0
        return until_turn_s(name, interval_s, self._wall_s() + later_s)

    @staticmethod
    def _start_job(table: _Table) -> float:
        table.served_at = asyncio.get_running_loop().time()
        return table.served_at
