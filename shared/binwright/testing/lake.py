"""A `Lake` in memory, with Delta's rules for conflicting commits."""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from binwright.protocol.errors import (
    LakeUnavailable,
    StagedUnreadable,
    TableRefused,
    WriteConflict,
    WriteUnclear,
)
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.protocol.ports.lake import Batch, Commit, Compaction, History, Table, TableFiles

Rows = Mapping[TopicPartition, Sequence[Record]]
FILE_BYTES = 1_000  # of every data file


class StagedRows(Protocol):
    """Reads staged files and leases, as Spark does: a `FakeStaging`."""

    def rows(self, topic: str, file: str) -> Rows | None:
        """Return a file's rows; None if it is missing or truncated."""


class Failure(Enum):
    """How a call can fail."""

    UNCLEAR_LANDED = "the write commits, but its result is lost"
    UNCLEAR = "the write never commits, and has no result"
    CONFLICT = "another commit came first"
    REFUSED = "the table rejects the rows"
    UNREADABLE = "a staged file could not be read"
    UNAVAILABLE = "Spark does not reply (calls other than writes)"


_OF_WRITES = frozenset(Failure) - {Failure.UNAVAILABLE}


@dataclass
class FakeTable:
    """One table: its log, and its rows in the order in which they landed."""

    owner: Table | None = None  # None: created by hand
    commits: list[Commit] = field(default_factory=lambda: [Commit(0, None)])  # 0: the creation
    writer: str = ""  # by the metadata
    metadata_version: int = 0  # of the last commit that changed the metadata
    stamps: dict[str, int] = field(default_factory=dict)  # lease -> highest number sent
    rows: dict[TopicPartition, list[Record]] = field(default_factory=dict)
    files: int = 0
    oldest: int = 0  # versions before it are cleaned up
    vacuums: int = 0

    def commit(self, rows: Rows, stamp: str | None) -> int:
        """Land `rows`; return the table's new version."""
        for partition, records in rows.items():
            self.rows.setdefault(partition, []).extend(records)
        self.files += bool(rows)
        return self.add_commit(stamp)

    def change_metadata(self, stamp: str | None = None, writer: str | None = None) -> int:
        """Commit metadata, as a claim or a person's ALTER TABLE does; return the new version."""
        self.writer = self.writer if writer is None else writer
        self.metadata_version = self.add_commit(stamp)
        return self.metadata_version

    def add_commit(self, metadata: str | None = None) -> int:
        """Add a commit without rows, as by another client; return its version."""
        self.commits.append(Commit(len(self.commits), metadata))
        return len(self.commits) - 1


class FakeStorage:
    """The storage that all Spark servers share; it and writes in flight outlive each server."""

    def __init__(self) -> None:
        self.tables: dict[str, FakeTable] = {}

    def create(self, topic: str, owner: Table | None = None) -> FakeTable:
        """Return the topic's table; create it if there is none."""
        return self.tables.setdefault(topic, FakeTable(owner))

    def table(self, topic: str) -> FakeTable:
        """Return the topic's table; raise `TableRefused` if there is none."""
        if topic not in self.tables:
            raise TableRefused(f"there is no table of {topic}")
        return self.tables[topic]

    def drop(self, topic: str) -> None:
        """Remove the table; the next `open` creates another."""
        del self.tables[topic]

    def forget(self, topic: str, before: int) -> None:
        """Clean up the log: the history no longer has versions before `before`."""
        self.tables[topic].oldest = before

    def landed(self) -> Mapping[TopicPartition, Counter[int]]:
        """Return partition -> offset -> how often the tables hold it."""
        return {
            partition: Counter(record.offset for record in records)
            for table in self.tables.values()
            for partition, records in table.rows.items()
        }


