"""Measurement streams: made by the paper's rule, written, and read back.

A stream is a list of measurements; a measurement tells every partition's rate in per cent of a
consumer's capacity. As JSON: `[{"orders": {"0": 30, "1": 22.5}, ...}, ...]`, the form of the
paper's own recordings. How long a measurement lasts is for the player to say.

`demo()` is the stream the demo plays: `DEMO` made once by `generate`, kept as a file, regenerated
bit by bit by a test. Its seed was chosen by walking the seeds from 0 up, each at deltas 15, 20 and
25, to the first whose total load averages 300 to 350 per cent over all rows, swings by at least 150
within the first 15, and there keeps MWF (capacity 100, packed at every row) at 2 to 6 consumers,
with a spread of at least 3, two steps up and two steps down.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NewType

from binwright.core.errors import StreamError
from binwright.core.model import BytesPerSecond, TopicPartition
from binwright.lab import recording

PerCent = NewType("PerCent", float)
"""A rate in per cent of a consumer's capacity; above 100 no consumer can follow."""

Measurement = Mapping[TopicPartition, PerCent]
Stream = Sequence[Measurement]

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
ROW_S = 30.0
"""What a row of a recording stands for: the paper's measuring interval."""
SHOWN = 40  # characters of what is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A random walk of every partition's rate (eq. 15, as the paper's authors ran it).

    Whole per cents; each step adds a number drawn evenly from [-delta, delta], and the result is
    cut to [0, 100].
    """

    topics: tuple[str, ...]
    partitions: int  # per topic, > 0
    rows: int  # measurements, > 0
    delta: int  # per cent, >= 0
    seed: int
    start: int | None = None  # per cent, of every partition; None: drawn evenly from [0, 100]

    def __post_init__(self) -> None:
        """Refuse what makes no stream, as a `StreamError`."""
        if not self.topics or min(self.partitions, self.rows) < 1:
            raise StreamError("a stream needs at least one topic, one partition and one row")
        if self.delta < 0:
            raise StreamError(f"delta must be >= 0 per cent, got {self.delta}")
        if self.start is not None and not 0 <= self.start <= 100:  # noqa: PLR2004 - per cent
            raise StreamError(f"start must be within 0 to 100 per cent, got {self.start}")


DEMO = Walk(topics=("orders", "clicks"), partitions=4, rows=60, delta=20, seed=39)


def generate(walk: Walk) -> Iterator[dict[TopicPartition, PerCent]]:
    """Yield the walk's measurements; the same walk yields the same on every machine."""
    random = Random(walk.seed)
    partitions = [TopicPartition(t, n) for t in walk.topics for n in range(walk.partitions)]
    rates = [random.randint(0, 100) if walk.start is None else walk.start for _ in partitions]
    for row in range(walk.rows):
        if row:
            steps = [random.randint(-walk.delta, walk.delta) for _ in partitions]
            rates = [min(100, max(0, old + step)) for old, step in zip(rates, steps, strict=True)]
        yield {p: PerCent(rate) for p, rate in zip(partitions, rates, strict=True)}


def as_rates(
    measurement: Measurement, capacity: BytesPerSecond
) -> dict[TopicPartition, BytesPerSecond]:
    """Return a measurement as bytes/s for consumers of `capacity` bytes/s."""
    # Multiplied first: with a capacity of 100 the numbers stay what they are.
    return {p: BytesPerSecond(rate * capacity / 100) for p, rate in measurement.items()}


def dump(stream: Stream) -> str:
    """Return a stream as JSON, one measurement a line: equal streams are equal text."""
    return "[\n" + ",\n".join(json.dumps(_nested(row)) for row in stream) + "\n]\n"


def _nested(measurement: Measurement) -> dict[str, dict[str, float]]:
    topics: dict[str, dict[str, float]] = {}
    for partition, rate in measurement.items():
        topics.setdefault(partition.topic, {})[str(partition.partition)] = rate
    return topics


