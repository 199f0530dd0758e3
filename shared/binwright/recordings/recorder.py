"""Record the metrics topic while it is written, to a file or through another writer."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from binwright.kafka.control_records import Decoder
from binwright.protocol import wire
from binwright.protocol.errors import StreamError
from binwright.protocol.measurements import Measurement
from binwright.protocol.model import BytesPerSecond
from binwright.protocol.ports.kafka import Reader
from binwright.recordings import recording

READ_S = 1.0


@dataclass(frozen=True, slots=True)
class RecordedMeasurement:
    """A measurement and its offset in the metrics topic."""

    offset: int
    measurement: Measurement


class RecordingWriter(Protocol):
    """Appends measurements to a recording."""

    async def append(self, recorded: Sequence[RecordedMeasurement]) -> None:
        """Append these, in order; raise `StreamError` or `LakeUnavailable`."""


class FileRecordingWriter:
    """A file of JSON lines: a new one, or one that is continued."""

    def __init__(self, path: Path, capacity: BytesPerSecond) -> None:
        """Open the recording.

        Args:
            path: Of the file.
            capacity: What a consumer is packed to while this is recorded, bytes/s.

        Raises:
            StreamError: The file cannot be written, or is no recording to continue.
        """
        self._path = path
        try:
            if path.exists() and path.stat().st_size:
                _check(path)
                _cut_incomplete_line(path)
            else:
                path.write_bytes(recording.header_line(capacity))
        except OSError as exc:
            raise StreamError(f"{path}: {exc}") from exc

    async def append(self, recorded: Sequence[RecordedMeasurement]) -> None:
        """Append one line for each; see `RecordingWriter.append`."""
        try:
            with self._path.open("ab") as file:
                file.writelines(wire.encode(each.measurement) + b"\n" for each in recorded)
        except OSError as exc:
            raise StreamError(f"{self._path}: {exc}") from exc


def _check(path: Path) -> None:
    """Read all of it, line by line; raise `StreamError` if it is no recording."""
    try:
        with path.open("rb") as file:
            for _ in recording.RecordingReader(file):
                pass
    except StreamError as exc:
        raise StreamError(f"{path}: {exc}") from exc


def _cut_incomplete_line(path: Path) -> None:
    """Remove a last line without an end: the next one would be appended to it."""
    with path.open("rb+") as file:
        file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))


async def record(
    reader: Reader,
    writer: RecordingWriter,
    every_s: float,
    stop: asyncio.Event,
) -> int:
    """Record measurements from now on, in portions of `every_s` seconds; return how many.

    Args:
        reader: Of the metrics topic.
        writer: Gets the portions; the last one when `stop` is set.
        every_s: How long a portion is gathered, seconds.
        stop: Set from outside; noticed within `READ_S`.

    Raises:
        BrokerUnavailable: Kafka does not answer.
        StreamError, LakeUnavailable: The writer fails.
    """
    now = asyncio.get_running_loop().time
    count, pending, due = 0, list[RecordedMeasurement](), now() + every_s
    decoder = Decoder(wire.decode_measurement)
    while not stop.is_set():
        records = await reader.read(min(READ_S, every_s))
        decoded = decoder.decode(records)
        pending += [RecordedMeasurement(r.offset, measurement) for r, measurement in decoded]
        if now() >= due or stop.is_set():
            await writer.append(pending)
            count, pending, due = count + len(pending), [], now() + every_s
    return count
