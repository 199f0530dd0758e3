"""A file that holds a stream or a recording, read as either.

A stream has per cents and no time, a recording bytes/s and times: what 100 per cent are, and how
long a row lasts, lead from one to the other.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from binwright.protocol.errors import StreamError
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.streams import recording
from binwright.streams.streams import CompactStream, PerCent, Row, read_rows

ROW_S = 30.0
"""How long a row lasts unless it is said: the paper's measuring interval."""

MONITOR = "stream"
"""The name of the monitor in a recording that is made from a stream."""

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
                yield from recorded_rows(reader, capacity or reader.capacity, row_s)
                self.skipped = reader.skipped
            return
        with self._named(), self.path.open(encoding="utf-8-sig") as file:
            yield from read_rows(file)

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
            made = StreamMeasurements(read_rows(file), capacity, row_s)
            yield from made
            self.kept_rates = made.kept_rates

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (OSError, StreamError) as exc:
            raise StreamError(f"{self.name or self.path}: {exc}") from exc


def read(path: Path) -> list[dict[TopicPartition, PerCent]]:
    """Read a stream, or a recording as one, from a file.

    A recording (`binwright record`) gives a row for every `ROW_S` seconds, in per cent of what a
    consumer was packed to at the time. A `CompactStream` of a long one takes less memory.

    Raises:
        StreamError: Like `parse`, naming the file.
    """
    return [dict(row) for row in StreamFile(path).rows()]


def recorded_rows(
    measurements: Iterable[Measurement], capacity: BytesPerSecond, row_s: float
) -> Iterator[dict[TopicPartition, PerCent]]:
    """Yield a recording's rows of `row_s` seconds, in per cent of `capacity` bytes/s.

    Raises:
        StreamError: The recording holds no rate.
    """
    row = None
    for row in recording.rows(measurements, row_s):
        yield {p: PerCent(100 * rate / capacity) for p, rate in row.items()}
    if row is None:
        raise StreamError("the recording holds no rate")


class StreamMeasurements:
    """A stream's rows as what a monitor would have measured, a measurement a topic and row.

    The first row is at 0 ms. A partition above all others of its topic, and a topic, may go: the
    measurement says that the topic has fewer partitions, or is deleted. Kafka takes away no other
    partition: in a recording it keeps its last rate. Iterate once.

    Attributes:
        kept_rates: How often a partition was missing that keeps its last rate, so far.
    """

    def __init__(self, rows: Iterable[Row], capacity: BytesPerSecond, row_s: float) -> None:
        """Prepare; `capacity` is what 100 per cent are in bytes/s, `row_s` a row's length."""
        self._rows, self._capacity, self._row_s = rows, capacity, row_s
        self._known: dict[str, set[int]] = {}  # by topic, partitions that have a rate
        self.kept_rates = 0

    def __iter__(self) -> Iterator[Measurement]:
        """Yield the measurements, in order; raise `StreamError` for a rate that is not finite."""
        for number, row in enumerate(self._rows):
            topics: dict[str, dict[int, BytesPerSecond]] = {t: {} for t in self._known}
            for partition, per_cent in row.items():
                rate = BytesPerSecond(per_cent * self._capacity / 100)
                if not isfinite(rate):
                    raise StreamError(f"row {number}, {partition}: too large in bytes/s")
                topics.setdefault(partition.topic, {})[partition.partition] = rate
            for topic, rates in topics.items():
                yield self._measurement(number, topic, rates)

    def _measurement(
        self, number: int, topic: str, rates: dict[int, BytesPerSecond]
    ) -> Measurement:
        count = 1 + max(rates, default=-1)
        known = {n for n in self._known.pop(topic, ()) if n < count}
        self.kept_rates += len(known - rates.keys())
        if rates:
            self._known[topic] = known | rates.keys()
        return Measurement(
            topic=topic,
            at_ms=round(number * self._row_s * 1000),
            monitor=MONITOR,
            number=number,
            interval_s=self._row_s,
            count=count,
            partitions=tuple(
                PartitionRate(n, rate, self._row_s, 0, 0, None) for n, rate in sorted(rates.items())
            ),
        )
