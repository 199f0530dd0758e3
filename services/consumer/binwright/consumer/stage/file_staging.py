"""Staged files in a directory or an object store: Parquet, whole and durable before announced.

A local file is written under another name, flushed to disk and renamed; an object appears when its
upload is complete. These calls block, so they run in threads of their own: storage that hangs
blocks nothing else.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

from binwright.consumer.decode.portions import DecodingMemory
from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import TABLE_LAYOUT
from binwright.protocol.ports.kafka import Records
from binwright.tables.ports import Footer, RecordMask, ValueDecoder

if TYPE_CHECKING:
    from binwright.consumer.stage.files import Files, Probe
    from binwright.consumer.stage.parquet import Encoded

T = TypeVar("T")

THREADS = 6
READERS = 3  # of them, which read footers: the others write
_SECRET = re.compile(r"(?<=//)[^/@]*@|\?.*$")


def redacted(url: str) -> str:
    """Return the address without credentials, for logs and messages."""
    return _SECRET.sub("", url)


class _Room:
    """A number of bytes, of which each has some in turn; who needs more has all of them."""

    def __init__(self, most_bytes: int) -> None:
        self._most = self._free = most_bytes
        self._turn, self._freed = asyncio.Lock(), asyncio.Event()

    @asynccontextmanager
    async def taken(self, need: int) -> AsyncIterator[None]:
        need = min(need, self._most)
        async with self._turn:  # else those who need little would go first
            while self._free < need:
                self._freed.clear()
                await self._freed.wait()
            self._free -= need
        try:
            yield
        finally:
            self._free += need
            self._freed.set()


class FileStaging:
    """A `Staging` at a path, a file://, s3:// (or s3a://), gs:// or abfss:// address.

    Addresses may have the options of `pyarrow.fs.FileSystem.from_uri`, as in
    `s3://bucket/prefix?region=eu-west-1&endpoint_override=http://minio:9000`. Credentials that the
    address does not name come from the environment or the machine.
    """

    def __init__(
        self,
        url: str,
        memory: DecodingMemory | None = None,
        *,
        encoded_bytes: int = sys.maxsize,
        moved: bool = False,
        in_place: bool = False,
    ) -> None:
        """Use this place.

        Args:
            url: Its path or address.
            memory: In which values are decoded, with all others of the process.
            encoded_bytes: Of rows that are encoded at a time; those of one file may be more.
            moved: Versions before staged in the directory above, see `Files`.
            in_place: Whether files are to become files of their tables, see `encode_for_table`.
        """
        self._url, self._memory, self._moved = url, memory or DecodingMemory(), moved
        self._in_place = in_place
        self._laid_out = set[str]()  # tables whose writers read files that are laid out as theirs
        self._encoding = _Room(encoded_bytes)
        self._threads = ThreadPoolExecutor(THREADS, "staging")
        self._opening: asyncio.Future[Files] | None = None

    async def __aenter__(self) -> Self:
        """Begin to open the file system in the background: importing Arrow takes a while."""
        self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the threads, without waiting for one that hangs."""
        if self._opening is not None:
            self._opening.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def __str__(self) -> str:
        """Return the address without credentials."""
        return redacted(self._url)

    async def prepare(self, owner: str = "") -> None:
        """Check that the location is writable, and its owner's; see `Staging.prepare`."""
        await self._run("be written", lambda files: files.prepare(owner))

    async def write_probe(self, name: str, content: str) -> "Probe":
        """Write a file into the location itself; see `Files.write_probe`.

        Raises:
            StagingUnavailable: It cannot be written.
        """
        return await self._run("be written", lambda files: files.write_probe(name, content))

    async def delete_probe(self, name: str, probe: "Probe") -> None:
        """Delete the file, and what was made for it; raise `StagingUnavailable`."""
        await self._run("delete a file", lambda files: files.delete_probe(name, probe))

    async def write(
        self,
        directory: str,
        name: str,
        rows: Mapping[TopicPartition, Sequence[Records]],
        footer: Footer,
        decoder: ValueDecoder | None = None,
        *,
        mask: RecordMask | None = None,
        by_day: bool = False,
        encoded: Callable[[], None] = lambda: None,
    ) -> int:
        """Write a file whole and durably; see `Staging.write`."""
        # What fails while rows are encoded is no fault of the location, nor told as one.
        execute = asyncio.get_running_loop().run_in_executor
        size = sum(each.bytes for records in rows.values() for each in records)
        async with self._encoding.taken(size):
            in_place = await self._is_for_table(directory, decoder)
            encode = partial(
                _encoded,
                *(rows, footer, decoder, self._memory, mask),
                in_place=in_place,
                by_day=by_day,
            )
            content, bad = await execute(self._threads, encode)
        encoded()
        return await self._run(
            f"take {directory}/{name}", lambda files: files.put_both(directory, name, content, bad)
        )

    async def keep(self, directory: str, name: str, content: bytes) -> None:
        """Write a file that stays; see `Staging.keep`."""
        await self._run(
            f"take {directory}/{name}", lambda files: files.keep(directory, name, content)
        )

    async def content(self, directory: str, name: str) -> bytes | None:
        """Return what a kept file has; see `Staging.content`."""
        return await self._run(
            f"read {directory}/{name}", lambda files: files.content(directory, name)
        )

    async def delete(self, directory: str, names: Collection[str]) -> None:
        """Delete files; see `Staging.delete`."""
        await self._run(
            f"delete files of {directory}", lambda files: files.delete(directory, names)
        )

    async def readable(self, directory: str, names: Collection[str]) -> Collection[str]:
        """Return which of these files are whole and readable; see `Staging.readable`."""
        return await self._run(f"read {directory}", lambda files: files.readable(directory, names))

    async def existing(self, directory: str, names: Collection[str]) -> Collection[str]:
        """Return which of these files exist; see `Staging.existing`."""
        return await self._run(f"list {directory}", lambda files: files.existing(directory, names))

    async def delete_all(self) -> None:
        """Delete the whole location: of a throw-away table. Raise `StagingUnavailable`."""
        await self._run("be deleted", lambda files: files.delete_all())

    async def footers(self, directory: str, names: Collection[str]) -> Mapping[str, Footer]:
        """Return what these files say of themselves; see `Staging.footers`."""
        ordered = sorted(names)

        async def read(begin: int) -> list[tuple[str, Footer | None]]:
            mine = ordered[begin::READERS]
            return await self._run(
                f"read {directory}",
                lambda files: [(name, files.footer(directory, name)) for name in mine],
            )

        parts = await asyncio.gather(*map(read, range(min(READERS, len(ordered)))))
        return {name: footer for part in parts for name, footer in part if footer is not None}

    async def directories(self) -> Collection[str]:
        """Return the names of directories; see `Staging.directories`."""
        return await self._run("be listed", lambda files: files.directories())

    async def sizes(self, directory: str) -> Mapping[str, int]:
        """Return the bytes of its staged files; see `Staging.sizes`."""
        return await self._run(f"list {directory}", lambda files: files.sizes(directory))

    async def older(self, directory: str, age_s: float) -> Collection[str]:
        """Return its old files; see `Staging.older`."""
        return await self._run(f"list {directory}", lambda files: files.older(directory, age_s))

    async def write_lease(self, directory: str, lease: str) -> None:
        """Write a file without rows; see `Staging.write_lease`."""
        await self._run(
            f"take {directory}/{lease}", lambda files: files.write_lease(directory, lease)
        )

    async def delete_other_leases(self, directory: str, lease: str) -> None:
        """Delete its other leases; see `Staging.delete_other_leases`."""
        await self._run(
            f"delete leases of {directory}",
            lambda files: files.delete_other_leases(directory, lease),
        )

    async def _is_for_table(self, directory: str, decoder: ValueDecoder | None) -> bool:
        """Whether a file is to become one of its table.

        Of decoded rows an earlier version's writer does not read the layout (†): so one of this
        version has to have begun to write the table.
        """
        if not self._in_place or decoder is None or directory in self._laid_out:
            return self._in_place
        if await self.content(directory, TABLE_LAYOUT) is None:
            return False
        self._laid_out.add(directory)
        return True

    async def _run(self, action: str, work: Callable[["Files"], T]) -> T:
        try:
            files = await self._open()
            execute = asyncio.get_running_loop().run_in_executor
            return await execute(self._threads, work, files)
        except (OSError, ValueError, NotImplementedError) as exc:  # what Arrow raises
            raise StagingUnavailable(
                f"the staging location {self} cannot {action}: {type(exc).__name__}: {exc}. Check "
                "staging.path, free space, and that this process may write there"
            ) from exc

    def _open(self) -> "asyncio.Future[Files]":
        """Return the file system, opened once; open it again if that failed."""
        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            execute = asyncio.get_running_loop().run_in_executor
            self._opening = opening = execute(self._threads, _open_files, self._url, self._moved)
        return opening


def _encoded(
    rows: Mapping[TopicPartition, Sequence[Records]],
    footer: Footer,
    decoder: ValueDecoder | None,
    memory: DecodingMemory,
    mask: RecordMask | None,
    *,
    in_place: bool,
    by_day: bool,
) -> "Encoded":
    from pyarrow import default_memory_pool  # noqa: PLC0415 - as below

    from binwright.consumer.stage import parquet  # noqa: PLC0415 - as below

    try:
        if in_place:
            return parquet.encode_for_table(rows, footer, decoder, memory, mask, by_day=by_day)
        return parquet.Encoded(parquet.encode(rows, footer, decoder, memory, mask))
    finally:
        default_memory_pool().release_unused()  # else each thread keeps its largest file's


def _open_files(url: str, moved: bool) -> "Files":
    from binwright.consumer.stage.files import Files  # noqa: PLC0415 - Arrow takes a while, in a thread

    return Files(url, moved=moved)
