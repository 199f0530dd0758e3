"""A recording as a load: what was measured then, and what was written.

A recording holds what controllers read: rates over the monitor's window, once a second. They are
given to a simulated controller as they are, so that it decides by what was known. What was written
follows from the sizes of logs in the same measurements, or from their offsets where a size fell.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

import numpy as np

from binwright.lab.simulation.flow.arrivals import Arrivals, Floats
from binwright.lab.simulation.scenario import MeasuredRates
from binwright.protocol.errors import StreamError
from binwright.protocol.measurements import Measurement, PartitionRate
from binwright.protocol.model import TopicPartition
from binwright.protocol.monitors import Monitors, accept_measurement

READ_S = 0.1
"""From a pass of the monitor until a controller has read its measurements."""
ROW_S = 10.0
"""The length of a row of what was written."""
WINDOW_SHARE = 0.1
"""A window that differs by more than this share of it is another setting."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording's passes; times in seconds since the first one."""

    partitions: tuple[TopicPartition, ...]
    times: Floats
    rates: Floats  # as measured, bytes/s, times x partitions
    written: Floats  # bytes since the first pass, times x partitions
    window_s: float  # over which rates were measured

    def published(self, window_s: float) -> MeasuredRates | None:
        """Return the measurements as controllers read them; None: for another window."""
        if abs(window_s - self.window_s) > WINDOW_SHARE * self.window_s:
            return None
        return MeasuredRates(self.times + READ_S, self.rates)

    def load(self, warm_up_s: float, row_s: float = ROW_S) -> Arrivals:
        """Return what was written, in rows; in the warm-up the first rates that were measured."""
        end = float(self.times[-1])
        edges = np.append(np.arange(0.0, end, row_s), end)
        at_edges = np.array([np.interp(edges, self.times, one) for one in self.written.T]).T
        rates = np.diff(at_edges, axis=0) / np.diff(edges)[:, None]
        before = self.rates[:1]
        every = np.vstack([before, rates]) if warm_up_s > 0 else rates
        starts = [-warm_up_s] if warm_up_s > 0 else []
        return Arrivals(self.partitions, (*starts, *edges.tolist()), every)


def recorded(measurements: Iterable[Measurement], every_s: float = 0.0) -> Recorded:
    """Read a recording once, measurement by measurement.

    Of two monitors one is followed, as by a controller. A partition that is not measured any more
    is not written any more.

    Args:
        measurements: In the order in which they were published.
        every_s: Passes that follow the last one by less than this are left out.

    Raises:
        StreamError: There are fewer than two passes, or no rate.
    """
    passes = _Passes(every_s)
    monitors = Monitors()
    for measurement in measurements:
        at_s = measurement.at_ms / 1000
        monitors, accepted, _ = accept_measurement(monitors, at_s, measurement)
        if accepted:
            passes.add(at_s, measurement)
    return passes.finish()


class _Passes:
    """Collects passes; a partition that appears later was not written before."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._times = array("d")
        self._rows: list[tuple[array[float], array[float]]] = []
        self._index: dict[TopicPartition, int] = {}
        self._last: dict[TopicPartition, tuple[float, PartitionRate]] = {}
        self._rates, self._written = array("d"), array("d")
        self._at_s: float | None = None
        self._windows: list[float] = []

    def add(self, at_s: float, measurement: Measurement) -> None:
        if self._at_s is not None and at_s != self._at_s:
            self._end_pass()
        self._at_s = at_s
        for rate in measurement.partitions:
            partition = TopicPartition(measurement.topic, rate.partition)
            index = self._index.setdefault(partition, len(self._index))
            if index == len(self._rates):
                self._rates.append(0.0)
                self._written.append(0.0)
            if rate.rate is not None:
                self._rates[index] = rate.rate
                self._windows.append(rate.window_s)
            before = self._last.get(partition)
            if before is not None:
                self._written[index] += _bytes_between(before[1], rate, at_s - before[0])
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
