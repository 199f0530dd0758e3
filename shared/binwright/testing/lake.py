"""A lake of dictionaries with Delta's rules: who wrote, what was skipped, what collided."""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from binwright.core.errors import LakeUnavailable, UserError, WriteConflict, WriteUnclear
from binwright.core.model import TopicPartition
from binwright.core.ports import Commit, History, Record

Rows = Mapping[TopicPartition, Sequence[Record]]


class Failure(Enum):
    """How the next call can end."""

    UNCLEAR_LANDED = "the write commits, but nobody hears of it"
    UNCLEAR = "the write ends without a verdict and never commits"
    CONFLICT = "another commit of this app id came between"
    UNAVAILABLE = "Spark does not answer (open, history, newest)"


@dataclass
class FakeTable:
    """One table: what its log would say, and the rows in the order they landed."""

    id: str
    commits: list[Commit] = field(default_factory=lambda: [Commit(0, None)])  # 0: the creation
    numbers: dict[str, int] = field(default_factory=dict)  # app id -> highest number
    changed: dict[str, int] = field(default_factory=dict)  # app id -> version of its last commit
    rows: dict[TopicPartition, list[Record]] = field(default_factory=dict)
    oldest: int = 0  # versions before it are forgotten

    def commit(self, app: str, number: int, rows: Rows, stamp: str | None) -> int:
        """Land `rows`; return the table's new version."""
        version = len(self.commits)
        self.commits.append(Commit(version, stamp))
        self.numbers[app], self.changed[app] = number, version
        for partition, records in rows.items():
            self.rows.setdefault(partition, []).extend(records)
        return version


class FakeStorage:
    """What all consumers write to; it outlives each of them, and so do writes in flight."""

    def __init__(self) -> None:
        self.tables: dict[str, FakeTable] = {}
        self._made = 0

    def create(self, topic: str) -> FakeTable:
        """Return the topic's table, a new one if there is none."""
        if topic not in self.tables:
            self._made += 1
            self.tables[topic] = FakeTable(f"table-{self._made}")
        return self.tables[topic]

    def table(self, topic: str) -> FakeTable:
        """Return the topic's table; raise `UserError` if there is none."""
        if topic not in self.tables:
            raise UserError(f"there is no table of {topic}")
        return self.tables[topic]

    def drop(self, topic: str) -> None:
        """Remove the table; the next `open` makes another, with another id."""
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
    """A `Lake`: one consumer's view of a `FakeStorage`.

    A write takes its snapshot at once and commits `latency_s` later, whether or not anybody still
    waits: cancel the caller (a killed process), and it lands all the same.
    """

    def __init__(
        self, storage: FakeStorage, *, latency_s: float = 0.0, write_timeout_s: float = 120.0
    ) -> None:
        self.latency_s = latency_s  # of every call; change it mid-test
        self.write_timeout_s = write_timeout_s
        self._storage = storage
        self._turn = asyncio.Lock()
        self._failures: deque[Failure] = deque()

    def fail_next(self, *failures: Failure) -> None:
        """Let the next calls that can fail so do it, one each, in this order."""
        self._failures.extend(failures)

    def mend(self) -> None:
        """Let every call succeed from now on."""
        self._failures.clear()

    async def open(self, topic: str) -> str:
        """Fit `Lake.open`."""
        await self._read()
        return self._storage.create(topic).id

    async def claim(self, topic: str, app: str, version: int) -> int | None:
        """Fit `Lake.claim`."""
        return await self._write(topic, {}, app, version, None)

    async def append(
        self, topic: str, rows: Rows, app: str, version: int, stamp: str
    ) -> int | None:
        """Fit `Lake.append`."""
        return await self._write(topic, rows, app, version, stamp)

    async def history(self, topic: str, after: int) -> History:
        """Fit `Lake.history`."""
        await self._read()
        table = self._storage.table(topic)
        found = table.commits[max(after + 1, table.oldest) :]
        return History(tuple(reversed(found)), complete=table.oldest <= after + 1)

    async def newest(
        self, topic: str, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Fit `Lake.newest`."""
        await self._read()
        rows = self._storage.table(topic).rows
        return {p: max(r.offset for r in rows[p]) for p in partitions if rows.get(p)}

    def _failure(self, *kinds: Failure) -> Failure | None:
        if self._failures and self._failures[0] in kinds:
            return self._failures.popleft()
        return None

    async def _read(self) -> None:
        async with self._turn:
            await asyncio.sleep(self.latency_s)
            if self._failure(Failure.UNAVAILABLE):
                raise LakeUnavailable("the fake lake was told to fail")

    async def _write(
        self, topic: str, rows: Rows, app: str, number: int, stamp: str | None
    ) -> int | None:
        async with self._turn:
            failure = self._failure(Failure.UNCLEAR_LANDED, Failure.UNCLEAR, Failure.CONFLICT)
            rows = {partition: tuple(records) for partition, records in rows.items()}
            table = self._storage.table(topic)
            skipped = number <= table.numbers.get(app, -1)
            begun = len(table.commits)
            write = _Write(table, rows, app, number, stamp, failure, begun, skipped)
            asyncio.get_running_loop().call_later(self.latency_s, write.end)
            try:
                async with asyncio.timeout(self.write_timeout_s):
                    return await write.verdict
            except TimeoutError as exc:
                raise WriteUnclear(f"no verdict after {self.write_timeout_s:g} s") from exc


@dataclass(frozen=True, slots=True)
class _Write:
    """A write on its way: it ends when its time comes, whoever still waits for the verdict."""

    table: FakeTable
    rows: Rows
    app: str
    number: int
    stamp: str | None
    failure: Failure | None
    snapshot: int  # versions there were when it began
    skipped: bool  # as high a number stood already
    verdict: asyncio.Future[int | None] = field(default_factory=asyncio.Future)

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
        unclear = WriteUnclear("the fake lake was told to lose the word")
        if self.failure is Failure.UNCLEAR:
            return unclear
        if self.skipped:
            return unclear if self.failure is Failure.UNCLEAR_LANDED else None
        overtaken = self.table.changed.get(self.app, -1) >= self.snapshot
        if overtaken or self.failure is Failure.CONFLICT:
            return WriteConflict(f"another commit of {self.app} came between")
        version = self.table.commit(self.app, self.number, self.rows, self.stamp)
        return unclear if self.failure is Failure.UNCLEAR_LANDED else version
