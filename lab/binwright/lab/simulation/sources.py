"""Where a simulated load comes from: a stream of per cents, or a recording of measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from binwright.lab.simulation.flow.arrivals import Arrivals, arrivals
from binwright.lab.simulation.recorded import Recorded, recorded
from binwright.lab.simulation.scenario import MeasuredRates
from binwright.protocol.errors import StreamError
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.recordings import recording, stream_file, streams
from binwright.recordings.generated import Walk, generate


class Source(Protocol):
    """A load before it has a warm-up."""

    @property
    def label(self) -> str:
        """Return what it is called."""

    def load(self, warm_up_s: float) -> Arrivals:
        """Return it with a warm-up of so many seconds at its first rates."""

    def published(self, window_s: float) -> MeasuredRates | None:
        """Return what a monitor with this window measured of it; None: that is simulated."""


@dataclass(frozen=True, slots=True)
class StreamSource:
    """Rows of rates, bytes/s, each `row_s` seconds long."""

    label: str
    rows: Sequence[Mapping[TopicPartition, BytesPerSecond]]
    row_s: float

    def load(self, warm_up_s: float) -> Arrivals:
        """See `Source.load`."""
        return arrivals(self.rows, self.row_s, warm_up_s=warm_up_s)

    def published(self, window_s: float) -> MeasuredRates | None:
        """Return None: nothing of it was measured."""
        del window_s
        return None


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """A recording: its rates are in bytes/s whatever consumers sustain."""

    label: str
    passes: Recorded

    def load(self, warm_up_s: float) -> Arrivals:
        """See `Source.load`."""
        return self.passes.load(warm_up_s)

    def published(self, window_s: float) -> MeasuredRates | None:
        """See `Source.published`."""
        return self.passes.published(window_s)


def from_file(
    path: Path, capacity: BytesPerSecond, row_s: float | None, *, label: str | None = None
) -> Source:
    """Read a stream or a recording.

    Args:
        path: Of a stream (`binwright generate`) or a recording (`binwright record`).
        capacity: 100 per cent of a stream, bytes/s.
        row_s: The length of a stream's row, s; of a recording, the least time from one measurement
            that is taken to the next. None: 30 s, and all measurements.
        label: Of the source; None: the file's name.

    Raises:
        StreamError: It is neither; names the file and the fault.
    """
    try:
        with path.open("rb") as file:
            if recording.is_recording(file.readline()):
                file.seek(0)
                reader = recording.RecordingReader(file)
                return RecordedSource(label or path.name, recorded(reader, row_s or 0.0))
    except (OSError, StreamError) as exc:
        raise StreamError(f"{path}: {exc}") from exc
    return from_stream(label or path.name, stream_file.read(path), capacity, row_s)


def from_stream(
    label: str, stream: streams.Stream, capacity: BytesPerSecond, row_s: float | None
) -> StreamSource:
    """Return a stream in bytes/s."""
    rows = [streams.as_rates(row, capacity) for row in stream]
    return StreamSource(label, rows, stream_file.ROW_S if row_s is None else row_s)


def generated(walk: Walk, capacity: BytesPerSecond, row_s: float | None) -> StreamSource:
    """Return a random walk in bytes/s."""
    label = f"random walk of {walk.partitions * len(walk.topics)} partitions, delta {walk.delta}"
    stream = list(generate(walk))
    return from_stream(f"{label}, seed {walk.seed}", stream, capacity, row_s)
