"""A lake of dictionaries with Delta's rules: who wrote, what was skipped, what collided."""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from binwright.core.errors import (
    LakeUnavailable,
    StagedUnreadable,
    TableRefused,
    WriteConflict,
    WriteUnclear,
)
from binwright.core.model import TopicPartition
from binwright.core.ports import Commit, Compaction, History, Record, Table, TableFiles
from binwright.core.writer.batch import Batch

Rows = Mapping[TopicPartition, Sequence[Record]]
FILE_BYTES = 1_000  # so large is every file


class StagedRows(Protocol):
    """Where the fake Spark reads staged files: a `FakeStaging`."""

    def rows(self, topic: str, file: str) -> Rows | None:
        """Return what is in a file; None if it is gone or torn."""


class Failure(Enum):
    """How the next call can end."""

    UNCLEAR_LANDED = "the write commits, but its answer is lost"
    UNCLEAR = "the write ends without a verdict and never commits"
    CONFLICT = "another commit of this app id came between"
    REFUSED = "the table does not take the rows"
    UNREADABLE = "a staged file could not be read"
    UNAVAILABLE = "Spark does not answer (all but writes)"


_OF_WRITES = frozenset(Failure) - {Failure.UNAVAILABLE}


@dataclass
class FakeTable:
    """One table: what its log would say, and the rows in the order they landed."""

    owner: Table | None = None  # None: landed by version 0.1
    commits: list[Commit] = field(default_factory=lambda: [Commit(0, None)])  # 0: the creation
    numbers: dict[str, int] = field(default_factory=dict)  # app id -> highest number
    changed: dict[str, int] = field(default_factory=dict)  # app id -> version of its last commit
    rows: dict[TopicPartition, list[Record]] = field(default_factory=dict)
    files: int = 0
    oldest: int = 0  # versions before it are forgotten
    vacuums: int = 0

    def commit(self, app: str, number: int, rows: Rows, stamp: str | None) -> int:
        """Land `rows`; return the table's new version."""
        version = self.note(stamp)
        self.numbers[app], self.changed[app] = number, version
        for partition, records in rows.items():
            self.rows.setdefault(partition, []).extend(records)
        self.files += bool(rows)
        return version

    def note(self, metadata: str | None = None) -> int:
        """Add a commit of somebody's that lands nothing; return its version."""
        self.commits.append(Commit(len(self.commits), metadata))
        return len(self.commits) - 1


class FakeStorage:
    """What all Spark servers write to; it outlives each of them, and so do writes in flight."""

    def __init__(self) -> None:
        self.tables: dict[str, FakeTable] = {}

    def create(self, topic: str, owner: Table | None = None) -> FakeTable:
        """Return the topic's table, a new one if there is none."""
        return self.tables.setdefault(topic, FakeTable(owner))

    def table(self, topic: str) -> FakeTable:
        """Return the topic's table; raise `TableRefused` if there is none."""
        if topic not in self.tables:
            raise TableRefused(f"there is no table of {topic}")
        return self.tables[topic]

    def drop(self, topic: str) -> None:
        """Remove the table; the next `open` makes another."""
        del self.tables[topic]

    def forget(self, topic: str, before: int) -> None:
        """Clean the log: the history no longer tells of versions before `before`."""
        self.tables[topic].oldest = before

    def landed(self) -> Mapping[TopicPartition, Counter[int]]:
        """Return how often each offset of each partition stands in the tables."""
        return {
            partition: Counter(record.offset for record in records)
            for table in self.tables.values()
            for partition, records in table.rows.items()
        }


