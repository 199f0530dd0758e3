"""Recordings: what monitors said, kept as JSON lines, and read back.

The first line tells what a consumer was packed to while it was recorded:
`{"kind": "recording/1", "capacity_bytes_per_s": 2000000.0}`. Each line after it is a measurement,
byte for byte as it stood in the metrics topic, in that order.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import orjson

from binwright.core import wire
from binwright.core.errors import MalformedMessage, StreamError, UnknownKind
from binwright.core.messages import Measurement
from binwright.core.model import BytesPerSecond, TopicPartition
from binwright.core.monitors import Monitors, take

KIND = "recording/1"


@dataclass(frozen=True, slots=True)
class Recording:
    """Measurements in the order in which they were said."""

    capacity: BytesPerSecond  # what a consumer was packed to
    measurements: tuple[Measurement, ...]


def begin(capacity: BytesPerSecond) -> bytes:
    """Return a recording's first line."""
    return orjson.dumps({"kind": KIND, "capacity_bytes_per_s": capacity}) + b"\n"


def is_recording(text: bytes) -> bool:
    """Whether this looks like a recording, and not like a stream."""
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

    A last line that was cut short, as by a full disk or a kill, is left out. What a later version
    says that is not known here is skipped.

    Raises:
        StreamError: It is no recording; tells what is wrong at which line (counted from 1).
    """
    numbered = enumerate(lines, 1)
    _, first = next(numbered, (1, b""))
    capacity = _capacity(first)
    return Recording(capacity, tuple(_measurements(numbered)))


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
    """Yield what was known after every `every_s` seconds of a recording, and at its end.

    Of two monitors one is followed, as by a controller. A partition whose rate is not known at the
    moment keeps its last; one that is gone is not in the row. Rows without any rate are left out.
    """
    known: dict[TopicPartition, BytesPerSecond] = {}
    monitors, due_s, fresh = Monitors(), None, False
    for said in measurements:
        at_s = said.at_ms / 1000
        due_s = at_s + every_s if due_s is None else due_s
        while at_s >= due_s:
            if known:
                yield dict(known)
            due_s, fresh = due_s + every_s, False
        monitors, counts, _ = take(monitors, at_s, said)
        if counts:
            fresh = True
            known |= said.rates()
            gone = [p for p in known if p.topic == said.topic and p.partition >= said.count]
            for partition in gone:
                del known[partition]
    if known and fresh:
        yield known
