"""Where a simulated load comes from: a stream of per cents, or a recording of measurements.

A recording holds what controllers read: rates over the monitor's window, once a second. They are
given to a simulated controller as they are, so that it decides by what was known. What was written
follows from the sizes of logs in the same measurements, or from their offsets where a size fell.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Protocol

import numpy as np

from binwright.lab.simulation.fluid.arrivals import Floats, FluidLoad, arrivals
from binwright.lab.simulation.scenario import PublishedRates
from binwright.protocol.errors import StreamError
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.protocol.monitors import Monitors, accept_measurement
from binwright.streams import recording, stream_file, streams
from binwright.streams.generated import Walk, generate

READ_S = 0.1
"""From a pass of the monitor until a controller has read its measurements."""
ROW_S = 10.0
"""The length of a row of what was written."""
WINDOW_SHARE = 0.1
"""A window that differs by more than this share of it is another setting."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording's passes; times in seconds since the first one.

    Everything is in bytes, or everything in records: a simulation does not care.
    """

    partitions: tuple[TopicPartition, ...]
    times: Floats
    rates: Floats  # as measured, bytes/s, times x partitions
    written: Floats  # bytes since the first pass, times x partitions
    window_s: float  # over which rates were measured
    label: str = ""

    def published(self, window_s: float) -> PublishedRates | None:
        """Return the measurements as controllers read them; None: for another window."""
        if abs(window_s - self.window_s) > WINDOW_SHARE * self.window_s:
            return None
        return PublishedRates(self.times + READ_S, self.rates)

    def load(self, warm_up_s: float, row_s: float = ROW_S) -> FluidLoad:
        """Return what was written, in rows; in the warm-up the first rates that were measured."""
        end = float(self.times[-1])
        edges = np.append(np.arange(0.0, end, row_s), end)
        at_edges = np.array([np.interp(edges, self.times, one) for one in self.written.T]).T
        rates = np.diff(at_edges, axis=0) / np.diff(edges)[:, None]
        before = self.rates[:1]
        every = np.vstack([before, rates]) if warm_up_s > 0 else rates
        starts = [-warm_up_s] if warm_up_s > 0 else []
        return FluidLoad(self.partitions, (*starts, *edges.tolist()), every)


def recorded(measurements: Iterable[Measurement], every_s: float = 0.0) -> Recorded:
    """Read a recording once, measurement by measurement.

    A partition that is not measured any more is not written any more.

    Args:
        measurements: In the order in which they were published.
        every_s: Passes that follow the last one by less than this are left out.

    Raises:
        StreamError: There are fewer than two passes, or no rate.
    """
    passes = Passes(every_s)
    for measurement in measurements:
        passes.add(measurement)
    return passes.finish()


class Passes:
    """Collects passes; a partition that appears later was not written before.

    Of two monitors one is followed, as by a controller.
    """

    def __init__(self, every_s: float = 0.0, *, in_records: bool = False) -> None:
        """Leave out passes that follow the last one by less than `every_s` seconds.

        Count bytes, or records.
        """
        self._every_s, self._in_records = every_s, in_records
        self._monitors = Monitors()
        self._times = array("d")
        self._rows: list[tuple[array[float], array[float]]] = []
        self._index: dict[TopicPartition, int] = {}
        self._last: dict[TopicPartition, tuple[float, PartitionRate]] = {}
        self._rates, self._written = array("d"), array("d")
        self._at_s: float | None = None
        self._windows: list[float] = []

    def add(self, measurement: Measurement) -> None:
        """Add a measurement, in the order in which they were published."""
        at_s = measurement.at_ms / 1000
        self._monitors, accepted, _ = accept_measurement(self._monitors, at_s, measurement)
        if accepted:
            self._add(at_s, measurement)

    def _add(self, at_s: float, measurement: Measurement) -> None:
        if self._at_s is not None and at_s != self._at_s:
            self._end_pass()
        self._at_s = at_s
        for rate in measurement.partitions:
            partition = TopicPartition(measurement.topic, rate.partition)
            index = self._index.setdefault(partition, len(self._index))
            if index == len(self._rates):
                self._rates.append(0.0)
                self._written.append(0.0)
            measured = rate.records_per_s if self._in_records else rate.rate
            if measured is not None:
                self._rates[index] = measured
                self._windows.append(rate.window_s)
            before = self._last.get(partition)
            if before is not None:
                self._written[index] += (
                    max(0, rate.end - before[1].end)
                    if self._in_records
                    else _bytes_between(before[1], rate, at_s - before[0])
                )
            if rate.quality != "stale" or rate.rate is not None:  # else its end may not be known
                self._last[partition] = (at_s, rate)
        for partition, index in self._index.items():
            if partition.topic == measurement.topic and partition.partition >= measurement.count:
                self._rates[index] = 0.0
                self._last.pop(partition, None)
        del self._windows[:-1000]

    def _end_pass(self) -> None:
        assert self._at_s is not None
        if self._times and self._at_s - self._times[-1] < self._every_s:
            return
        self._times.append(self._at_s)
        self._rows.append((self._rates[:], self._written[:]))

    def finish(self) -> Recorded:
        """Return all passes; raise `StreamError` for fewer than two, or for no rate."""
        if self._at_s is not None:
            self._end_pass()
        if len(self._rows) < 2 or not self._windows:  # noqa: PLR2004 - a beginning and an end
            raise StreamError("the recording holds no rate over any time")
        order = sorted(self._index)
        columns = [self._index[partition] for partition in order]
        rates, written = (
            _table([row[part] for row in self._rows], len(columns)) for part in (0, 1)
        )
        times = np.frombuffer(self._times, dtype=np.float64) - self._times[0]
        window_s = float(np.round(median(self._windows), 1))
        return Recorded(tuple(order), times, rates[:, columns], written[:, columns], window_s)


def _table(rows: list["array[float]"], columns: int) -> Floats:
    table = np.zeros((len(rows), columns))
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


def _bytes_between(before: PartitionRate, after: PartitionRate, seconds: float) -> float:
    """Return the bytes written between two measurements of a partition."""
    same = (before.leader, before.start) == (after.leader, after.start)
    if same and before.size is not None and after.size is not None and after.size >= before.size:
        return float(after.size - before.size)
    if after.bytes_per_record is not None:
        return max(0, after.end - before.end) * after.bytes_per_record
    return (after.rate or 0.0) * seconds


class Source(Protocol):
    """A load before it has a warm-up."""

    @property
    def label(self) -> str:
        """Return what it is called."""

    def load(self, warm_up_s: float) -> FluidLoad:
        """Return it with a warm-up of `warm_up_s` seconds at its first rates."""

    def published(self, window_s: float) -> PublishedRates | None:
        """Return what a monitor with this window measured of it; None: that is simulated."""


@dataclass(frozen=True, slots=True)
class StreamSource:
    """Rows of rates, bytes/s, each `row_s` seconds long."""

    label: str
    rows: Sequence[Mapping[TopicPartition, BytesPerSecond]]
    row_s: float

    def load(self, warm_up_s: float) -> FluidLoad:
        """See `Source.load`."""
        return arrivals(self.rows, self.row_s, warm_up_s=warm_up_s)

    def published(self, window_s: float) -> PublishedRates | None:
        """Return None: nothing of it was measured."""
        del window_s
        return None


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
                passes = recorded(reader, row_s or 0.0)
                return replace(passes, label=label or path.name)
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
