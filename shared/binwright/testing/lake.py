"""A `Lake` in memory, with Delta's rules for conflicting commits."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum

from binwright.protocol.errors import (
    LakeUnavailable,
    StagedUnreadable,
    TableRefused,
    WriteConflict,
    WriteUnclear,
)
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import BAD_SUFFIX
from binwright.protocol.ports.kafka import Record
from binwright.tables.columns import Columns
from binwright.tables.operations import Cursor, Places
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
from binwright.testing.lake_storage import (
    BadRecord,
    FakeStorage,
    FakeTable,
    Noted,
    Place,
    Rows,
    StagedRows,
)

FILE_BYTES = 1_000  # of every data file


class Failure(Enum):
    """How a call can fail."""

    UNCLEAR_LANDED = "the write commits, but its result is lost"
    UNCLEAR = "the write never commits, and has no result"
    CONFLICT = "another commit came first"
    REFUSED = "the table rejects the rows"
    UNREADABLE = "a staged file could not be read"
    UNAVAILABLE = "Spark does not reply (calls other than writes)"


_OF_WRITES = frozenset(Failure) - {Failure.UNAVAILABLE}


def _is_meant(row: BadRow, query: BadQuery) -> bool:
    """Whether a query is of a bad record."""
    topic_id, p, offset, _ = row.place
    return (
        p.topic in query.topic_ids
        and topic_id in {None, query.topic_ids[p.topic]}
        and offset < query.below.get(p, 0)
        and not (p in query.but and query.but[p][0] <= offset < query.but[p][1])
        and (query.after is None or Cursor(*p, offset) > query.after)
        and (not query.classes or row.kind in query.classes)
    )


class FakeLake:
    """A `Lake`: one process's client of a `FakeStorage`.

    A write takes its snapshot at once, reads the staged files and its lease after half of
    `latency_s`, and commits after all of it, even if the caller is cancelled meanwhile, as if its
    process died.

    Attributes:
        latency_s: Of every call; tests may change it at any time.
        refusing: Tables that refuse every append with rows.
        unfit: Tables that refuse further columns.
        not_in_place: Why no files are committed as they are; None: they are.
        lists_files: Whether its server has a list of small files.
        registered: Names of the catalog, and their tables.
        taken: Names of the catalog, and where the tables of others are that have them.
        calls: All calls so far: (name, table).
    """

    def __init__(
        self,
        storage: FakeStorage,
        staging: StagedRows,
        *,
        latency_s: float = 0.0,
        write_timeout_s: float = 120.0,
    ) -> None:
        self.latency_s = latency_s
        self.write_timeout_s = write_timeout_s
        self.refusing: set[str] = set()
        self.unfit: set[str] = set()
        self.not_in_place: NotInPlace | None = None
        self.lists_files = True
        self.registered: dict[str, str] = {}
        self.taken: dict[str, str] = {}
        self.calls: list[tuple[str, str]] = []
        self._storage, self._staging = storage, staging
        self._busy: set[str] = set()
        self._failures: deque[Failure] = deque()

    def fail_next(self, *failures: Failure) -> None:
        """Make the next calls that can fail so fail, one each, in this order."""
        self._failures.extend(failures)

    def clear_failures(self) -> None:
        """Make every call succeed from now on."""
        self._failures.clear()

    # --- the port --------------------------------------------------------------------------------

    async def open(self, table: Table) -> str:
        """Fit `Lake.open`."""
        await self._read("open", table.name)
        stored = self._storage.create(table.name, table)
        stored.owner = stored.owner or table
        stored.dropped = ""  # it gets the column again
        first = stored.owner
        if first != replace(
            table, topic=first.topic, named=first.named, more_topics=first.more_topics
        ):
            raise TableRefused(f"the table {table.name} belongs to {first}")
        if table.columns is not None:
            stored.add_columns(table.columns)
            self._storage.create(table.name + BAD_SUFFIX, table)
        return first.topic

    async def claim(self, table: str, writer: str, stamp: str) -> None:
        """Fit `Lake.claim`."""
        if table + BAD_SUFFIX in self._storage.tables:
            await self._write("claim_bad", table, Batch(), (), stamp, writer)
        await self._write("claim", table, Batch(), (), stamp, writer)

    async def append(self, table: str, batch: Batch, lease: str, stamp: str) -> None:
        """Fit `Lake.append`."""
        if dropped := self._storage.table(table).dropped:
            raise TableRefused(f"the table {table} has no {dropped}")
        await self._write("append", table, batch, (lease,), stamp)

    async def add_files(
        self, table: str, batch: Batch, lease: str, stamp: str
    ) -> NotInPlace | None:
        """Fit `Lake.add_files`."""
        if self.not_in_place is not None:
            await self._read("add_files", table)
            return self.not_in_place
        if dropped := self._storage.table(table).dropped:
            return NotInPlace(f"the table has no column {dropped}", of_table=False)
        if batch.landed_in_part or not all(part.whole for part in batch.slices):
            raise RuntimeError(f"not all rows of these files are to land: {batch}")
        await self._write("add_files", table, batch, (lease,), stamp)
        return None

    async def append_bad(self, table: str, batch: Batch, lease: str, stamp: str) -> None:
        """Fit `Lake.append_bad`."""
        await self._write("append_bad", table, batch, (lease,), stamp)

    async def note_deleted(
        self,
        table: str,
        batch: Batch,  # noqa: ARG002 - of the port
        lease: str,  # noqa: ARG002 - of the port
        stamp: str,  # noqa: ARG002 - of the port
    ) -> None:
        """Fit `Lake.note_deleted`: whatever is noted, rows of each change stay in the table."""
        await self._read("note_deleted", table)

    async def merge(self, table: str, batch: Batch, lease: str, number: int, stamp: str) -> None:
        """Fit `Lake.merge`: each change stays a row, so that tests can count them."""
        self._take_number(table, lease, number)
        await self._write("merge", table, batch, (lease,), stamp)

    async def columns(self, table: str, comment: str) -> ColumnsThere:
        """Fit `Lake.columns`."""
        await self._read("columns_there", table)
        there = self._storage.table(table).columns
        commented = tuple(column for column, own in there.values() if own == comment)
        return ColumnsThere(frozenset(column.name for column, _ in there.values()), commented)

    async def add_columns(self, table: str, columns: Columns, comment: str = "") -> None:
        """Fit `Lake.add_columns`."""
        await self._read("columns", table)
        if table in self.unfit:
            raise TableRefused(f"injected failure: {columns} do not fit the table {table}")
        self._storage.table(table).add_columns(columns, comment)

    async def highest_bad_offsets(
        self, table: str, since: PartitionOffsets
    ) -> Mapping[str | None, PartitionOffsets]:
        """Fit `Lake.highest_bad_offsets`."""
        await self._read("newest_bad", table)
        highest: dict[str | None, dict[TopicPartition, int]] = {}
        for topic_id, p, offset, _ in self._storage.table(table + BAD_SUFFIX).bad_records:
            if p in since and offset >= since[p]:
                known = highest.setdefault(topic_id, {})
                known[p] = max(offset, known.get(p, offset))
        return highest

    async def bad_portion(self, table: str, query: BadQuery) -> BadPortion:
        """Fit `Lake.bad_portion`; all are malformed at first, and none is masked."""
        await self._read("bad_portion", table)
        bad = self._storage.table(table + BAD_SUFFIX)
        rows = [
            BadRow(BadPlace(*named), record, *bad.reasons.get(named, ("malformed", "injected")))
            for named in bad.bad_records
            for record in bad.rows[named[1]]
            if (record.offset, record.timestamp_ms) == named[2:]
        ]
        wanted = sorted((row for row in rows if _is_meant(row, query)), key=lambda r: r.place[1:])
        return BadPortion(
            [
                row
                for row in wanted[: query.most_rows]
                if row.place.partition.topic == wanted[0].place.partition.topic
            ]
        )

    async def change_bad(
        self,
        table: str,
        removed: Sequence[BadPlace],
        changed: Sequence[BadRow],
        note: str,  # noqa: ARG002 - of the port
    ) -> None:
        """Fit `Lake.change_bad`."""
        async with self._changing("change_bad", table):
            bad = self._storage.table(table + BAD_SUFFIX)
            for id_, p, offset, at_ms in removed:
                if (id_, p, offset, at_ms) in bad.bad_records:
                    bad.bad_records.remove((id_, p, offset, at_ms))
                    kept = (r for r in bad.rows[p] if (r.offset, r.timestamp_ms) != (offset, at_ms))
                    bad.rows[p] = [*kept]
            bad.reasons |= {(*row.place,): (row.kind, row.reason) for row in changed}
            bad.add_commit()

    async def landed_bad(self, table: str, places: Places) -> Sequence[BadPlace]:
        """Fit `Lake.landed_bad`."""
        await self._read("landed_bad", table)
        rows = self._storage.table(table).rows
        return [
            BadPlace(id_, p, offset, at_ms)
            for id_, p, offset, at_ms in self._storage.table(table + BAD_SUFFIX).bad_records
            if p in places and places[p][0] <= offset < places[p][1]
            if any((r.offset, r.timestamp_ms) == (offset, at_ms) for r in rows.get(p, ()))
        ]

    async def note_erased(
        self,
        table: str,
        query: ErasedQuery,
        note: str,  # noqa: ARG002 - of the port
        *,
        dry_run: bool,
    ) -> ErasedCounts:
        """Fit `Lake.note_erased`: every row meets `where`, every bad record `bad_where`."""
        async with self._changing("note_erased", table):
            stored = self._storage.table(table)
            bad = self._bad_records(table)
            places: set[Noted] = {
                (False, None, p, r.offset, r.timestamp_ms)
                for p, rows in stored.rows.items()
                for r in rows
                if query.where is not None
            }
            places |= {
                (True, *each)
                for each in bad
                if query.bad_where is not None
                if each[2] < query.below.get(each[1], 0)
            }
            noted = stored.noted.get(query.operation, set()) | places
            if not dry_run:
                stored.noted[query.operation] = noted
            counts = Counter(place[0] for place in noted)
            left = 0 if query.bad_where is not None else len(bad)
            return ErasedCounts(counts[False], counts[True], left)

    async def erase_noted(
        self,
        table: str,
        operation: str,
        note: str,  # noqa: ARG002 - of the port
    ) -> None:
        """Fit `Lake.erase_noted`."""
        async with self._changing("erase_noted", table):
            stored = self._storage.table(table)
            for bad, id_, p, offset, at_ms in stored.noted.get(operation, ()):
                of = self._storage.table(table + BAD_SUFFIX) if bad else stored
                rows = of.rows.get(p, [])
                of.rows[p] = [r for r in rows if (r.offset, r.timestamp_ms) != (offset, at_ms)]
                of.bad_records.discard((id_, p, offset, at_ms))
            stored.add_commit()

    async def check(self, table: str, columns: Columns) -> None:
        """Fit `Lake.check`."""
        await self._read("check", table)
        stored = self._storage.table(table)
        if stored.dropped in {column.name for column in columns}:
            raise TableRefused(f"the table {table} no longer has {stored.dropped}")
        if stored.owner is not None and stored.owner.columns is not None:
            self._storage.table(table + BAD_SUFFIX)

    async def commit_stamp(self, table: str, lease: str, number: int, stamp: str) -> None:
        """Fit `Lake.commit_stamp`."""
        self._take_number(table, lease, number)
        await self._write("stamp", table, Batch(), (lease,), stamp)

    async def history(self, table: str, limit: int) -> History:
        """Fit `Lake.history`."""
        await self._read("history", table)
        stored = self._storage.table(table)
        kept = stored.commits[stored.oldest :]
        newest = tuple(reversed(kept[-limit:]))
        return History(newest, complete=len(newest) < limit or newest[-1].version == 0)

    async def highest_offsets(self, table: str) -> PartitionOffsets:
        """Fit `Lake.highest_offsets`."""
        await self._read("newest", table)
        stored = self._storage.table(table)
        offsets = [(p, r.offset) for p, rows in stored.rows.items() for r in rows]
        noted = (place for places in stored.noted.values() for place in places)
        offsets += [(p, offset) for bad, _, p, offset, _ in noted if not bad]
        highest: dict[TopicPartition, int] = {}
        for p, offset in offsets:
            highest[p] = max(offset, highest.get(p, 0))
        return highest

    async def lowest_offsets(self, table: str) -> PartitionOffsets:
        """Fit `Lake.lowest_offsets`."""
        await self._read("lowest", table)
        stored = self._storage.table(table)
        offsets = [(p, r.offset) for p, rows in stored.rows.items() for r in rows]
        noted = (place for places in stored.noted.values() for place in places)
        offsets += [(p, offset) for bad, _, p, offset, _ in noted if not bad]
        return {p: min(o for q, o in offsets if q == p) for p, _ in offsets}

    async def lowest_bad_offsets(self, table: str) -> PartitionOffsets:
        """Fit `Lake.lowest_bad_offsets`."""
        await self._read("lowest_bad", table)
        offsets = [(p, offset) for _, p, offset, _ in self._bad_records(table)]
        return {p: min(o for q, o in offsets if q == p) for p, _ in offsets}

    async def small_files(self, table: str) -> tuple[SmallFiles, ...] | None:
        """Fit `Lake.small_files`."""
        await self._maintain("small_files", table)
        if not self.lists_files:
            return None
        return (SmallFiles((FILE_BYTES,) * self._storage.table(table).files),)

    async def compact(self, table: str, portion: Portion | None = None) -> Compaction:
        """Fit `Lake.compact`; a portion that has no files of `FILE_BYTES` merges nothing."""
        await self._maintain("compact", table)
        stored = self._storage.table(table)
        if portion is not None and portion.below_bytes <= FILE_BYTES:
            return Compaction(0, 0)
        removed, stored.files = stored.files, min(stored.files, 1)
        stored.add_commit()
        size = removed * FILE_BYTES
        return Compaction(removed, stored.files, size, size)

    async def cluster(self, table: str) -> Compaction:
        """Fit `Lake.cluster`."""
        await self._maintain("cluster", table)
        files = self._storage.table(table).files
        self._storage.table(table).add_commit()
        return Compaction(files, files, files * FILE_BYTES, files * FILE_BYTES)

    async def expire(self, table: str, keep_s: float) -> int:  # noqa: ARG002 - of the port
        """Fit `Lake.expire`; nothing is old."""
        await self._maintain("expire", table)
        return 0

    async def register(self, table: str, name: str) -> None:
        """Fit `Lake.register`; names that `taken` has are another's."""
        await self._maintain("register", table)
        if name in self.taken:
            raise TableRefused(f"injected failure: {name} is the table at {self.taken[name]}")
        self.registered[name] = table

    async def vacuum(self, table: str) -> None:
        """Fit `Lake.vacuum`."""
        await self._maintain("vacuum", table)
        self._storage.table(table).vacuums += 1

    async def release(self, table: str) -> None:
        """Fit `Lake.release`."""

    # --- inside ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def _changing(self, call: str, table: str) -> AsyncIterator[None]:
        """Enter a call that changes a table at its end, and that may fail before or behind it."""
        self._enter(call, table)
        try:
            failure = self._failure(_OF_WRITES)
            await asyncio.sleep(self.latency_s)
            if failure is Failure.CONFLICT:
                raise WriteConflict("DELTA_CONCURRENT_DELETE_READ")
            if failure is Failure.UNCLEAR:
                raise WriteUnclear("injected failure: the result is lost")
            yield
            if failure is Failure.UNCLEAR_LANDED:
                raise WriteUnclear("injected failure: the result is lost")
        finally:
            self._busy.discard(table)

    def _take_number(self, table: str, lease: str, number: int) -> None:
        stored = self._storage.table(table)
        if number <= stored.stamps.get(lease, 0):
            raise RuntimeError(f"Delta skips commit {number} of {lease}: it had a later one")
        stored.stamps[lease] = number

    def _failure(self, kinds: Collection[Failure]) -> Failure | None:
        if self._failures and self._failures[0] in kinds:
            return self._failures.popleft()
        return None

    def _bad_records(self, table: str) -> Collection[BadRecord]:
        """Return those of the table, by the one that is there when it is asked for them."""
        stored = self._storage.tables.get(table + BAD_SUFFIX)
        return () if stored is None else stored.bad_records

    def _enter(self, call: str, table: str) -> None:
        """Begin a call; the real lake has one session per table."""
        if table in self._busy:
            raise RuntimeError(f"{call} while another call for {table} is in flight")
        self._busy.add(table)
        self.calls.append((call, table))

    async def _read(self, call: str, table: str) -> None:
        self._enter(call, table)
        try:
            await self._reply()
        finally:
            self._busy.discard(table)

    async def _maintain(self, call: str, table: str) -> None:
        self.calls.append((call, table))
        await self._reply()

    async def _reply(self) -> None:
        await asyncio.sleep(self.latency_s)
        if self._failure({Failure.UNAVAILABLE}):
            raise LakeUnavailable("injected failure")

    async def _write(  # noqa: PLR0917 - the parts of a commit
        self,
        call: str,
        table: str,
        batch: Batch,
        leases: Sequence[str],
        stamp: str,
        writer: str | None = None,
    ) -> None:
        self._enter(call, table)
        try:
            of_bad = call.endswith("_bad")
            stored = self._storage.table(table + BAD_SUFFIX if of_bad else table)
            if batch.slices and table in self.refusing and not of_bad:
                await asyncio.sleep(self.latency_s)
                raise TableRefused(f"injected failure: the table {table} refuses rows")
            write = _Write(
                table=stored,
                bad_records=self._bad_records(table),
                of_bad=of_bad,
                table_name=table,
                batch=batch,
                leases=leases,
                staging=self._staging,
                stamp=stamp,
                writer=writer,
                failure=self._failure(_OF_WRITES),
                snapshot=len(stored.commits),
            )
            loop = asyncio.get_running_loop()
            loop.call_later(self.latency_s / 2, write.read)
            loop.call_later(self.latency_s, write.end)
            async with asyncio.timeout(self.write_timeout_s):
                await write.result
        except TimeoutError as exc:
            raise WriteUnclear(f"no result after {self.write_timeout_s:g} s") from exc
        finally:
            self._busy.discard(table)