class FakeLake:
    """A `Lake`: one process's client of a `FakeStorage`.

    A write takes its snapshot at once, reads the staged files and its lease after half of
    `latency_s`, and commits after all of it, even if the caller is cancelled meanwhile, as if its
    process died.

    Attributes:
        latency_s: Of every call; tests may change it at any time.
        refusing: Topics whose tables refuse every append with rows.
        calls: All calls so far: (name, topic).
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

    async def open(self, table: Table) -> None:
        """Fit `Lake.open`."""
        await self._read("open", table.topic)
        found = self._storage.create(table.topic, table)
        found.owner = found.owner or table
        if found.owner != table:
            raise TableRefused(f"the table of {table.topic} belongs to {found.owner}")

    async def claim(self, topic: str, writer: str, stamp: str) -> None:
        """Fit `Lake.claim`."""
        await self._write("claim", topic, Batch(), (), stamp, writer)

    async def append(self, topic: str, batch: Batch, lease: str, stamp: str) -> None:
        """Fit `Lake.append`."""
        await self._write("append", topic, batch, (lease,), stamp)

    async def commit_stamp(self, topic: str, lease: str, number: int, stamp: str) -> None:
        """Fit `Lake.commit_stamp`."""
        table = self._storage.table(topic)
        if number <= table.stamps.get(lease, 0):
            raise RuntimeError(f"Delta skips stamp {number} of {lease}: it had a later one")
        table.stamps[lease] = number
        await self._write("stamp", topic, Batch(), (lease,), stamp)

    async def history(self, topic: str, limit: int) -> History:
        """Fit `Lake.history`."""
        await self._read("history", topic)
        table = self._storage.table(topic)
        kept = table.commits[table.oldest :]
        found = tuple(reversed(kept[-limit:]))
        return History(found, complete=len(found) < limit or found[-1].version == 0)

    async def highest_offsets(self, topic: str) -> Mapping[int, int]:
        """Fit `Lake.highest_offsets`."""
        await self._read("newest", topic)
        rows = self._storage.table(topic).rows
        return {p.partition: max(r.offset for r in found) for p, found in rows.items() if found}

    async def files(self, topic: str) -> TableFiles:
        """Fit `Lake.files`."""
        await self._maintain("files", topic)
        count = self._storage.table(topic).files
        return TableFiles(count, count * FILE_BYTES)

    async def compact(self, topic: str) -> Compaction:
        """Fit `Lake.compact`."""
        await self._maintain("compact", topic)
        table = self._storage.table(topic)
        removed, table.files = table.files, min(table.files, 1)
        table.add_commit()
        return Compaction(removed, table.files)

    async def vacuum(self, topic: str) -> None:
        """Fit `Lake.vacuum`."""
        await self._maintain("vacuum", topic)
        self._storage.table(topic).vacuums += 1

    async def release(self, topic: str) -> None:
        """Fit `Lake.release`."""

    # --- inside ----------------------------------------------------------------------------------

    def _failure(self, kinds: Collection[Failure]) -> Failure | None:
        if self._failures and self._failures[0] in kinds:
            return self._failures.popleft()
        return None

    def _enter(self, call: str, topic: str) -> None:
        """Begin a call; the real lake has one session per table."""
        if topic in self._busy:
            raise RuntimeError(f"{call} while another call for {topic} is in flight")
        self._busy.add(topic)
        self.calls.append((call, topic))

    async def _read(self, call: str, topic: str) -> None:
        self._enter(call, topic)
        try:
            await self._reply()
        finally:
            self._busy.discard(topic)

    async def _maintain(self, call: str, topic: str) -> None:
        self.calls.append((call, topic))
        await self._reply()

    async def _reply(self) -> None:
        await asyncio.sleep(self.latency_s)
        if self._failure({Failure.UNAVAILABLE}):
            raise LakeUnavailable("injected failure")

    async def _write(  # noqa: PLR0913, PLR0917 - the parts of a commit
        self,
        call: str,
        topic: str,
        batch: Batch,
        leases: Sequence[str],
        stamp: str,
        writer: str | None = None,
    ) -> None:
        self._enter(call, topic)
        try:
            table = self._storage.table(topic)
            if batch.slices and topic in self.refusing:
                await asyncio.sleep(self.latency_s)
                raise TableRefused(f"injected failure: the table of {topic} refuses rows")
            write = _Write(
                table=table,
                topic=topic,
                batch=batch,
                leases=leases,
                staging=self._staging,
                stamp=stamp,
                writer=writer,
                failure=self._failure(_OF_WRITES),
                snapshot=len(table.commits),
            )
            loop = asyncio.get_running_loop()
            loop.call_later(self.latency_s / 2, write.read)
            loop.call_later(self.latency_s, write.end)
            async with asyncio.timeout(self.write_timeout_s):
                await write.result
        except TimeoutError as exc:
            raise WriteUnclear(f"no result after {self.write_timeout_s:g} s") from exc
        finally:
            self._busy.discard(topic)


@dataclass(slots=True, kw_only=True)
class _Write:
    """A write in flight, which ends whether or not the caller still waits for its result."""

    table: FakeTable
    topic: str
    batch: Batch
    leases: Sequence[str]
    staging: StagedRows
    stamp: str
    writer: str | None  # to be committed to the metadata; None: an append
    failure: Failure | None
    snapshot: int  # the number of versions when it began
    found: tuple[Rows, Collection[str]] | None = None  # rows, and the files that are unreadable
    result: asyncio.Future[None] = field(default_factory=asyncio.Future)

    def read(self) -> None:
        """Read the staged files and the lease; they may be deleted afterwards."""
        self.found = self.found or self._rows()

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
        rows, lost = self.found or self._rows()
        if lost:
            return StagedUnreadable(f"missing or truncated: {sorted(lost)}", lost)
        if self.table.metadata_version >= self.snapshot or self.failure is Failure.CONFLICT:
            return WriteConflict("DELTA_METADATA_CHANGED")
        if self.writer is None:
            self.table.commit(rows, self.stamp)
        else:
            self.table.change_metadata(self.stamp, self.writer)
        return unclear if self.failure is Failure.UNCLEAR_LANDED else None

    def _rows(self) -> tuple[Rows, Collection[str]]:
        """Return the rows of all slices, and the files that cannot be read."""
        rows: dict[TopicPartition, list[Record]] = {}
        lost = [lease for lease in self.leases if self.staging.rows(self.topic, lease) is None]
        for part in self.batch.slices:
            staged = self.staging.rows(self.topic, part.file)
            if staged is None:
                lost.append(part.file)
                continue
            for p, records in staged.items():
                first, end = part.ranges.get(p.partition, (0, 0))
                taken = [r for r in records if part.whole or first <= r.offset < end]
                rows.setdefault(p, []).extend(taken)
        return rows, lost
