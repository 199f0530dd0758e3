"""A `Staging` in memory that can fail, be full or slow, and lose or truncate files."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record

Rows = Mapping[TopicPartition, Sequence[Record]]
ROW_OVERHEAD = 16  # bytes of each row in a file besides its key and value


@dataclass(slots=True)
class FakeStagedFile:
    """One file."""

    rows: Rows
    bytes: int
    at: float  # when it was written, on the loop's clock
    torn: bool = False


class FakeStaging:
    """A `Staging` that all consumers and writers of a test share.

    Attributes:
        files: Topic -> name -> file.
        leases: Topic -> names of its table's leases.
        latency_s: How long a write takes.
        write_error: Why writes fail; empty: they succeed.
        capacity: The limit on all files, bytes; None: unlimited.
        written: How many files were written.
    """

    def __init__(self, *, latency_s: float = 0.0) -> None:
        self.files: dict[str, dict[str, FakeStagedFile]] = {}
        self.leases: dict[str, set[str]] = {}
        self.latency_s = latency_s
        self.write_error = ""
        self.capacity: int | None = None
        self.written = 0

    # --- the port --------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Fit `Staging.prepare`."""
        await asyncio.sleep(0)
        self._refuse()

    async def write(self, topic: str, name: str, rows: Rows) -> int:
        """Fit `Staging.write`."""
        await asyncio.sleep(self.latency_s)
        self._refuse()
        size = sum(
            len(r.key or b"") + len(r.value or b"") + ROW_OVERHEAD
            for records in rows.values()
            for r in records
        )
        if self.capacity is not None and self.bytes + size > self.capacity:
            raise StagingUnavailable("injected failure: No space left on device")
        kept = {partition: tuple(records) for partition, records in rows.items()}
        now = asyncio.get_running_loop().time()
        self.files.setdefault(topic, {})[name] = FakeStagedFile(kept, size, now)
        self.written += 1
        return size

    async def delete(self, topic: str, names: Collection[str]) -> None:
        """Fit `Staging.delete`."""
        await asyncio.sleep(0)
        for name in names:
            self.files.get(topic, {}).pop(name, None)

    async def write_lease(self, topic: str, lease: str) -> None:
        """Fit `Staging.write_lease`."""
        await asyncio.sleep(0)
        self._refuse()
        self.leases.setdefault(topic, set()).add(lease)

    async def delete_other_leases(self, topic: str, lease: str) -> None:
        """Fit `Staging.delete_other_leases`."""
        await asyncio.sleep(0)
        self._refuse()
        self.leases[topic] = self.leases.get(topic, set()) & {lease}

    async def readable(self, topic: str, names: Collection[str]) -> Collection[str]:
        """Fit `Staging.readable`."""
        await asyncio.sleep(0)
        return {name for name in names if self.rows(topic, name) is not None}

    async def existing(self, topic: str, names: Collection[str]) -> Collection[str]:
        """Fit `Staging.existing`."""
        await asyncio.sleep(0)
        there = {*self.files.get(topic, {}), *self.leases.get(topic, ())}
        return there.intersection(names)

    async def collect(self, topic: str, older_than_s: float) -> int:
        """Fit `Staging.collect`."""
        await asyncio.sleep(0)
        before = asyncio.get_running_loop().time() - older_than_s
        files = self.files.get(topic, {})
        old = [name for name, file in files.items() if file.at < before]
        for name in old:
            del files[name]
        return len(old)

    # --- for the fake lake and for tests ---------------------------------------------------------

    def rows(self, topic: str, file: str) -> Rows | None:
        """Return the rows of a file or lease; None if it is lost or truncated."""
        if file in self.leases.get(topic, ()):
            return {}
        found = self.files.get(topic, {}).get(file)
        return None if found is None or found.torn else found.rows

    @property
    def bytes(self) -> int:
        """Return the size of all files, bytes."""
        return sum(file.bytes for files in self.files.values() for file in files.values())

    def lose(self, topic: str) -> int:
        """Remove all files of a topic; return how many."""
        return len(self.files.pop(topic, {}))

    def tear(self, topic: str) -> int:
        """Truncate all files of a topic, which makes them unreadable; return how many."""
        files = self.files.get(topic, {})
        for file in files.values():
            file.torn = True
        return len(files)

    def _refuse(self) -> None:
        if self.write_error:
            raise StagingUnavailable(f"injected failure: {self.write_error}")
