"""A file that holds a stream or a recording, read as either."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from binwright.protocol.errors import StreamError
from binwright.protocol.measurements import Measurement
from binwright.protocol.model import BytesPerSecond
from binwright.recordings import recording
from binwright.recordings.stream_files import json_rows, recorded
from binwright.recordings.stream_files.compact import CompactStream
from binwright.recordings.stream_files.json_rows import Row

ROW_S = 30.0
"""How long a row lasts unless it is said: the paper's measuring interval."""

HEAD_BYTES = 1_000  # enough to tell the forms apart


@dataclass(frozen=True, slots=True)
class TimedStream:
    """A whole stream, and what its rows and per cents mean."""

    rows: CompactStream
    row_s: float  # how long a row lasts
    capacity: BytesPerSecond | None  # what 100 per cent are; None: the file does not say


@dataclass(slots=True)
class StreamFile:
    """A file of either form. It is read row by row, anew each time.

    Every method that reads raises `StreamError`, which names the file, and the row or line.

    Attributes:
        path: Of the file.
        name: For errors; if empty, the path.
        kept_rates: See `StreamMeasurements`; of the last reading as measurements.
        skipped: See `RecordingReader`; of the last reading of a recording.
    """

    path: Path
    name: str = ""
    kept_rates: int = field(default=0, init=False)
    skipped: int = field(default=0, init=False)

    def is_recording(self) -> bool:
        """Whether the file holds a recording rather than a stream."""
        with self._named(), self.path.open("rb") as file:
            return recording.is_recording(file.read(HEAD_BYTES))

    def capacity(self) -> BytesPerSecond | None:
        """Return what a recording's consumers were packed to, bytes/s; None for a stream."""
        if not self.is_recording():
            return None
        with self._named(), self.path.open("rb") as file:
            return recording.RecordingReader(file).capacity

    def rows(self, row_s: float = ROW_S, capacity: BytesPerSecond | None = None) -> Iterator[Row]:
        """Yield rows, in per cent of a consumer's capacity.

        Args:
            row_s: The length of a row that is made from a recording, seconds.
            capacity: What 100 per cent are in the rows that are made from a recording, bytes/s;
                None: what it was recorded with.
        """
        if self.is_recording():
            with self._named(), self.path.open("rb") as file:
                reader = recording.RecordingReader(file)
                yield from recorded.rows(reader, capacity or reader.capacity, row_s)
                self.skipped = reader.skipped
            return
        with self._named(), self.path.open(encoding="utf-8-sig") as file:
            yield from json_rows.read_rows(file)

    def measurements(self, row_s: float, capacity: BytesPerSecond) -> Iterator[Measurement]:
        """Yield measurements: a recording's own, or those that a stream's rows stand for.

        Args:
            row_s: The length of a stream's row, seconds.
            capacity: What a stream's 100 per cent are, bytes/s.
        """
        if self.is_recording():
            with self._named(), self.path.open("rb") as file:
                reader = recording.RecordingReader(file)
                yield from reader
                self.skipped = reader.skipped
            return
        with self._named(), self.path.open(encoding="utf-8-sig") as file:
            made = recorded.StreamMeasurements(json_rows.read_rows(file), capacity, row_s)
            yield from made
            self.kept_rates = made.kept_rates

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (OSError, StreamError) as exc:
            raise StreamError(f"{self.name or self.path}: {exc}") from exc