def parse(text: str | bytes) -> list[dict[TopicPartition, PerCent]]:
    """Read a stream back.

    Partitions may come and go from row to row. Rates may be fractions, and above 100.

    Raises:
        StreamError: It is not a stream; tells what is wrong at which row (counted from 0),
            topic and partition.
    """
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise StreamError(f"not JSON: {exc}") from exc
    if not isinstance(rows, list):
        raise StreamError(f"expected a list of measurements, got {_kind(rows)}")
    if not rows:
        raise StreamError("the stream is empty: not one measurement")
    return [dict(_measurement(f"row {number}", row)) for number, row in enumerate(rows)]


def read(path: Path) -> list[dict[TopicPartition, PerCent]]:
    """Read a stream, or a recording as one, from a file.

    A recording (`binwright record`) gives a row for every `ROW_S` seconds of it, in per cent of
    what a consumer was packed to then.

    Raises:
        StreamError: Like `parse`, naming the file.
    """
    try:
        text = path.read_bytes()
        if recording.is_recording(text):
            return of_recording(recording.parse(text.splitlines(keepends=True)))
        return parse(text)
    except (OSError, StreamError) as exc:
        raise StreamError(f"{path}: {exc}") from exc


def of_recording(found: recording.Recording) -> list[dict[TopicPartition, PerCent]]:
    """Return a recording as a stream; raise `StreamError` if it tells not one rate."""
    rows = [
        {p: PerCent(100 * rate / found.capacity) for p, rate in row.items()}
        for row in recording.rows(found.measurements, ROW_S)
    ]
    if not rows:
        raise StreamError("the recording tells not one rate")
    return rows


def largest_step(stream: Stream) -> PerCent:
    """Return by how much a rate changes at most from one measurement to the next."""
    return PerCent(
        max(
            (
                abs(rate - before[partition])
                for before, row in pairwise(stream)
                for partition, rate in row.items()
                if partition in before
            ),
            default=0.0,
        )
    )


def write(path: Path, stream: Stream) -> None:
    """Write a stream to a file; raise `StreamError` if it cannot be written."""
    try:
        path.write_text(dump(stream), encoding="ascii")
    except OSError as exc:
        raise StreamError(f"{path}: {exc}") from exc


def demo() -> list[dict[TopicPartition, PerCent]]:
    """Return the stream that the demo plays."""
    return parse((files("binwright.lab") / "data" / "demo.json").read_bytes())


def _measurement(where: str, row: object) -> Iterator[tuple[TopicPartition, PerCent]]:
    for topic, partitions in _object(where, row, "topics"):
        if not _TOPIC.fullmatch(topic):
            raise StreamError(f"{where}: not a topic's name: {topic!r}")
        inside = f"{where}, topic {topic!r}"
        for number, rate in _object(inside, partitions, "partitions"):
            if not _NUMBER.fullmatch(number):
                raise StreamError(f"{inside}: not a partition's number: {number!r}")
            yield TopicPartition(topic, int(number)), _rate(f"{inside}, partition {number}", rate)


def _object(where: str, value: object, of: str) -> Iterator[tuple[str, object]]:
    if not isinstance(value, dict):
        raise StreamError(f"{where}: expected an object of {of}, got {_kind(value)}")
    if not value:
        raise StreamError(f"{where}: no {of} in it")
    yield from value.items()


def _rate(where: str, value: object) -> PerCent:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StreamError(f"{where}: expected a number of per cents, got {_kind(value)}")
    # Not a number is not within bounds either.
    if not 0 <= value <= sys.float_info.max:
        raise StreamError(f"{where}: per cents must be finite and >= 0, got {_short(value)}")
    return PerCent(value)


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool() | int() | float():
            return _short(value)
        case str():
            return f"text {_short(value)}"
        case list():
            return f"a list of {len(value)}"
        case _:
            return "an object"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
