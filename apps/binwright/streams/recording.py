"""Recordings: measurements as JSON lines.

The first line holds what a consumer was packed to while it was recorded:
`{"kind": "recording/1", "capacity_bytes_per_s": 2000000.0}`. Each further line is the value of a
record of the metrics topic, byte for byte, in the topic's order; or a message of another kind,
which is for those who know it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import orjson

from binwright.protocol import wire
from binwright.protocol.errors import MalformedMessage, StreamError, UnknownKind
from binwright.protocol.metrics import Measurement, decode_measurement
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.protocol.monitors import Monitors, accept_measurement
from binwright.protocol.wire import Decode

T = TypeVar("T")

KIND = "recording/1"
_PARTITION = re.compile(r"partitions\.(\d+)\.")  # which of a measurement's partitions is at fault


@dataclass(frozen=True, slots=True)
class Recording:
    """Measurements in the order in which they were published."""

    capacity: BytesPerSecond  # what a consumer was packed to
    measurements: tuple[Measurement, ...]


def header_line(capacity: BytesPerSecond) -> bytes:
    """Return a recording's first line."""
    return orjson.dumps({"kind": KIND, "capacity_bytes_per_s": capacity}) + b"\n"


def is_recording(text: bytes) -> bool:
    """Whether this looks like a recording rather than a stream."""
    first, _, _ = text.partition(b"\n")
    return first.startswith(b"{") and b'"recording/' in first


class RecordingReader:
    """The measurements of a recording, one at a time: memory does not grow with its length.

    An incomplete last line, as a full disk or a kill leaves it, is ignored. Other kinds of messages
    are skipped. Iterate once.

    Attributes:
        capacity: What a consumer was packed to while it was recorded, bytes/s.
        skipped: Messages of other kinds, of what was read so far.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Read the first line.

        Raises:
            StreamError: It is no recording; names the line (counted from 1) and its fault.
        """
        self._numbered = enumerate(lines, 1)
        _, first = next(self._numbered, (1, b""))
        self.capacity = _capacity(first)
        self.skipped = 0

    def __iter__(self) -> Iterator[Measurement]:
        """Yield the measurements; raise `StreamError` naming a line (counted from 1)."""
        return self.messages(decode_measurement)

    def messages(self, decode: Decode[T]) -> Iterator[T]:
        """Yield the messages of these kinds; raise `StreamError` naming a line (counted from 1)."""
        for number, line in self._numbered:
            if not line.endswith(b"\n"):
                return
            try:
                yield decode(line)
            except UnknownKind:
                self.skipped += 1
            except MalformedMessage as exc:
                raise StreamError(f"line {number}{_place(line, exc.reason)}: {exc.reason}") from exc


def read(path: Path) -> Recording:
    """Read a whole recording; raise `StreamError` naming file and line."""
    try:
        with path.open("rb") as file:
            return parse(file)
    except (OSError, StreamError) as exc:
        raise StreamError(f"{path}: {exc}") from exc


def parse(lines: Iterable[bytes]) -> Recording:
    """Read a whole recording from its lines; see `RecordingReader`."""
    reader = RecordingReader(lines)
    return Recording(reader.capacity, tuple(reader))


def _capacity(line: bytes) -> BytesPerSecond:
    try:
        head = orjson.loads(line)
    except ValueError as exc:
        raise StreamError(f"line 1: not JSON: {exc}") from exc
    match head:
        case {"kind": str(kind), "capacity_bytes_per_s": int() | float() as capacity} if (
            kind == KIND and capacity > 0
        ):
            return BytesPerSecond(capacity)
    raise StreamError(f'line 1: expected {{"kind": "{KIND}", "capacity_bytes_per_s": …}}')


def _place(line: bytes, reason: str) -> str:
    """Return the topic and the partition of a fault, as far as they can be read."""
    try:
        measurement = orjson.loads(line)
    except ValueError:
        return ""
    match measurement:
        case {"topic": str(topic), "partitions": list(partitions)}:
            index = _PARTITION.match(reason)
            if index is None:
                return f", topic {topic!r}"
            match partitions[int(index[1])]:
                case [int(number), *_]:
                    return f", topic {topic!r}, partition {number}"
            return f", topic {topic!r}"
    return ""


def rows(
    measurements: Iterable[Measurement], every_s: float
) -> Iterator[dict[TopicPartition, BytesPerSecond]]:
    """Yield the latest rates after every `every_s` seconds of a recording, and at its end.

    Of two monitors one is followed, as by a controller. A partition without a rate at the moment
    keeps its last one; a removed partition is in no further row. Rows without any rate are skipped.
    """
    known: dict[str, dict[int, BytesPerSecond]] = {}
    monitors, first_ms, ended, fresh = Monitors(), None, 0, False
    for measurement in measurements:
        first_ms = measurement.at_ms if first_ms is None else first_ms
        # Whole milliseconds, as measurements have them: sums of seconds would stray.
        while measurement.at_ms >= first_ms + round((ended + 1) * every_s * 1000):
            if row := _row(known):
                yield row
            ended, fresh = ended + 1, False
        monitors, counts, _ = accept_measurement(monitors, measurement.at_ms / 1000, measurement)
        if counts:
            fresh = True
            _update(known.setdefault(measurement.topic, {}), measurement)
    if fresh and (row := _row(known)):
        yield row


def _update(rates: dict[int, BytesPerSecond], measurement: Measurement) -> None:
    rates |= {p.partition: p.rate for p in measurement.partitions if p.rate is not None}
    for partition in [number for number in rates if number >= measurement.count]:
        del rates[partition]


def _row(known: Mapping[str, Mapping[int, BytesPerSecond]]) -> dict[TopicPartition, BytesPerSecond]:
    return {
        TopicPartition(topic, number): rate
        for topic, rates in known.items()
        for number, rate in rates.items()
    }


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
                path.write_bytes(header_line(capacity))
        except OSError as exc:
            raise StreamError(f"{path}: {exc}") from exc

    async def append(self, recorded: Sequence[RecordedMeasurement]) -> None:
        """Append one line for each; see `RecordingWriter.append`."""
        self.write(each.measurement for each in recorded)

    def write(self, messages: Iterable[wire.AnyMessage]) -> None:
        """Append one line for each message; raise `StreamError`."""
        try:
            with self._path.open("ab") as file:
                file.writelines(wire.encode(message) + b"\n" for message in messages)
        except OSError as exc:
            raise StreamError(f"{self._path}: {exc}") from exc


def _check(path: Path) -> None:
    """Read all of it, line by line; raise `StreamError` if it is no recording."""
    try:
        with path.open("rb") as file:
            for _ in RecordingReader(file):
                pass
    except StreamError as exc:
        raise StreamError(f"{path}: {exc}") from exc


def _cut_incomplete_line(path: Path) -> None:
    """Remove a last line without an end: the next one would be appended to it."""
    with path.open("rb+") as file:
        file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))
