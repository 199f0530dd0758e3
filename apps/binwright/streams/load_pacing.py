"""How many records are due at a time: a stream of rates, spread evenly. It has no clock."""

from dataclasses import dataclass

from binwright.protocol.errors import StreamError
from binwright.protocol.model import TopicPartition
from binwright.streams.streams import Row, Stream

BURST_S = 1.0
"""Seconds of load that a late sender may catch up with; the rest is shed, to avoid a burst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How rates in per cent become records."""

    row_s: float  # how long a measurement lasts
    bytes_per_per_cent: float  # bytes/s for one per cent of a consumer's capacity
    record_bytes: int = 1_000  # key and value
    duration_s: float | None = None  # None: the stream once; if longer, it repeats
    delivery_s: float = 30.0  # a record that is not confirmed by then has failed

    def __post_init__(self) -> None:
        """Raise `StreamError` for a number that is not finite and positive."""
        for name in ("row_s", "bytes_per_per_cent", "record_bytes", "duration_s", "delivery_s"):
            number = getattr(self, name)
            if number is not None and not 0 < number < float("inf"):
                raise StreamError(f"{name} must be finite and > 0, got {number}")


class Pacer:
    """A token bucket for each partition, filled at the rates of a stream.

    Times are seconds since the start and only grow. `advance` fills the buckets, `due` reads them,
    `mark_sent` empties them; what is not sent stays due, up to `BURST_S` of the highest rate.
    """

    def __init__(self, stream: Stream, load: Pacing) -> None:
        self._stream, self._load = stream, load
        peaks: dict[TopicPartition, float] = {}
        for partition, per_cent in (item for row in stream for item in row.items()):
            peaks[partition] = max(peaks.get(partition, 0.0), per_cent)
        # One record more than the burst: a slow partition takes longer than that to fill one.
        self._most = {
            p: peak * load.bytes_per_per_cent * BURST_S + load.record_bytes
            for p, peak in peaks.items()
        }
        self._budget = dict.fromkeys(sorted(peaks), 0.0)
        self._filled_until = 0.0
        self.due_bytes = dict.fromkeys(self._budget, 0.0)  # until now, sent or not
        self.row = 0  # continues when the stream repeats
        self.measurement: Row = stream[0]  # the present one
        self.ends_s = len(stream) * load.row_s if load.duration_s is None else load.duration_s
        self.shed_bytes = 0.0

    def advance(self, now: float) -> None:
        """Fill the buckets for the time since the last call, row by row."""
        now = min(now, self.ends_s)
        while (row_end := (self.row + 1) * self._load.row_s) <= now and row_end < self.ends_s:
            self._fill(row_end - self._filled_until)
            self._filled_until = row_end
            self.row += 1
            self.measurement = self._stream[self.row % len(self._stream)]
        self._fill(now - self._filled_until)
        self._filled_until = now

    def due(self) -> dict[TopicPartition, int]:
        """Return partition -> records to send now; partitions with none are left out."""
        whole = {p: int(budget // self._load.record_bytes) for p, budget in self._budget.items()}
        return {p: records for p, records in whole.items() if records}

    def mark_sent(self, partition: TopicPartition, records: int) -> None:
        """Record that so many due records were sent."""
        self._budget[partition] -= records * self._load.record_bytes

    def _fill(self, seconds: float) -> None:
        for partition, per_cent in self.measurement.items():
            more = per_cent * self._load.bytes_per_per_cent * seconds
            self.due_bytes[partition] += more
            budget, most = self._budget[partition] + more, self._most[partition]
            self._budget[partition] = min(budget, most)
            self.shed_bytes += max(0.0, budget - most)
