"""Implements the port `Lake`: each Delta table is at `<lake.path>/<name>`.

A table of columns has one of bad records beside it, at `<lake.path>/<name>__bad`. In all calls
`table` is its name: its topic's, unless the settings give it another.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

from pyspark.sql.connect.session import SparkSession

from binwright.consumer.decide.land.compaction import most_of
from binwright.consumer.land.lake import (
    bad_rows,
    catalog,
    clustering,
    delta,
    erased_rows,
    keyed_rows,
    staged_rows,
)
from binwright.consumer.land.lake.faults import LakeErrors
from binwright.consumer.land.lake.log_trim import local_path, trim_log
from binwright.consumer.land.lake.table_columns import KAFKA_COLUMN, RAW, check_still_there
from binwright.lake.session import ReconnectingSession, Work
from binwright.protocol.errors import BinwrightError, StagedUnreadable, WriteUnclear
from binwright.protocol.log_events import LogEvent
from binwright.protocol.names import BAD_SUFFIX, DELETED_SUFFIX
from binwright.runtime.clock import wall_ms
from binwright.runtime.logs import log
from binwright.runtime.settings.consumer import LONGEST_WORK_S, LONGEST_WRITE, LakeSettings
from binwright.runtime.spark_url import redacted_url
from binwright.tables.columns import Columns
from binwright.tables.operations import Places
from binwright.tables.ports import (
    BadPlace,
    BadPortion,
    BadQuery,
    BadRow,
    Batch,
    ColumnsThere,
    Compaction,
    ErasedCounts,
    ErasedQuery,
    History,
    NotInPlace,
    PartitionOffsets,
    Portion,
    SmallFiles,
    Table,
)

LAYOUT_FAILED = LogEvent.warning(
    "layout.failed", "A table could not be clustered, or have statistics; it lands all the same."
)
LAYOUT_WAITS = LogEvent.warning(
    "layout.waits", "`cluster_by` or `statistics` names columns that the table has not yet."
)
WRITE_ENDED = LogEvent.debug("write.ended", "A commit ended; `committed` is its verdict.")
LOG_TRIM_FAILED = LogEvent.debug(
    "log.trim_failed", "A table's log is not visible on this machine and was not trimmed."
)
LOG_TRIMMED = LogEvent.info(
    "log.trimmed", "Old entries of a table's log on a local disk were deleted."
)

T = TypeVar("T")

MAINTENANCE: Mapping[str, str] = {
    # Delta refuses to delete what is younger than the table's own retention, 7 days.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
"""Settings of sessions that maintain tables."""
READ_TIMEOUT_S = 120.0
SCAN_TIMEOUT_S = 1800.0
DELETE_S = 600.0
"""How long old rows may be deleted, while nothing lands in their table."""


class SparkLake:
    """A `Lake`. Connects at its first call, and again after a failure.

    Each table has its own session; maintenance has one more per server. No wait is unlimited: a
    write that overruns `write_timeout_s` is unclear, and the next one has twice the time; a read
    that overruns `read_timeout_s` has failed. Either is abandoned, and the next call has a new
    session.
    """

    def __init__(
        self,
        lake: LakeSettings,
        staged: str,
        write_timeout_s: float,
        *,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        """Use the servers of `lake`.

        Args:
            lake: The tables' path, the servers that write them, and the sizes of compacted files.
            staged: The location of staged files: one directory per table.
            write_timeout_s: The limit of a first attempt to write, seconds.
            read_timeout_s: The limit of a read, seconds.
        """
        self._lake, self._path = lake, lake.path.rstrip("/")
        self._staged = delta.spark_path(staged).rstrip("/")
        self._write_timeout_s, self._read_timeout_s = write_timeout_s, read_timeout_s
        self._limits_s: dict[str, float] = {}  # write limits of tables that overran the last one
        self._of_columns: dict[str, Table] = {}  # by name
        self._dated: frozenset[str] = frozenset()  # tables whose rows have the day of their record
        self._changing = defaultdict[str, asyncio.Lock](asyncio.Lock)
        """By table: to Delta an append in between is a conflict of a deletion."""
        self._sessions: dict[str, ReconnectingSession] = {}
        self._maintenance_sessions: dict[str, ReconnectingSession] = {}  # by server
        self._catalog_sessions: dict[str, ReconnectingSession] = {}  # by server: a catalog may hang

    async def __aenter__(self) -> Self:
        """Return self; the first call connects."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the sessions; takes 15 s at most if a server does not answer."""
        sessions = (self._sessions, self._maintenance_sessions, self._catalog_sessions)
        await asyncio.gather(*(each.close() for by in sessions for each in by.values()))

    # --- the port --------------------------------------------------------------------------------

    async def open(self, table: Table) -> str:
        """Create the table, and that of its bad records, if they are missing; see `Lake.open`."""
        name, of_columns = table.name, table.columns is not None
        access = self._access(name)
        dated, first_topic = await self._open(
            name, access, lambda spark: delta.ensure(spark, access.path, table)
        )
        self._dated = self._dated | {name} if dated else self._dated - {name}
        if of_columns:
            bad = self._bad_access(name)
            await self._open(name, bad, lambda spark: delta.ensure_bad(spark, bad.path, table))
            if table.primary_key:
                await self._open(name, access, lambda spark: keyed_rows.ensure(spark, access.path))
            await self._arrange(table)
            self._of_columns[name] = table
        else:
            self._of_columns.pop(name, None)
        return first_topic

    async def claim(self, table: str, writer: str, stamp: str) -> None:
        """Commit the writer's id to the metadata; see `Lake.claim`.

        First that of the bad records: once the claim's stamp is in the table, both are claimed (†).
        """
        for access in reversed(self._accesses(table)):
            await access.run(
                self._session(table),
                partial(delta.claim, path=access.path, writer=writer, stamp=stamp),
                self._write_timeout_s,
                access.errors.write_error,
            )

    async def append(self, table: str, batch: Batch, lease: str, stamp: str) -> None:
        """Append the batch's rows in one commit; see `Lake.append`."""
        rows = partial(staged_rows.rows, dated=table in self._dated)
        await self._append(table, rows, self._access(table), batch, lease, stamp)

    async def add_files(
        self, table: str, batch: Batch, lease: str, stamp: str
    ) -> NotInPlace | None:
        """Commit the batch's files as they are; see `Lake.add_files`."""
        access, place = self._access(table), f"{self._staged}/{table}"
        files = [f"{place}/{file}" for file in batch.files]
        work = partial(
            delta.add_files,
            path=access.path,
            stamp=stamp,
            lease=f"{place}/{lease}",
            files=files,
        )
        added = await self._write(table, access, work, (*batch.files, lease))
        match added.verdict:
            case "landed":
                return None
            case "no_lease":
                raise StagedUnreadable(f"{access.path}: the lease {lease} is gone", [lease])
            case "missing" | "damaged":
                named = [file for file in batch.files if added.what.startswith(file)]
                raise StagedUnreadable(f"{access.path}: {added.verdict}: {added.what}", named)
            case "table_not_in_place" | "file_not_in_place":
                return NotInPlace(added.what, of_table=added.verdict == "table_not_in_place")
        raise WriteUnclear(f"{access.path}: the server's extension has answered {added}")

    async def append_bad(self, table: str, batch: Batch, lease: str, stamp: str) -> None:
        """Append the batch's bad records in one commit; see `Lake.append_bad`."""
        access, batch = self._bad_access(table), staged_rows.of_bad(batch)
        await self._append(table, staged_rows.bad_records, access, batch, lease, stamp)

    async def note_deleted(self, table: str, batch: Batch, lease: str, stamp: str) -> None:
        """Note the keys of what the batch deletes; see `Lake.note_deleted`."""
        access, known = self._access(table), self._of_columns[table]
        frame = self._frame(table, batch, lease)
        work = keyed_rows.note_deleted(frame, batch, access.path, known, stamp)
        await self._write(table, access, work, (*batch.files, lease))

    async def merge(self, table: str, batch: Batch, lease: str, number: int, stamp: str) -> None:
        """Apply the batch's changes to the rows of their keys; see `Lake.merge`."""
        access, known = self._access(table), self._of_columns[table]
        transaction = (f"binwright/{lease}", number)
        work = keyed_rows.merge(
            self._frame(table, batch, lease), batch, access.path, known, stamp, transaction
        )
        await self._write(table, access, work, (*batch.files, lease))

    async def bad_portion(self, table: str, query: BadQuery) -> BadPortion:
        """Return bad records; see `Lake.bad_portion`."""
        access = self._bad_access(table)
        work = partial(bad_rows.portion, path=access.path, query=query)
        return await self._read(table, work, access, SCAN_TIMEOUT_S)

    async def change_bad(
        self, table: str, removed: Sequence[BadPlace], changed: Sequence[BadRow], note: str
    ) -> None:
        """Change the table of bad records; see `Lake.change_bad`."""
        access = self._bad_access(table)
        work = bad_rows.change(removed, changed, access.path, note)
        await self._write(table, access, work, ())

    async def landed_bad(self, table: str, places: Places) -> Sequence[BadPlace]:
        """Return the bad records of which the table has the rows; see `Lake.landed_bad`."""
        access, bad = self._access(table), self._bad_access(table)
        work = partial(bad_rows.landed, path=access.path, bad_path=bad.path, places=places)
        return await self._read(table, work, access, SCAN_TIMEOUT_S)

    async def note_erased(
        self, table: str, query: ErasedQuery, note: str, *, dry_run: bool
    ) -> ErasedCounts:
        """Note the places of what is to be erased; see `Lake.note_erased`."""
        access = self._access(table)
        return await self._erasing(
            table,
            access,
            partial(
                erased_rows.note,
                path=access.path,
                query=query,
                text=None if dry_run else note,
            ),
        )

    async def erase_noted(self, table: str, operation: str, note: str) -> None:
        """Delete what an operation has noted; see `Lake.erase_noted`."""
        path = self._access(table).path
        if self._has_keys(table):
            known = self._of_columns[table]
            await self._erasing(
                table,
                self._access(table, DELETED_SUFFIX),
                lambda spark: keyed_rows.note_erased(spark, path, known, operation, note),
            )
        for bad, access in enumerate(self._accesses(table)):
            work = partial(
                erased_rows.erase, path=path, operation=operation, text=note, bad=bool(bad)
            )
            await self._erasing(table, access, work)

    async def columns(self, table: str, comment: str) -> ColumnsThere:
        """Return the table's columns; see `Lake.columns`."""
        path = self._access(table).path
        return await self._read(table, lambda spark: delta.columns_there(spark, path, comment))

    async def add_columns(self, table: str, columns: Columns, comment: str = "") -> None:
        """Add the columns that the table lacks; see `Lake.add_columns`."""
        access, known = self._access(table), self._of_columns.get(table)
        widen = known is not None and known.widen
        await access.run(
            self._session(table),
            lambda spark: delta.add_columns(spark, access.path, columns, comment, widen=widen),
            self._write_timeout_s,
            access.errors.alter_error,
        )
        if known is not None:
            await self._arrange(known)

    async def commit_stamp(self, table: str, lease: str, number: int, stamp: str) -> None:
        """Commit no rows; see `Lake.commit_stamp`."""
        access = self._access(table)
        batch = Batch(columns=() if table in self._of_columns else None)
        dated = table in self._dated
        frame = staged_rows.rows(batch, f"{self._staged}/{table}", lease, access.path, dated=dated)
        transaction = (f"binwright/{lease}", number)
        work = delta.append(frame, access.path, stamp, transaction)
        await self._write(table, access, work, (lease,))

    async def history(self, table: str, limit: int) -> History:
        """Return the newest commits; see `Lake.history`."""
        access = self._access(table)
        return await self._read(table, lambda spark: delta.history(spark, access.path, limit))

    async def highest_offsets(self, table: str) -> PartitionOffsets:
        """Return the highest landed offset of each partition: a scan, on a session of its own.

        What was erased has landed, too, and does not land again (†).
        """
        return await self._landed_offsets(table, max)

    async def lowest_offsets(self, table: str) -> PartitionOffsets:
        """Return the lowest offset that has landed of each partition; see `Lake.lowest_offsets`.

        A scan, on a session of its own.
        """
        return await self._landed_offsets(table, min)

    async def _landed_offsets(
        self, table: str, outer: Callable[[Iterable[int]], int]
    ) -> PartitionOffsets:
        """Return an outer offset of each partition's rows, also of those that were erased."""
        access, raw = self._access(table), table not in self._of_columns

        def offsets(spark: SparkSession) -> PartitionOffsets:
            landed = delta.outer_offsets(spark, access.path, raw=raw)
            gone = erased_rows.outer_offsets(spark, access.path)
            return {p: outer((*landed.get(p, ()), *gone.get(p, ()))) for p in {*landed, *gone}}

        return await self._scan(table, access, offsets)

    async def lowest_bad_offsets(self, table: str) -> PartitionOffsets:
        """Return the lowest offsets of bad records; see `Lake.lowest_bad_offsets`."""
        access = self._bad_access(table)
        outer = await self._scan(
            table, access, lambda spark: delta.outer_offsets(spark, access.path, raw=False)
        )
        return {p: low for p, (low, _) in outer.items()}

    async def highest_bad_offsets(
        self, table: str, since: PartitionOffsets
    ) -> Mapping[str | None, PartitionOffsets]:
        """Return the highest offsets of bad records, by files that have some in `since`."""
        access = self._bad_access(table)
        return await self._scan(
            table, access, lambda spark: delta.highest_bad_offsets(spark, access.path, since)
        )

    async def check(self, table: str, columns: Columns) -> None:
        """Check that the table is as it was left; see `Lake.check`."""
        rows, *bad = self._accesses(table)
        raw = table not in self._of_columns
        wanted = RAW.required if raw else (KAFKA_COLUMN, *columns)
        for access, names in ((rows, wanted), *((each, ()) for each in bad)):
            await self._read(table, partial(_check, path=access.path, columns=names), access)

    async def small_files(self, table: str) -> tuple[SmallFiles, ...] | None:
        """Return the table's small files; see `Lake.small_files`."""
        small: tuple[SmallFiles, ...] = ()
        for bad, access in enumerate(self._accesses(table)):
            list_them = partial(
                delta.small_files, below_bytes=self._lake.compact_below_bytes, bad=bool(bad)
            )
            if (more := await self._maintain(table, access, list_them)) is None:
                return None
            small += more
        return small

    async def compact(self, table: str, portion: Portion | None = None) -> Compaction:
        """Merge small files; see `Lake.compact`. On a local disk, trim the tables' logs, too.

        First row groups are copied, of any files; where those are few, Spark writes the rows of a
        portion again.
        """
        done = Compaction(0, 0)
        small, file_bytes = self._lake.compact_below_bytes, self._lake.target_file_bytes
        for bad, access in enumerate(self._accesses(table)):
            if portion is None or portion.bad is bool(bad):
                copied = Compaction(0, 0)
                if portion is not None:
                    copy = partial(delta.merge_files, below_bytes=small, file_bytes=file_bytes)
                    copied = await self._rewrite(table, access, copy)
                    done += copied
                if portion is None or not most_of(copied, portion):
                    rewrite = partial(
                        clustering.compact, portion=portion or Portion(small), file_bytes=file_bytes
                    )
                    done += await self._rewrite(table, access, rewrite)
                await self._trim_log(f"{table}{BAD_SUFFIX}" if bad else table)
        if self._has_keys(table):
            deleted = self._access(table, DELETED_SUFFIX)
            work = partial(clustering.compact, portion=Portion(small), file_bytes=file_bytes)
            done += await self._maintain(table, deleted, work)
            await self._trim_log(f"{table}{DELETED_SUFFIX}")
        return done

    async def cluster(self, table: str) -> Compaction:
        """Sort the rows of files by the table's `cluster_by`; see `Lake.cluster`."""
        work = partial(
            clustering.cluster,
            cube_bytes=self._lake.cluster_bytes,
            file_bytes=self._lake.target_file_bytes,
        )
        return await self._rewrite(table, self._access(table), work)

    async def expire(self, table: str, keep_s: float) -> int:
        """Delete old rows, also of bad records; see `Lake.expire`."""
        deleted = 0
        for access in self._accesses(table):
            old = partial(delta.old_rows, keep_s=keep_s, now_ms=wall_ms())
            if condition := await self._maintain(table, access, old):
                delete = partial(delta.delete_rows, condition=condition)
                async with self._changing[table]:
                    deleted += await self._maintain(table, access, delete, DELETE_S)
        return deleted

    async def vacuum(self, table: str) -> None:
        """Delete unreferenced files, also of bad records; see `Lake.vacuum`."""
        retain_s = self._lake.vacuum_retention_s
        accesses = self._accesses(table)
        if self._has_keys(table):
            deleted = self._access(table, DELETED_SUFFIX)
            await self._maintain(table, deleted, keyed_rows.forget_old)
            accesses = (*accesses, deleted)
        for access in accesses:
            await self._maintain(
                table, access, lambda spark, path: delta.vacuum(spark, path, retain_s)
            )

    async def register(self, table: str, name: str) -> None:
        """Register the table, and its bad records; see `Lake.register`."""
        server = self._lake.server(table)
        session = self._catalog_sessions.setdefault(server, self._new_session(server))
        for bad, access in enumerate(self._accesses(table)):
            own = f"{name}{BAD_SUFFIX}" if bad else name
            await access.run(
                session,
                partial(catalog.register, path=access.path, name=own),
                self._read_timeout_s,
                partial(access.errors.register_error, name=own),
            )

    async def release(self, table: str) -> None:
        """End the table's session."""
        if (session := self._sessions.pop(table, None)) is not None:
            await session.reset()

    # --- inside ----------------------------------------------------------------------------------

    async def _open(self, table: str, access: "_TableAccess", work: Work[T]) -> T:
        session, limit_s = self._session(table), self._read_timeout_s
        return await access.run(session, work, limit_s, access.errors.open_error)

    async def _arrange(self, table: Table) -> None:
        """Make statistics and clustering those of the settings.

        Where that fails the table lands all the same: it is about reading rows fast.
        """
        if not (table.cluster_by or table.statistics):
            return
        access = self._access(table.name)
        try:
            waiting = await access.run(
                self._session(table.name),
                lambda spark: clustering.arrange(spark, access.path, table),
                self._read_timeout_s,
                access.errors.alter_error,
            )
        except BinwrightError as exc:
            log(LAYOUT_FAILED, table=table.name, reason=str(exc))
        else:
            if waiting:
                log(LAYOUT_WAITS, table=table.name, columns=waiting)

    async def _append(  # noqa: PLR0917 - the parts of a commit
        self,
        table: str,
        rows: Callable[[Batch, str, str, str], staged_rows.Frame],
        access: "_TableAccess",
        batch: Batch,
        lease: str,
        stamp: str,
    ) -> None:
        frame = rows(batch, f"{self._staged}/{table}", lease, self._bad_access(table).path)
        work = delta.append_batch(frame, batch.bytes, access.path, stamp)
        await self._write(table, access, work, (*batch.files, lease))

    def _frame(self, table: str, batch: Batch, lease: str) -> staged_rows.Frame:
        """Return what builds the rows of a batch, without its bad records."""
        bad = self._bad_access(table)
        return staged_rows.rows(batch, f"{self._staged}/{table}", lease, bad.path)

    async def _write(
        self, table: str, access: "_TableAccess", work: Work[T], files: Collection[str]
    ) -> T:
        async with self._changing[table]:
            return await self._write_alone(table, access, work, files)

    async def _erasing(self, table: str, access: "_TableAccess", work: Work[T]) -> T:
        """Do what may read or write a whole table, while nothing else is written to it."""
        async with self._changing[table]:
            session = self._session(table)
            return await access.run(session, work, SCAN_TIMEOUT_S, access.errors.erase_error)

    async def _write_alone(
        self, table: str, access: "_TableAccess", work: Work[T], files: Collection[str]
    ) -> T:
        began = time.monotonic()
        limit_s = self._limits_s.get(table, self._write_timeout_s)
        try:
            result = await access.run(
                self._session(table),
                work,
                limit_s,
                lambda exc: access.errors.write_error(exc, files),
            )
        except WriteUnclear as exc:
            if isinstance(exc.__cause__, TimeoutError):
                # The server ends an abandoned write: with the same limit no attempt would succeed.
                self._limits_s[table] = min(2 * limit_s, LONGEST_WRITE * self._write_timeout_s)
            raise
        self._limits_s.pop(table, None)
        log(WRITE_ENDED, table=table, took_ms=round((time.monotonic() - began) * 1000))
        return result

    async def _read(
        self,
        table: str,
        work: Callable[[SparkSession], T],
        access: "_TableAccess | None" = None,
        limit_s: float | None = None,
    ) -> T:
        access, session = access or self._access(table), self._session(table)
        limit_s = limit_s or self._read_timeout_s
        return await access.run(session, work, limit_s, access.errors.read_error)

    async def _scan(
        self, table: str, access: "_TableAccess", work: Callable[[SparkSession], T]
    ) -> T:
        session = self._new_session(self._lake.server(table))
        try:
            return await access.run(session, work, SCAN_TIMEOUT_S, access.errors.read_error)
        finally:
            await session.reset()

    async def _maintain(
        self,
        table: str,
        access: "_TableAccess",
        work: Callable[[SparkSession, str], T],
        limit_s: float = LONGEST_WORK_S,
    ) -> T:
        return await access.run(
            self._maintenance_session(table),
            lambda spark: work(spark, access.path),
            limit_s,
            access.errors.read_error,
        )

    async def _rewrite(
        self, table: str, access: "_TableAccess", work: Callable[[SparkSession, str], T]
    ) -> T:
        """Write files of a table again; a MERGE beside it would be a conflict of one of both."""
        if not self._has_keys(table):
            return await self._maintain(table, access, work)
        async with self._changing[table]:
            return await self._maintain(table, access, work)

    def _has_keys(self, table: str) -> bool:
        known = self._of_columns.get(table)
        return known is not None and bool(known.primary_key)

    async def _trim_log(self, name: str) -> None:
        lake, keep = local_path(self._path), self._lake.log_commits
        if lake is None or not keep:
            return
        try:
            deleted = await asyncio.to_thread(trim_log, lake / name, keep)
        except OSError as exc:  # the disk may be mounted for Spark only
            log(LOG_TRIM_FAILED, table=name, reason=str(exc))
        else:
            log(LOG_TRIMMED, table=name, files=deleted)

    def _session(self, table: str) -> ReconnectingSession:
        if table not in self._sessions:
            self._sessions[table] = self._new_session(self._lake.server(table))
        return self._sessions[table]

    def _maintenance_session(self, table: str) -> ReconnectingSession:
        server = self._lake.server(table)
        return self._maintenance_sessions.setdefault(server, self._new_session(server, MAINTENANCE))

    def _new_session(
        self, server: str, conf: Mapping[str, str] | None = None
    ) -> ReconnectingSession:
        return ReconnectingSession(partial(self._lake.connection, server), conf)

    def _access(self, table: str, suffix: str = "") -> "_TableAccess":
        path = f"{self._path}/{table}{suffix}"
        return _TableAccess(path, LakeErrors(path, redacted_url(self._lake.server(table))))

    def _bad_access(self, table: str) -> "_TableAccess":
        return self._access(table, BAD_SUFFIX)

    def _accesses(self, table: str) -> tuple["_TableAccess", ...]:
        """Return the accesses to the table and, if it has one, that of bad records."""
        bad = (self._bad_access(table),) if table in self._of_columns else ()
        return self._access(table), *bad


def _check(spark: SparkSession, path: str, columns: Columns) -> None:
    """Raise an error of Spark's if there is no table, `TableRefused` if it lacks a column."""
    delta.history(spark, path, 1)
    if columns:
        check_still_there(path, columns, spark.read.format("delta").load(path).schema)


@dataclass(frozen=True, slots=True)
class _TableAccess:
    """Calls about one table: its path, and the translation of its errors."""

    path: str
    errors: LakeErrors

    async def run(
        self,
        session: ReconnectingSession,
        work: Callable[[SparkSession], T],
        limit_s: float,
        translate: Callable[[Exception], BinwrightError],
    ) -> T:
        try:
            return await session.run(work, limit_s)
        except BinwrightError:
            raise
        except Exception as exc:
            raise translate(exc) from exc
