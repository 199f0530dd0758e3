"""A `Staging` in memory that can fail, be full or slow, and lose or truncate files."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.model import TopicPartition, newest
from binwright.protocol.ports.kafka import Record, Records
from binwright.tables.ports import Footer, RecordMask, ValueDecoder
from binwright.testing.lake_storage import Place
from binwright.testing.records import Rows, in_rows

ROW_OVERHEAD = 16  # bytes of each row in a file besides its key and value


def _first(bad: Collection[Place]) -> str:
    return f"{min(bad)[0]} at offset {min(bad)[1]}: injected" if bad else ""


def footer_of(rows: Rows, topic_id: str | None = None) -> Footer:
    """Return the footer of a file whose ranges end with their first and last rows."""
    ends = {p.partition: (r[0].offset, r[-1].offset + 1) for p, r in rows.items() if r}
    return Footer(topic_id, sum(map(len, rows.values())), ends, newest_ms=_newest_ms(rows))


def _newest_ms(rows: Rows) -> int | None:
    return newest(*(r.timestamp_ms for records in rows.values() for r in records))


@dataclass(slots=True)
class FakeStagedFile:
    """One file."""

    rows: Rows
    footer: Footer
    bytes: int
    at: float  # when it was written, on the loop's clock
    bad: frozenset[Place] = frozenset()  # the rows that could not be decoded
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
        is_bad: Tells of each row that is decoded whether that fails; asked each time it is staged.
        is_skipped: Tells of each row that is decoded whether it is left out; asked like `is_bad`.
        kept: Topic, name -> content of a file that is not of rows.
        in_place: Whether files are laid out as their tables.
        by_day: Names of the files whose table is partitioned by day.
    """

    def __init__(self, *, latency_s: float = 0.0) -> None:
        self.files: dict[str, dict[str, FakeStagedFile]] = {}
        self.leases: dict[str, set[str]] = {}
        self.latency_s = latency_s
        self.write_error = ""
        self.capacity: int | None = None
        self.written = 0
        self.is_bad: Callable[[Record], bool] = lambda _: False
        self.is_skipped: Callable[[Record], bool] = lambda _: False
        self.kept: dict[tuple[str, str], bytes] = {}
        self.in_place = False
        self.by_day = set[str]()
        self.owner = ""

    # --- the port --------------------------------------------------------------------------------

    async def prepare(self, owner: str = "") -> None:
        """Fit `Staging.prepare`."""
        await asyncio.sleep(0)
        self._refuse()
        if owner:
            self.owner = self.owner or owner
            if self.owner != owner:
                raise StagingUnavailable(f"it is of {self.owner}, and this is {owner}")

    async def write(
        self,
        directory: str,
        name: str,
        rows: Mapping[TopicPartition, Sequence[Records]],
        footer: Footer,
        decoder: ValueDecoder | None = None,
        *,
        mask: RecordMask | None = None,  # noqa: ARG002 - fakes have no bytes to mask
        by_day: bool = False,
        encoded: Callable[[], None] = lambda: None,
    ) -> int:
        """Fit `Staging.write`."""
        encoded()
        await asyncio.sleep(self.latency_s)
        self._refuse()
        if by_day:
            self.by_day.add(name)
        kept = {partition: tuple(in_rows(records)) for partition, records in rows.items()}
        size = sum(
            len(r.key or b"") + len(r.value or b"") + ROW_OVERHEAD
            for records in kept.values()
            for r in records
        )
        if self.capacity is not None and self.bytes + size > self.capacity:
            raise StagingUnavailable("injected failure: No space left on device")
        bad: frozenset[Place] = frozenset()
        columns = None if decoder is None else decoder.columns
        newest_ms, skipped = _newest_ms(kept), 0
        if columns is not None:
            count = sum(map(len, kept.values()))
            kept = {p: tuple(r for r in rs if not self.is_skipped(r)) for p, rs in kept.items()}
            skipped = count - sum(map(len, kept.values()))
            every = ((p, r) for p, records in kept.items() for r in records)
            bad = frozenset((p, r.offset) for p, r in every if self.is_bad(r))
        now = asyncio.get_running_loop().time()
        settings = "" if decoder is None else decoder.settings
        footer = replace(
            footer,
            columns=columns,
            rows=sum(map(len, kept.values())),
            bad=len(bad),
            skipped=skipped,
            fault=_first(bad),
            decoded_by=settings,
            newest_ms=newest_ms,
            proposed=() if decoder is None else decoder.proposed,
            as_table=self.in_place and columns is not None,
        )
        self.files.setdefault(directory, {})[name] = FakeStagedFile(kept, footer, size, now, bad)
        self.written += 1
        return size

    async def keep(self, directory: str, name: str, content: bytes) -> None:
        """Fit `Staging.keep`."""
        await asyncio.sleep(self.latency_s)
        self._refuse()
        self.kept[directory, name] = content

    async def content(self, directory: str, name: str) -> bytes | None:
        """Fit `Staging.content`."""
        await asyncio.sleep(0)
        self._refuse()
        return self.kept.get((directory, name))

    async def delete(self, directory: str, names: Collection[str]) -> None:
        """Fit `Staging.delete`."""
        await asyncio.sleep(0)
        for name in names:
            self.files.get(directory, {}).pop(name, None)
            self.kept.pop((directory, name), None)

    async def write_lease(self, directory: str, lease: str) -> None:
        """Fit `Staging.write_lease`."""
        await asyncio.sleep(0)
        self._refuse()
        self.leases.setdefault(directory, set()).add(lease)

    async def delete_other_leases(self, directory: str, lease: str) -> None:
        """Fit `Staging.delete_other_leases`."""
        await asyncio.sleep(0)
        self._refuse()
        self.leases[directory] = self.leases.get(directory, set()) & {lease}

    async def readable(self, directory: str, names: Collection[str]) -> Collection[str]:
        """Fit `Staging.readable`."""
        await asyncio.sleep(0)
        return {name for name in names if self.rows(directory, name) is not None}

    async def existing(self, directory: str, names: Collection[str]) -> Collection[str]:
        """Fit `Staging.existing`."""
        await asyncio.sleep(0)
        kept = (file for kept_in, file in self.kept if kept_in == directory)
        there = {*self.files.get(directory, {}), *self.leases.get(directory, ()), *kept}
        return there.intersection(names)

    async def footers(self, directory: str, names: Collection[str]) -> Mapping[str, Footer]:
        """Fit `Staging.footers`."""
        await asyncio.sleep(0)
        files = self.files.get(directory, {})
        return {n: files[n].footer for n in names if n in files and not files[n].torn}

    async def directories(self) -> Collection[str]:
        """Fit `Staging.directories`."""
        await asyncio.sleep(0)
        return {*self.files, *self.leases}

    async def sizes(self, directory: str) -> Mapping[str, int]:
        """Fit `Staging.sizes`."""
        await asyncio.sleep(0)
        self._refuse()
        return {name: file.bytes for name, file in self.files.get(directory, {}).items()}

    async def older(self, directory: str, age_s: float) -> Collection[str]:
        """Fit `Staging.older`."""
        await asyncio.sleep(0)
        before = asyncio.get_running_loop().time() - age_s
        return {name for name, file in self.files.get(directory, {}).items() if file.at <= before}

    # --- for the fake lake and for tests ---------------------------------------------------------

    def rows(self, directory: str, file: str) -> Rows | None:
        """Return the rows of a file or lease; None if it is lost or truncated."""
        if file in self.leases.get(directory, ()):
            return {}
        staged = self.files.get(directory, {}).get(file)
        return None if staged is None or staged.torn else staged.rows

    def bad(self, directory: str, file: str) -> Collection[Place]:
        """Return the rows of a file that could not be decoded."""
        staged = self.files.get(directory, {}).get(file)
        return staged.bad if staged else ()

    @property
    def bytes(self) -> int:
        """Return the size of all files, bytes."""
        return sum(file.bytes for files in self.files.values() for file in files.values())

    def lose(self, directory: str) -> int:
        """Remove all files of a directory; return how many."""
        return len(self.files.pop(directory, {}))

    def tear(self, directory: str) -> int:
        """Truncate all files of a directory, which makes them unreadable; return how many."""
        files = self.files.get(directory, {})
        for file in files.values():
            file.torn = True
        return len(files)

    def _refuse(self) -> None:
        if self.write_error:
            raise StagingUnavailable(f"injected failure: {self.write_error}")
