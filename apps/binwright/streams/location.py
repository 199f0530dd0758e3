"""Where a stream or a recording is: a file, standard input or output, or a Delta table.

Every command that takes one names it in the same way, and opens it here.
"""

import asyncio
import os
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select
from typing import IO, TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlparse

import typer
from rich.markup import escape

from binwright.cli.embedded_spark import spark_connect
from binwright.cli.options import settings_at
from binwright.cli.terminal import Console
from binwright.protocol.errors import SettingsError, StreamError
from binwright.protocol.metrics import Measurement
from binwright.protocol.model import BytesPerSecond
from binwright.streams.recording import FileRecordingWriter, RecordedMeasurement, RecordingWriter
from binwright.streams.stream_file import ROW_S, StreamFile, TimedStream
from binwright.streams.streams import CompactStream

if TYPE_CHECKING:
    from binwright.lake.lake_reader import LakeReader

DEFAULT_ROW_S = ROW_S
NAMES = "a file, - (standard input or output), or delta://PATH"

Stream = Annotated[
    str | None,
    typer.Option(help="A stream or a recording: a file, - (standard input), or delta://PATH."),
]
RowSeconds = Annotated[
    float,
    typer.Option(
        "--row-s",
        min=0.1,
        help="Seconds that a row lasts: of a stream, which does not say, or made of a recording.",
    ),
]
StreamCapacity = Annotated[
    float | None,
    typer.Option(
        min=1.0,
        help="A stream's 100 per cent, bytes/s; else the settings' capacity of a consumer.",
    ),
]

STANDARD = "-"
TABLE_SCHEME = "delta://"
FILE_PORTION_S = 1.0
TABLE_PORTION_S = 30.0  # one commit each
COMMIT_BYTES = 32 << 20
RATE_BYTES = 64  # of JSON, about, for each partition of a measurement
STDIN = 0
PIECE_BYTES = 1 << 20
WAIT_S = 0.2  # longest wait for input: a cancellation waits for it
SHOW_EVERY = 100  # items

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StreamLocation:
    """A file of either form, `-` (standard input or output), or `delta://PATH` through Spark.

    Attributes:
        console: For progress.
        directory: For copies of what is not a file, and an embedded Spark's data and logs.
        name: As given by the user.
        spark: A Spark Connect server; None: one is embedded.
    """

    console: Console
    directory: Path
    name: str
    spark: str | None = None

    @property
    def table(self) -> str | None:
        """Return the table's path as the Spark server sees it; None for a file.

        Raises:
            SettingsError: Nothing follows `delta://`.
        """
        if not self.name.startswith(TABLE_SCHEME):
            return None
        path = self.name.removeprefix(TABLE_SCHEME)
        if not path:
            raise SettingsError(f"{self.name}: name a directory or prefix after {TABLE_SCHEME}")
        return path if urlparse(path).scheme else str(Path(path).absolute())

    async def fetch(self) -> StreamFile:
        """Return it as a file: a table and standard input are copied into `directory` first.

        Raises:
            StreamError: There is no such table, or there is no room.
            LakeUnavailable, EmbeddedError: Spark fails or does not start.
        """
        if self.name == STANDARD:
            copied = self.directory / "standard-input"
            await copy_standard_input(copied)
            return StreamFile(copied, "standard input")
        if (table := self.table) is None:
            return StreamFile(Path(self.name))
        from binwright.streams.table import copy_table  # noqa: PLC0415 - as in `lake`

        copied = self.directory / "recording.jsonl"
        async with self.lake() as lake:
            await copy_table(lake, table, copied)
        return StreamFile(copied, self.name)

    async def read(
        self, row_s: float = ROW_S, capacity: BytesPerSecond | None = None
    ) -> TimedStream:
        """Return it as a stream; see `StreamFile.rows` and `fetch`."""
        file, rows = await self.fetch(), CompactStream()
        stream = file.rows(row_s, capacity)
        async for row in with_progress(stream, self.console, f"reading {self.name}", "rows"):
            rows.append(row)
        return TimedStream(rows, row_s, capacity or file.capacity())

    @asynccontextmanager
    async def writer(
        self, capacity: BytesPerSecond
    ) -> AsyncIterator[tuple[RecordingWriter, float]]:
        """Open it for recording; give the writer and how many seconds it is to gather at a time.

        Args:
            capacity: What a consumer is packed to while this is recorded, bytes/s.

        Raises:
            StreamError, LakeUnavailable, EmbeddedError: It cannot be written.
            SettingsError: It is standard output.
        """
        if self.name == STANDARD:
            raise SettingsError("-: name a file or delta://PATH to record to")
        if (table := self.table) is None:
            yield FileRecordingWriter(Path(self.name), capacity), FILE_PORTION_S
            return
        from binwright.streams.table import TableRecordingWriter  # noqa: PLC0415 - as in `lake`

        async with self.lake() as lake:
            yield TableRecordingWriter(lake, table, capacity), TABLE_PORTION_S

    @asynccontextmanager
    async def lake(self) -> AsyncIterator["LakeReader"]:
        """Open a session of the Spark server, which is started if none is given.

        A server that is given is reached as the settings have it: token, authority.
        """
        # Spark's client takes a second of CPU: only for those who name a table.
        from binwright.lake.lake_reader import connection, lake_reader  # noqa: PLC0415

        named = self.spark
        if named is not None:
            named = connection(settings_at(None, spark=named).lake, named)
        running = spark_connect(self.directory, self.console.log, named)
        async with running as url, lake_reader(url) as lake:
            yield lake


