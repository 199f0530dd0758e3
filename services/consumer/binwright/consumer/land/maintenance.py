"""Maintenance by a table's writer, beside its commits: its name, compaction, old rows, vacuum.

A process runs one job of files at a time on each Spark server, and one of names: one that hangs
holds up jobs of its kind, of its own server's tables. A failed job is logged and retried later; it
stops nothing else.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Literal

from binwright.consumer.decide.land.compaction import (
    CompactionConfig,
    Mergeable,
    is_due,
    mergeable,
    next_portion,
    retry_after_s,
)
from binwright.consumer.decide.turns import until_turn_s
from binwright.protocol.errors import ExternalError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metadata import TableCompaction, TableRegistration
from binwright.runtime.backoff import until_set
from binwright.runtime.logs import log
from binwright.runtime.settings.consumer import LONGEST_WORK_S
from binwright.tables.ports import Batch, Compaction, Lake, Table

HOUSEKEEPING_FAILED = LogEvent.error(
    "housekeeping.failed", "The maintenance of tables failed unexpectedly; it is tried again."
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
TABLE_REGISTERED = LogEvent.info(
    "table.registered", "A table has its name in the catalog, by `register_as`."
)
REGISTRATION_FAILED = LogEvent.warning(
    "registration.failed",
    "A table could not be registered in the catalog; it lands, and it is tried again later.",
)

ERASE_MARGIN_S = LONGEST_WORK_S
"""Behind the time at which rows that were erased may go: a compaction that had read them may have
written a file after they went, and lost; clocks differ, too, and Delta asks another."""
ERASE_RETRY_S = 600.0
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.01, 86_400.0

JobsOf = Literal["files", "names"]


@dataclass(frozen=True, slots=True)
class MaintenanceConfig:
    """When tables are compacted, sorted and vacuumed."""

    compaction: CompactionConfig = field(default_factory=CompactionConfig)
    vacuum_interval_s: float = 0.0  # 0: never
    cluster_bytes: int = 4_000_000_000  # landed in a clustered table until it is sorted again

    @property
    def worth_sorting_bytes(self) -> int:
        """Return how much must have landed for a vacuum to sort it first."""
        return self.cluster_bytes // 16


@dataclass(slots=True, eq=False, kw_only=True)
class _Table:
    """The maintenance state of one table since it was claimed."""

    name: str
    server: str  # that writes it
    lake: Lake
    vacuum_at: float
    served_at: float  # start of its last job of files
    decoded: bool  # its values are in columns
    clustered: bool  # by columns
    keep_s: float  # as of `Table`
    unsorted_bytes: int  # landed since its files were sorted
    register_as: str  # as of `Table`
    erased_until_s: set[float] = field(default_factory=set)
    """Wall clock, when rows that were erased may leave older versions; also of what is done."""
    erase_at: list[float] = field(default_factory=list)  # when that is to be done, monotonic
    registered: bool = False
    register_at: float = 0.0  # after a failure
    refusals: int = 0  # of registering it, in a row
    refusal: str = ""  # the last one
    small: Mergeable = field(default_factory=Mergeable)  # since it was listed
    listed: bool = False  # its log was asked for small files since it was claimed, or compacted
    begun: bool = False  # to merge a portion of what is due
    compact_at: float = 0.0  # after a failure
    failures: int = 0  # of compactions, in a row
    fault: str = ""  # of the last one
    rewritten: Compaction = field(default_factory=partial(Compaction, 0, 0))  # merged, or sorted
    rewriting_s: float = 0.0


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
        self._busy: set[tuple[str, JobsOf]] = set()  # servers that run a job of that kind
        self._changed = asyncio.Event()

    def claimed(self, table: Table, lake: Lake) -> None:
        """Record that this process writes the table from now on; its files are not listed yet."""
        now = asyncio.get_running_loop().time()
        self._tables[table.name] = _Table(
            name=table.name,
            server=self._server(table.name),
            lake=lake,
            vacuum_at=now + self._until_vacuum_s(table.name),
            served_at=now,
            decoded=table.columns is not None,
            clustered=bool(table.cluster_by),
            keep_s=table.keep_s,
            # What earlier writers left unsorted is not known: the first vacuum sorts.
            unsorted_bytes=self._config.worth_sorting_bytes,
            register_as=table.register_as,
        )
        self._changed.set()

    def committed(self, name: str, batch: Batch, *, in_place: bool, bad: bool) -> None:
        """Record a commit: of the batch's files, or of one that Spark wrote of their rows.

        With bad records, there is one more of these.
        """
        if (table := self._tables.get(name)) is not None:
            sizes = [part.bytes for part in batch.slices] if in_place else [batch.bytes]
            table.small = table.small.after([*sizes, *[0] * bad], self._config.compaction)
            table.unsorted_bytes += batch.bytes
            self._changed.set()

    def erased(self, name: str, until_s: float) -> None:
        """Record that rows were erased, and until when older versions have them, wall clock, s.

        Then the table is vacuumed, also if it was vacuumed under an earlier claim.
        """
        if (table := self._tables.get(name)) is not None and (until_s not in table.erased_until_s):
            wait_s = max(until_s + ERASE_MARGIN_S - self._wall_s(), 0.0)
            table.erased_until_s.add(until_s)
            table.erase_at.append(asyncio.get_running_loop().time() + wait_s)
            self._changed.set()

    def compaction(self, name: str) -> TableCompaction | None:
        """Return the table's small files, and what was merged and sorted since it was claimed."""
        table = self._tables.get(name)
        if table is None or not (self._config.compaction.files or table.clustered):
            return None
        return TableCompaction(
            small_files=table.small.files,
            small_bytes=table.small.bytes,
            seconds=round(table.rewriting_s, 3),
            files_read=table.rewritten.removed,
            bytes_read=table.rewritten.removed_bytes,
            files_written=table.rewritten.added,
            bytes_written=table.rewritten.added_bytes,
            fault=table.fault,
        )

    def registration(self, name: str) -> TableRegistration | None:
        """Return the table's name in the catalog, and what keeps it from having it."""
        table = self._tables.get(name)
        if table is None or not table.register_as:
            return None
        return TableRegistration(
            name=table.register_as, registered=table.registered, fault=table.refusal
        )

    def released(self, name: str) -> None:
        """Record that this process no longer writes the table, or that a person paused it."""
        self._tables.pop(name, None)

    def serves(self, name: str) -> bool:
        """Return whether the table's jobs are run."""
        return name in self._tables

    async def run(self) -> None:
        """Run due jobs until cancelled: on each server one of files, and one of names, at a time.

        A catalog that does not answer holds up no file.
        """
        kinds: Mapping[JobsOf, Callable[[str], Awaitable[None] | None]]
        kinds = {"files": self._files_job, "names": self._names_job}
        async with asyncio.TaskGroup() as jobs:
            while True:
                self._changed.clear()
                for server in sorted({table.server for table in self._tables.values()}):
                    for kind, due in kinds.items():
                        if (server, kind) not in self._busy and (job := due(server)) is not None:
                            self._busy.add((server, kind))
                            jobs.create_task(self._run(server, kind, job))
                await self._idle()

    async def _run(self, server: str, kind: JobsOf, job: Awaitable[None]) -> None:
        try:
            await job
        except Exception:  # noqa: BLE001 - a bug: landing must go on
            log(HOUSEKEEPING_FAILED, exc_info=True)
        finally:
            self._busy.discard((server, kind))
            self._changed.set()

    def _names_job(self, server: str) -> Awaitable[None] | None:
        """Return the job of the table that has waited longest for its name, None if none is due."""
        due = [table for table in self._on(server) if self._to_be_registered(table)]
        first = min(due, key=lambda t: (t.register_at, t.name), default=None)
        if first is None or asyncio.get_running_loop().time() < first.register_at:
            return None
        return self._register(first)

    def _files_job(self, server: str) -> Awaitable[None] | None:
        """Return the next due job of files, None if none is; its table served longest ago first."""
        now = asyncio.get_running_loop().time()
        for table in sorted(self._on(server), key=lambda t: (t.served_at, t.name)):
            if now >= table.compact_at and self._to_be_compacted(table):
                return self._compact(table)
            if table.clustered and table.unsorted_bytes >= self._config.cluster_bytes:
                return self._cluster(table)
            if self._config.vacuum_interval_s and now >= table.vacuum_at:
                return self._vacuum(table)
            if now >= min(table.erase_at, default=inf):
                return self._vacuum(table)
        return None

    def _on(self, server: str) -> Iterator[_Table]:
        return (table for table in self._tables.values() if table.server == server)

    @staticmethod
    def _to_be_registered(table: _Table) -> bool:
        return bool(table.register_as) and not table.registered

    def _to_be_compacted(self, table: _Table) -> bool:
        config = self._config.compaction
        return bool(config.files) and (not table.listed or is_due(table.small, table.name, config))

    async def _idle(self) -> None:
        """Wait for a change, or until a job is due on a server that is idle."""
        at = [LONGEST_WAIT_S]
        now = asyncio.get_running_loop().time()
        for table in self._tables.values():
            if self._to_be_registered(table) and (table.server, "names") not in self._busy:
                at.append(table.register_at - now)
            if (table.server, "files") not in self._busy:
                if self._config.vacuum_interval_s:
                    at.append(table.vacuum_at - now)
                at += [erase_at - now for erase_at in table.erase_at]
                if self._to_be_compacted(table):
                    at.append(table.compact_at - now)
        await until_set(self._changed, max(min(at), SHORTEST_WAIT_S))

    # --- jobs ------------------------------------------------------------------------------------

    async def _register(self, table: _Table) -> None:
        """Give the table its name in the catalog; after a failure, retry ever later."""
        try:
            await table.lake.register(table.name, table.register_as)
        except ExternalError as exc:
            table.refusals, table.refusal = table.refusals + 1, str(exc)
            retry_s = retry_after_s(table.refusals)
            table.register_at = asyncio.get_running_loop().time() + retry_s
            log(REGISTRATION_FAILED, table=table.name, reason=str(exc), retry_s=retry_s)
        else:
            table.registered, table.refusal = True, ""
            log(TABLE_REGISTERED, table=table.name, name=table.register_as)

    async def _compact(self, table: _Table) -> None:
        """List the table's small files, and merge a portion of them if they are too many.

        Then it is the turn of other tables. Where its server lists no files, and in a table that is
        clustered, whose full cubes are never merged, those are counted that were committed.
        """
        config, portion = self._config.compaction, None
        began = self._start_job(table)
        try:
            parts = None if table.clustered else await table.lake.small_files(table.name)
            table.listed = True
            if parts is not None:
                table.small = mergeable(parts, config)
                portion = next_portion(parts, config, decoded=table.decoded)
            table.begun = is_due(table.small, table.name, config, begun=table.begun)
            if not table.begun:
                return
            done = await table.lake.compact(table.name, portion)
        except ExternalError as exc:
            self._not_compacted(table, str(exc))
            return
        finally:
            table.rewriting_s += asyncio.get_running_loop().time() - began
        if parts is not None and not done.removed:
            self._not_compacted(table, "Spark merged none of the files that its log lists")
            return
        table.small = table.small.merged(done, config) if portion else Mergeable()
        # What lands meanwhile can always be copied: for that alone no next turn follows at once.
        wrote_rows = done.copied < done.removed
        table.begun = is_due(table.small, table.name, config, begun=wrote_rows)
        table.listed = not table.begun
        table.failures, table.fault, table.rewritten = 0, "", table.rewritten + done
        self._log_rewritten(TABLE_COMPACTED, table, done, began)

    def _not_compacted(self, table: _Table, reason: str) -> None:
        table.failures, table.fault = table.failures + 1, reason
        retry_s = retry_after_s(table.failures)
        table.compact_at = asyncio.get_running_loop().time() + retry_s
        log(COMPACTION_FAILED, table=table.name, reason=reason, retry_s=retry_s)

    async def _cluster(self, table: _Table) -> None:
        """Sort what has landed; after a failure, retry when as much has landed again."""
        table.unsorted_bytes = 0
        began = self._start_job(table)
        try:
            done = await table.lake.cluster(table.name)
        except ExternalError as exc:
            log(CLUSTERING_FAILED, table=table.name, reason=str(exc))
        else:
            table.rewritten += done
            self._log_rewritten(TABLE_CLUSTERED, table, done, began)
        finally:
            table.rewriting_s += asyncio.get_running_loop().time() - began

    @staticmethod
    def _log_rewritten(event: LogEvent, table: _Table, done: Compaction, began: float) -> None:
        took_s = round(asyncio.get_running_loop().time() - began, 1)
        counts = {"files_before": done.removed, "files_after": done.added}
        sizes = {"bytes_before": done.removed_bytes, "bytes_after": done.added_bytes}
        log(event, table=table.name, **counts, **sizes, took_s=took_s)

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
        due = [at for at in table.erase_at if at <= began]
        try:
            await table.lake.vacuum(table.name)
        except ExternalError as exc:
            log(VACUUM_FAILED, table=table.name, reason=str(exc))
            if due:
                again_at = asyncio.get_running_loop().time() + ERASE_RETRY_S
                table.erase_at = [again_at, *(at for at in table.erase_at if at not in due)]
            return
        table.erase_at = [at for at in table.erase_at if at not in due]
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
