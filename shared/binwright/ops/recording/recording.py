"""Recordings: measurements as JSON lines.

The first line holds what a consumer was packed to while it was recorded:
`{"kind": "recording/1", "capacity_bytes_per_s": 2000000.0}`. Each further line is the value of a
record of the metrics topic, byte for byte, in the topic's order.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import orjson

from binwright.core.controller.monitors import Monitors, accept_measurement
from binwright.core.errors import MalformedMessage, StreamError, UnknownKind
from binwright.core.model import BytesPerSecond, TopicPartition
from binwright.core.protocol import wire
from binwright.core.protocol.measurements import Measurement

KIND = "recording/1"


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


def read(path: Path) -> Recording:
    """Read a whole recording; raise `StreamError` naming file and line."""
    try:
        with path.open("rb") as file:
            return parse(file)
    except (OSError, StreamError) as exc:
        raise StreamError(f"{path}: {exc}") from exc


def parse(lines: Iterable[bytes] | IO[bytes]) -> Recording:
    """Read a recording from its lines.

    An incomplete last line, as a full disk or a kill leaves it, is ignored. Kinds of messages that
    only later versions know are skipped.

    Raises:
        StreamError: It is no recording; names the line (counted from 1) and its fault.
    """
    capacity, measurements = parse_lazily(lines)
    return Recording(capacity, tuple(measurements))


def parse_lazily(lines: Iterable[bytes]) -> tuple[BytesPerSecond, Iterator[Measurement]]:
    """Return a recording's capacity and its measurements, which are read one by one.

    For recordings that do not fit into memory. Raises like `parse`, partly from the iterator.
    """
    numbered = enumerate(lines, 1)
    _, first = next(numbered, (1, b""))
    return _capacity(first), _measurements(numbered)


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


def _measurements(numbered: Iterator[tuple[int, bytes]]) -> Iterator[Measurement]:
    for number, line in numbered:
        if not line.endswith(b"\n"):
            return
        try:
            yield wire.decode_measurement(line)
        except UnknownKind:
            continue
        except MalformedMessage as exc:
            raise StreamError(f"line {number}: {exc.reason}") from exc


def rows(
    measurements: Iterable[Measurement], every_s: float
) -> Iterator[dict[TopicPartition, BytesPerSecond]]:
    """Yield the latest rates after every `every_s` seconds of a recording, and at its end.

    Of two monitors one is followed, as by a controller. A partition without a rate at the moment
    keeps its last one; a removed partition is in no further row. Rows without any rate are skipped.
    """
    known: dict[TopicPartition, BytesPerSecond] = {}
    monitors, due_s, fresh = Monitors(), None, False
    for measurement in measurements:
        at_s = measurement.at_ms / 1000
        due_s = at_s + every_s if due_s is None else due_s
        while at_s >= due_s:
            if known:
                yield dict(known)
            due_s, fresh = due_s + every_s, False
        monitors, counts, _ = accept_measurement(monitors, at_s, measurement)
        if counts:
            fresh = True
            known |= measurement.rates()
            removed = [
                p
                for p in known
                if p.topic == measurement.topic and p.partition >= measurement.count
            ]
            for partition in removed:
                del known[partition]
    if known and fresh:
        yield known