@dataclass(slots=True, kw_only=True)
class _Write:
    """A write in flight, which ends whether or not the caller still waits for its result."""

    table: FakeTable
    bad_records: Collection[BadRecord]  # that have landed
    of_bad: bool  # bad records are written, not rows
    table_name: str
    batch: Batch
    leases: Sequence[str]
    staging: StagedRows
    stamp: str
    writer: str | None  # to be committed to the metadata; None: an append
    failure: Failure | None
    snapshot: int  # the number of versions when it began
    staged: tuple[Rows, Collection[str]] | None = None  # rows, and the files that are unreadable
    result: asyncio.Future[None] = field(default_factory=asyncio.Future)

    def read(self) -> None:
        """Read the staged files and the lease; they may be deleted afterwards."""
        self.staged = self.staged or self._rows()

    def end(self) -> None:
        """Commit or conflict, by Delta's rules."""
        fault = self._outcome()
        if self.result.done():
            return  # the caller was cancelled
        if fault is not None:
            self.result.set_exception(fault)
        else:
            self.result.set_result(None)

    def _outcome(self) -> Exception | None:
        unclear = WriteUnclear("injected failure: the result is lost")
        match self.failure:
            case Failure.UNCLEAR:
                return unclear
            case Failure.REFUSED:
                return TableRefused("injected failure: the table refuses the rows")
            case Failure.UNREADABLE:
                return StagedUnreadable("injected failure: a staged file is unreadable", ())
        rows, lost = self.staged or self._rows()
        if lost:
            return StagedUnreadable(f"missing or truncated: {sorted(lost)}", lost)
        if self.table.metadata_version >= self.snapshot or self.failure is Failure.CONFLICT:
            return WriteConflict("DELTA_METADATA_CHANGED")
        if self.writer is None:
            self._land(rows)
        else:
            self.table.change_metadata(self.stamp, self.writer)
        return unclear if self.failure is Failure.UNCLEAR_LANDED else None

    def _land(self, rows: Rows) -> None:
        if self.batch.slices and not any(rows.values()):
            return  # Delta makes no commit of no rows
        self.table.commit(rows, self.stamp)
        if self.of_bad:
            self.table.bad_records.update(
                self._identity(p, record) for p, records in rows.items() for record in records
            )

    def _identity(self, partition: TopicPartition, record: Record) -> BadRecord:
        topic_id = self.batch.topic_ids.get(partition.topic)
        return topic_id, partition, record.offset, record.timestamp_ms

    def _is_of(self, bad: Collection[Place], p: TopicPartition, r: Record) -> bool:
        """Whether a row is to be written here, and has not landed as a bad record."""
        if self.batch.landed_in_part and self._identity(p, r) in self.bad_records:
            return False
        return ((p, r.offset) in bad) is self.of_bad

    def _rows(self) -> tuple[Rows, Collection[str]]:
        """Return the rows of all slices, and the files that cannot be read."""
        rows: dict[TopicPartition, list[Record]] = {}
        lost = [lease for lease in self.leases if self.staging.rows(self.table_name, lease) is None]
        for part in self.batch.slices:
            staged = self.staging.rows(self.table_name, part.file)
            if staged is None:
                lost.append(part.file)
                continue
            bad = self.staging.bad(self.table_name, part.file)
            for p, records in staged.items():
                first, end = part.ranges.get(p.partition, (0, 0))
                taken = [
                    r
                    for r in records
                    if (part.whole or first <= r.offset < end) and self._is_of(bad, p, r)
                ]
                rows.setdefault(p, []).extend(taken)
        return rows, lost
