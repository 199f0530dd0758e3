"""A stream as a recording, and a recording as a stream.

A stream has per cents and no time, a recording bytes/s and times: what 100 per cent are, and how
long a row lasts, lead from one to the other.
"""

from collections.abc import Iterable, Iterator
from math import isfinite

from binwright.protocol.errors import StreamError
from binwright.protocol.measurements import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.recordings import recording
from binwright.recordings.stream_files.json_rows import PerCent, Row

MONITOR = "stream"
"""The name of the monitor in a recording that is made from a stream."""


def rows(
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
