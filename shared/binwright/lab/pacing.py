"""How many records are due when: a stream of rates played evenly, with no clock of its own."""

from dataclasses import dataclass

from binwright.core.errors import StreamError
from binwright.core.model import TopicPartition
from binwright.lab.streams import Measurement, Stream

BURST_S = 1.0
"""What a player that fell behind may make up for; the rest is shed, lest it pour it all at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How per cents become records."""

    row_s: float  # how long a measurement lasts
    bytes_per_per_cent: float  # bytes/s for one per cent of a consumer's capacity
    record_bytes: int = 1_000  # key and value
    duration_s: float | None = None  # None: the stream once; longer: it starts anew
    delivery_s: float = 30.0  # a record that is not confirmed by then has failed

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing, as a `StreamError`."""
        for name in ("row_s", "bytes_per_per_cent", "record_bytes", "duration_s", "delivery_s"):
            number = getattr(self, name)
            if number is not None and not 0 < number < float("inf"):
                raise StreamError(f"{name} must be finite and > 0, got {number}")


class Pacer:
    """A token bucket per partition, filled as a stream says.

    Times are seconds since the start and only grow. `advance` fills, `due` tells, `take` empties;
    what could not be sent stays due, up to `BURST_S` of the partition's fastest and a record.
    """

    def __init__(self, stream: Stream, load: Load) -> None:
        self._stream, self._load = stream, load
        peaks: dict[TopicPartition, float] = {}
        for partition, per_cent in (item for row in stream for item in row.items()):
            peaks[partition] = max(peaks.get(partition, 0.0), per_cent)
        # A record more than the burst: a slow partition saves up for one for longer than that.
        self._most = {
            p: peak * load.bytes_per_per_cent * BURST_S + load.record_bytes
            for p, peak in peaks.items()
        }
        self._budget = dict.fromkeys(sorted(peaks), 0.0)
        self._then = 0.0
        self.row = 0  # counts on when the stream starts anew
        self.ends_s = len(stream) * load.row_s if load.duration_s is None else load.duration_s
        self.shed_bytes = 0.0

    @property
    def measurement(self) -> Measurement:
        """The one that is played now."""
        return self._stream[self.row % len(self._stream)]

    def advance(self, now: float) -> None:
        """Fill the buckets for the time since the last call, row by row."""
        now = min(now, self.ends_s)
        while (turn := (self.row + 1) * self._load.row_s) <= now and turn < self.ends_s:
            self._fill(turn - self._then)
            self._then = turn
            self.row += 1
        self._fill(now - self._then)
        self._then = now

    def due(self) -> dict[TopicPartition, int]:
        """Return how many records may go out at once; partitions with none are left out."""
        whole = {p: int(budget // self._load.record_bytes) for p, budget in self._budget.items()}
        return {p: records for p, records in whole.items() if records}

    def take(self, partition: TopicPartition, records: int) -> None:
        """Note that so many of what was due went out."""
        self._budget[partition] -= records * self._load.record_bytes

    def _fill(self, seconds: float) -> None:
        for partition, per_cent in self.measurement.items():
            more = per_cent * self._load.bytes_per_per_cent * seconds
            budget, most = self._budget[partition] + more, self._most[partition]
            self._budget[partition] = min(budget, most)
            self.shed_bytes += max(0.0, budget - most)