def read_stream(
    name: str,
    console: Console,
    *,
    row_s: float = ROW_S,
    capacity: float | None = None,
    spark: str | None = None,
) -> TimedStream:
    """Return the stream or recording of this name; for commands without a loop of their own.

    Args:
        name: A file, `-` or `delta://PATH`.
        console: For progress.
        row_s: How long a row lasts, seconds; rows of a recording are made so long.
        capacity: What 100 per cent are, bytes/s; None: what a recording was made with.
        spark: A Spark Connect server for `delta://`; None: one is embedded.

    Raises:
        StreamError: It cannot be read; names the file, and the row, topic and partition.
        LakeUnavailable, EmbeddedError: Spark fails or does not start.
    """
    per_consumer = None if capacity is None else BytesPerSecond(capacity)
    with tempfile.TemporaryDirectory(prefix="binwright-") as directory:
        location = StreamLocation(console, Path(directory), name, spark)
        return asyncio.run(location.read(row_s, per_consumer))


def check_free(location: StreamLocation) -> None:
    """Raise `SettingsError` if the location is a file that is there already."""
    if location.name != STANDARD and location.table is None and Path(location.name).exists():
        raise SettingsError(f"{location.name} exists: name another file, or remove it")


@contextmanager
def open_output(name: str) -> Iterator[IO[bytes]]:
    """Open a file, or standard output; a file has its name only once it is complete.

    Raises:
        StreamError: It cannot be written.
    """
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name).resolve()
    # A pipe or a device is written as it is: only a file can be replaced.
    direct = path.exists() and not path.is_file()
    part = path if direct else path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        if not direct:
            part.rename(path)
    except OSError as exc:
        raise StreamError(f"{name}: {exc}") from exc
    finally:
        if not direct:
            part.unlink(missing_ok=True)


async def write_table(
    location: StreamLocation,
    measurements: AsyncIterator[Measurement],
    capacity: BytesPerSecond,
    commit_bytes: int = COMMIT_BYTES,
) -> int:
    """Write a new Delta table; return how many measurements.

    Args:
        location: Of the table.
        measurements: In order.
        capacity: What a consumer was packed to, bytes/s.
        commit_bytes: About so much of their JSON goes into one commit.

    Raises:
        SettingsError: There is a table already.
        StreamError: The measurements cannot be read.
        LakeUnavailable, EmbeddedError: Spark fails or does not start.
    """
    from binwright.streams.table import TableRecordingWriter, table_exists  # noqa: PLC0415 - as in `lake`

    path, count, pending, size = location.table or "", 0, list[RecordedMeasurement](), 0
    async with location.lake() as lake:
        if await table_exists(lake, path):
            raise SettingsError(f"{location.name} exists: name another table, or remove it")
        writer = TableRecordingWriter(lake, path, capacity)
        async for measurement in measurements:
            pending.append(RecordedMeasurement(count, measurement))
            count, size = count + 1, size + RATE_BYTES * (1 + len(measurement.partitions))
            if size >= commit_bytes:
                await writer.append(pending)
                pending, size = [], 0
        await writer.append(pending)
    return count


async def copy_standard_input(file: Path) -> None:
    """Copy standard input to a file, to its end; raise `StreamError` if that fails."""
    cancelled = threading.Event()
    try:
        await asyncio.to_thread(_copy, file, cancelled)
    finally:
        cancelled.set()


def _copy(file: Path, cancelled: threading.Event) -> None:
    try:
        with file.open("wb") as copied:
            while not cancelled.is_set():
                if not select([STDIN], [], [], WAIT_S)[0]:
                    continue
                if not (piece := os.read(STDIN, PIECE_BYTES)):
                    return
                copied.write(piece)
    except OSError as exc:
        raise StreamError(f"standard input: {exc}") from exc


async def with_progress(
    items: Iterable[T], console: Console, doing: str, unit: str
) -> AsyncIterator[T]:
    """Yield the items and show how many there were; a signal may end it in between.

    Args:
        items: Of a long file.
        console: Shows the progress if it is a terminal.
        doing: What is done, and to which file.
        unit: What the items are.
    """
    with console.status(escape(doing)) as status:
        for number, item in enumerate(items):
            if number % SHOW_EVERY == 0:
                status.update(f"{escape(doing)}: {number:,} {unit}")
                await asyncio.sleep(0)
            yield item