class FakeLake:
    """A `Lake`: one process's view of a `FakeStorage`.

    A write takes its snapshot at once, reads the staged files after half of `latency_s`, and
    commits after all of it, whether or not anybody still waits: cancel the caller (a killed
    process), and it lands all the same.

    Attributes:
        latency_s: Of every call; change it mid-test.
        refusing: Tables that refuse every append with rows.
        calls: What was asked: (name, topic).
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
        """Let the next calls that can fail so do it, one each, in this order."""
        self._failures.extend(failures)

    def mend(self) -> None:
        """Let every call succeed from now on."""
        self._failures.clear()

    # --- the port --------------------------------------------------------------------------------

    async def open(self, table: Table) -> None:
        """Fit `Lake.open`."""
        await self._read("open", table.topic)
        found = self._storage.create(table.topic, table)
        found.owner = found.owner or table
        if found.owner != table:
            raise TableRefused(f"the table of {table.topic} belongs to {found.owner}")

    async def claim(self, topic: str, app: str, version: int, stamp: str | None) -> int | None:
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

    async def newest(self, topic: str) -> Mapping[int, int]:
        """Fit `Lake.newest`."""
        await self._read("newest", topic)
        rows = self._storage.table(topic).rows
        return {p.partition: max(r.offset for r in found) for p, found in rows.items() if found}

    async def files(self, topic: str) -> TableFiles:
        """Fit `Lake.files`."""
        await self._beside("files", topic)
        count = self._storage.table(topic).files
        return TableFiles(count, count * FILE_BYTES)

    async def compact(self, topic: str) -> Compaction:
        """Fit `Lake.compact`."""
        await self._beside("compact", topic)
        table = self._storage.table(topic)
        removed, table.files = table.files, min(table.files, 1)
        table.note()
        return Compaction(removed, table.files)

    async def vacuum(self, topic: str) -> None:
        """Fit `Lake.vacuum`."""
        await self._beside("vacuum", topic)
        self._storage.table(topic).vacuums += 1

    async def release(self, topic: str) -> None:
        """Fit `Lake.release`."""

    # --- inside ----------------------------------------------------------------------------------

    def _failure(self, kinds: Collection[Failure]) -> Failure | None:
        if self._failures and self._failures[0] in kinds:
            return self._failures.popleft()
        return None

    def _enter(self, call: str, topic: str) -> None:
        """Take the table's turn: the real lake has one session for each."""
        if topic in self._busy:
            raise RuntimeError(f"{call} while another call for {topic} is under way")
        self._busy.add(topic)
        self.calls.append((call, topic))

    async def _read(self, call: str, topic: str) -> None:
        self._enter(call, topic)
        try:
            await self._answer()
        finally:
            self._busy.discard(topic)

    async def _beside(self, call: str, topic: str) -> None:
        self.calls.append((call, topic))
        await self._answer()

    async def _answer(self) -> None:
        await asyncio.sleep(self.latency_s)
        if self._failure({Failure.UNAVAILABLE}):
            raise LakeUnavailable("the fake lake was told to fail")

    async def _write(  # noqa: PLR0913, PLR0917 - what a commit is made of
        self, call: str, topic: str, batch: Batch, app: str, number: int, stamp: str | None
    ) -> int | None:
        self._enter(call, topic)
        try:
            table = self._storage.table(topic)
            if batch.slices and topic in self.refusing:
                await asyncio.sleep(self.latency_s)
                raise TableRefused(f"the fake table of {topic} was told to refuse rows")
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
                return await write.verdict
        except TimeoutError as exc:
            raise WriteUnclear(f"no verdict after {self.write_timeout_s:g} s") from exc
        finally:
            self._busy.discard(topic)


@dataclass(slots=True, kw_only=True)
class _Write:
    """A write on its way: it ends when its time comes, whoever still waits for the verdict."""

    table: FakeTable
    topic: str
    batch: Batch
    staging: StagedRows
    app: str
    number: int
    stamp: str | None
    failure: Failure | None
    snapshot: int  # versions there were when it began
    skipped: bool  # as high a number stood already
    found: tuple[Rows, Collection[str]] | None = None  # what was read, and what could not be
    verdict: asyncio.Future[int | None] = field(default_factory=asyncio.Future)

    def read(self) -> None:
        """Read the staged files; what happens to them afterwards does not matter."""
        self.found = self.found or self._rows()

    def end(self) -> None:
        """Land, be skipped or collide, as Delta would have it."""
        outcome = self._outcome()
        if self.verdict.done():
            return  # the caller is gone
        if isinstance(outcome, Exception):
            self.verdict.set_exception(outcome)
        else:
            self.verdict.set_result(outcome)

    def _outcome(self) -> int | Exception | None:
        unclear = WriteUnclear("the fake lake was told to lose the answer")
        match self.failure:
            case Failure.UNCLEAR:
                return unclear
            case Failure.REFUSED:
                return TableRefused("the fake lake was told to refuse")
            case Failure.UNREADABLE:
                return StagedUnreadable("the fake lake was told to read nothing", ())
        if self.skipped:
            return unclear if self.failure is Failure.UNCLEAR_LANDED else None
        rows, lost = self.found or self._rows()
        if lost:
            return StagedUnreadable(f"gone or torn: {sorted(lost)}", lost)
        overtaken = self.table.changed.get(self.app, -1) >= self.snapshot
        if overtaken or self.failure is Failure.CONFLICT:
            return WriteConflict(f"another commit of {self.app} came between")
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
