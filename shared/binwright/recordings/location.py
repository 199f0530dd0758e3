"""Where a stream or a recording is: a file, standard input, or a Delta table.

Every command that takes one names it in the same way and opens it here.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from rich.console import Console

from binwright.protocol.errors import SettingsError
from binwright.protocol.model import BytesPerSecond
from binwright.recordings.commands.standard_input import copy_standard_input
from binwright.recordings.progress import with_progress
from binwright.recordings.recorder import FileRecordingWriter, RecordingWriter
from binwright.recordings.stream_files.compact import CompactStream
from binwright.recordings.stream_files.stream_file import ROW_S, StreamFile, TimedStream

if TYPE_CHECKING:
    from binwright.audit.lake_reader import LakeReader

STANDARD = "-"
TABLE_SCHEME = "delta://"
FILE_PORTION_S = 1.0
TABLE_PORTION_S = 30.0  # one commit each


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
        from binwright.recordings.table import copy_table  # noqa: PLC0415 - as in `lake`

        copied = self.directory / "recording.jsonl"
        async with self.lake() as lake:
            await copy_table(lake, table, copied)
        return StreamFile(copied, self.name)

    async def read(
        self, row_s: float = ROW_S, capacity: BytesPerSecond | None = None
    ) -> TimedStream:
        """Return it as a stream; see `StreamFile.rows` and `fetch`."""
        file, rows = await self.fetch(), CompactStream()
        found = file.rows(row_s, capacity)
        async for row in with_progress(found, self.console, f"reading {self.name}", "rows"):
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
        from binwright.recordings.table import TableRecordingWriter  # noqa: PLC0415 - as in `lake`

        async with self.lake() as lake:
            yield TableRecordingWriter(lake, table, capacity), TABLE_PORTION_S

    @asynccontextmanager
    async def lake(self) -> AsyncIterator["LakeReader"]:
        """Open a session of the Spark server, which is started if none is given."""
        # Spark's client takes a second of CPU: only for those who name a table.
        from binwright.audit.lake_reader import lake_reader  # noqa: PLC0415
        from binwright.local.stack import servers  # noqa: PLC0415

        running = servers(
            self.directory, self.console.log, bootstrap_servers="not needed", spark=self.spark
        )
        async with running as addresses, lake_reader(addresses.spark) as lake:
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
