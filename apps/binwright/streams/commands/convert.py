"""`binwright convert`: a stream or a recording in another form."""

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from binwright.cli.options import OptionalSpark
from binwright.cli.runner import run
from binwright.cli.terminal import Console
from binwright.protocol import wire
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.logs import configure_logging
from binwright.streams import recording
from binwright.streams.location import (
    DEFAULT_ROW_S,
    NAMES,
    RowSeconds,
    StreamLocation,
    check_free,
    open_output,
    with_progress,
    write_table,
)
from binwright.streams.stream_file import StreamFile
from binwright.streams.streams import stream_lines

T = TypeVar("T")


class Form(StrEnum):
    """What a file holds."""

    STREAM = "stream"
    RECORDING = "recording"


SUFFIXES = {".json": Form.STREAM, ".jsonl": Form.RECORDING}


@dataclass(frozen=True, slots=True)
class Conversion:
    """Writes a stream or a recording to a destination, and reports what is not kept.

    Attributes:
        source: What is read.
        destination: Where it goes; nothing may be there.
        form: Of the destination.
        row_s: How long a row lasts, seconds.
        capacity: What 100 per cent are, bytes/s; None: what a recording says.
    """

    source: StreamLocation
    destination: StreamLocation
    form: Form
    row_s: float
    capacity: float | None

    async def run(self) -> None:
        """Convert; raise `UserError`, `LakeUnavailable` or `EmbeddedError`."""
        check_free(self.destination)
        file = await self.source.fetch()
        capacity = file.capacity() if self.capacity is None else BytesPerSecond(self.capacity)
        if self.form is Form.STREAM:
            lines = (line.encode() for line in stream_lines(file.rows(self.row_s, capacity)))
            count = f"{await self._write(lines, 'rows'):,} rows"
        elif capacity is None:
            raise SettingsError(
                f"{self.source.name} is a stream, in per cent, and a recording holds bytes/s: "
                "give what 100 per cent are (--capacity)"
            )
        else:
            count = f"{await self._write_recording(file, capacity):,} measurements"
        self._log(f"{count} from {self.source.name} to {self.destination.name}")
        for note in self._notes(file, capacity):
            self._log(note)

    async def _write_recording(self, file: StreamFile, capacity: BytesPerSecond) -> int:
        measurements = file.measurements(self.row_s, capacity)
        if self.destination.table is not None:
            # Read to its end first: a table is not made of the part before a fault.
            async for _ in self._shown(measurements, "reading", "measurements"):
                pass
            again = file.measurements(self.row_s, capacity)
            shown = self._shown(again, "converting", "measurements")
            return await write_table(self.destination, shown, capacity)
        lines = (wire.encode(measurement) + b"\n" for measurement in measurements)
        return await self._write(chain([recording.header_line(capacity)], lines), "measurements")

    async def _write(self, lines: Iterable[bytes], what: str) -> int:
        """Write a file of either form; return its rows or measurements: one line has none."""
        count = -1
        with open_output(self.destination.name) as output:
            async for line in self._shown(lines, "converting", what):
                output.write(line)
                count += 1
        return count

    def _notes(self, file: StreamFile, capacity: BytesPerSecond | None) -> Iterator[str]:
        """Yield what is not in the destination, or was not in the source."""
        if file.skipped:
            yield f"left out: {file.skipped:,} messages of a later version"
        if file.is_recording() and self.form is Form.STREAM and capacity is not None:
            yield (
                f"a row has the latest rates of {self.row_s:g} s; not kept: times, offsets, record "
                "sizes, and how far each rate can be trusted"
            )
            yield f"100 per cent are {capacity:,.0f} bytes/s: a stream does not say so"
        if not file.is_recording() and self.form is Form.RECORDING:
            yield (
                f"a row lasts {self.row_s:g} s, the first is at 1970-01-01 00:00:00 UTC; there are "
                "no offsets and record sizes"
            )
        if file.kept_rates:
            yield (
                f"{file.kept_rates:,} times a partition is missing below others of its topic: "
                "it keeps its last rate"
            )

    def _log(self, text: str) -> None:
        self.destination.console.log(text, markup=False)

    def _shown(self, items: Iterable[T], doing: str, unit: str) -> AsyncIterator[T]:
        return with_progress(items, self.source.console, f"{doing} {self.source.name}", unit)


def command(
    source: Annotated[str, typer.Argument(help=f"A stream or a recording: {NAMES}.")],
    destination: Annotated[str, typer.Argument(help=f"What is made: {NAMES}.")],
    *,
    form: Annotated[
        Form | None,
        typer.Option(
            help="Form of the file that is written; else .json is a stream, .jsonl a recording."
        ),
    ] = None,
    row_s: RowSeconds = DEFAULT_ROW_S,
    capacity: Annotated[
        float | None,
        typer.Option(min=1.0, help="Rate of 100 per cent, bytes/s; else the recording's."),
    ] = None,
    spark: OptionalSpark = None,
) -> None:
    """Convert a stream into a recording, or back, and a recording between a file and a table."""
    configure_logging("error", "console")
    with tempfile.TemporaryDirectory(prefix="binwright-") as directory:
        # Standard output may be the destination.
        console = Console(stderr=True, log_path=False, soft_wrap=True)
        read_from = StreamLocation(console, Path(directory), source, spark)
        write_to = StreamLocation(console, Path(directory), destination, spark)
        raise typer.Exit(
            run(Conversion(read_from, write_to, _form(write_to, form), row_s, capacity).run)
        )


def _form(destination: StreamLocation, named: Form | None) -> Form:
    """Return the destination's form; raise `SettingsError` if nothing says it."""
    if destination.table is not None:
        if named is Form.STREAM:
            raise SettingsError(f"{destination.name}: a table holds a recording, no stream")
        return Form.RECORDING
    form = named or SUFFIXES.get(Path(destination.name).suffix)
    if form is None:
        raise SettingsError(
            f"{destination.name}: name it .json for a stream or .jsonl for a recording, "
            "or give --form"
        )
    return form
