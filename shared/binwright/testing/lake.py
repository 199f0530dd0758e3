"""A `Lake` in memory, with Delta's rules for skipped and conflicting commits."""

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
    """Reads staged files, as Spark does: a `FakeStaging`."""

    def rows(self, topic: str, file: str) -> Rows | None:
        """Return a file's rows; None if it is missing or truncated."""


class Failure(Enum):
    """How a call can fail."""

    UNCLEAR_LANDED = "the write commits, but its result is lost"
    UNCLEAR = "the write never commits, and has no result"
    CONFLICT = "another commit of this app id came first"
    REFUSED = "the table rejects the rows"
    UNREADABLE = "a staged file could not be read"
    UNAVAILABLE = "Spark does not reply (calls other than writes)"


_OF_WRITES = frozenset(Failure) - {Failure.UNAVAILABLE}


@dataclass
class FakeTable:
    """One table: its log, and its rows in the order in which they landed."""

    owner: Table | None = None  # None: created by hand
    commits: list[Commit] = field(default_factory=lambda: [Commit(0, None)])  # 0: the creation
    numbers: dict[str, int] = field(default_factory=dict)  # app id -> highest number
    changed: dict[str, int] = field(default_factory=dict)  # app id -> version of its last commit
    rows: dict[TopicPartition, list[Record]] = field(default_factory=dict)
    files: int = 0
    oldest: int = 0  # versions before it are cleaned up
    vacuums: int = 0

    def commit(self, app: str, number: int, rows: Rows, stamp: str) -> int:
        """Land `rows`; return the table's new version."""
        version = self.add_commit(stamp)
        self.numbers[app], self.changed[app] = number, version
        for partition, records in rows.items():
            self.rows.setdefault(partition, []).extend(records)
        self.files += bool(rows)
        return version

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

    A write takes its snapshot at once, reads the staged files after half of `latency_s`, and
    commits after all of it, even if the caller is cancelled meanwhile, as if its process died.

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

    async def claim(self, topic: str, app: str, version: int, stamp: str) -> int | None:
        """Fit `Lake.claim`."""
        return await self._write("claim", topic, Batch(), app, version, stamp)

    async def append(
        self, topic: str, batch: Batch, app: str, version: int, stamp: str
    ) -> int | None:
        """Fit `Lake.append`."""
        return await self._write("append", topic, batch, app, version, stamp)

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
        self, call: str, topic: str, batch: Batch, app: str, number: int, stamp: str
    ) -> int | None:
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
                staging=self._staging,
                app=app,
                number=number,
                stamp=stamp,
                failure=self._failure(_OF_WRITES),
                snapshot=len(table.commits),
                skipped=number <= table.numbers.get(app, -1),
            )
            loop = asyncio.get_running_loop()
            loop.call_later(self.latency_s / 2, write.read)
            loop.call_later(self.latency_s, write.end)
            async with asyncio.timeout(self.write_timeout_s):
                return await write.result
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
    staging: StagedRows
    app: str
    number: int
    stamp: str
    failure: Failure | None
    snapshot: int  # the number of versions when it began
    skipped: bool  # the table had this or a higher number when it began
    found: tuple[Rows, Collection[str]] | None = None  # rows, and the files that are unreadable
    result: asyncio.Future[int | None] = field(default_factory=asyncio.Future)

    def read(self) -> None:
        """Read the staged files; they may be deleted afterwards."""
        self.found = self.found or self._rows()

    def end(self) -> None:
        """Commit, be skipped, or conflict, by Delta's rules."""
        outcome = self._outcome()
        if self.result.done():
            return  # the caller was cancelled
        if isinstance(outcome, Exception):
            self.result.set_exception(outcome)
        else:
            self.result.set_result(outcome)

    def _outcome(self) -> int | Exception | None:
        unclear = WriteUnclear("injected failure: the result is lost")
        match self.failure:
            case Failure.UNCLEAR:
                return unclear
            case Failure.REFUSED:
                return TableRefused("injected failure: the table refuses the rows")
            case Failure.UNREADABLE:
                return StagedUnreadable("injected failure: a staged file is unreadable", ())
        if self.skipped:
            return unclear if self.failure is Failure.UNCLEAR_LANDED else None
        rows, lost = self.found or self._rows()
        if lost:
            return StagedUnreadable(f"missing or truncated: {sorted(lost)}", lost)
        overtaken = self.table.changed.get(self.app, -1) >= self.snapshot
        if overtaken or self.failure is Failure.CONFLICT:
            return WriteConflict(f"another commit of {self.app} came first")
        version = self.table.commit(self.app, self.number, rows, self.stamp)
        return unclear if self.failure is Failure.UNCLEAR_LANDED else version

    def _rows(self) -> tuple[Rows, Collection[str]]:
        """Return the rows of all slices, and the files that cannot be read."""
        rows: dict[TopicPartition, list[Record]] = {}
        lost = []
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
