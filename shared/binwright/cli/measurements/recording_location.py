"""Where a recording is: a file, or a Delta table that Spark writes and reads."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from rich.console import Console

from binwright.core.errors import SettingsError
from binwright.core.model import BytesPerSecond
from binwright.ops.recording import recording
from binwright.ops.recording.recorder import FileRecordingWriter, RecordingWriter

if TYPE_CHECKING:
    from binwright.ops.lake_reader import LakeReader

TABLE_SCHEME = "delta://"
FILE_PORTION_S = 1.0
TABLE_PORTION_S = 30.0  # one commit each


@dataclass(frozen=True, slots=True)
class RecordingLocation:
    """A file, or `delta://PATH` through a Spark server.

    Attributes:
        console: For progress.
        directory: Of an embedded Spark's data and logs.
        name: As given by the user.
        spark: A Spark Connect server; None: one is embedded.
    """

    console: Console
    directory: Path
    name: str
    spark: str | None

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

    async def read(self) -> recording.Recording:
        """Read the recording; raise `StreamError` or `LakeUnavailable`."""
        if self.table is None:
            return recording.read(Path(self.name))
        from binwright.ops.recording.table import read_table  # noqa: PLC0415 - as in `_lake`

        async with self._lake() as lake:
            return await read_table(lake, self.table)

    @asynccontextmanager
    async def writer(
        self, capacity: BytesPerSecond
    ) -> AsyncIterator[tuple[RecordingWriter, float]]:
        """Open it for writing; give the writer and how many seconds it is to gather at a time.

        Args:
            capacity: What a consumer is packed to while this is recorded, bytes/s.

        Raises:
            StreamError, LakeUnavailable, EmbeddedError: It cannot be written.
        """
        if (table := self.table) is None:
            yield FileRecordingWriter(Path(self.name), capacity), FILE_PORTION_S
            return
        from binwright.ops.recording.table import TableRecordingWriter  # noqa: PLC0415 - as in `_lake`

        async with self._lake() as lake:
            yield TableRecordingWriter(lake, table, capacity), TABLE_PORTION_S

    @asynccontextmanager
    async def _lake(self) -> AsyncIterator["LakeReader"]:
        # Spark's client takes a second of CPU: only for those who name a table.
        from binwright.cli.local.stack import servers  # noqa: PLC0415
        from binwright.ops.lake_reader import lake_reader  # noqa: PLC0415

        running = servers(
            self.directory, self.console.log, bootstrap_servers="not needed", spark=self.spark
        )
        async with running as addresses, lake_reader(addresses.spark) as lake:
            yield lake
