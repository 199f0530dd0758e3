"""The load of a simulation: bytes written to each partition, at rates that change in steps."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from binwright.protocol.errors import StreamError
from binwright.protocol.model import TopicPartition

Floats = NDArray[np.float64]

RATE_DIGITS = 1
"""Digits of a rate in bytes/s, as the monitor publishes it."""


@dataclass(frozen=True)
class FluidLoad:
    """Rates in rows: row i holds from `edges[i]` to `edges[i + 1]`.

    Before the first edge the rates of the first row hold, so a window that begins there is full.

    Attributes:
        partitions: Sorted.
        edges: Seconds, ascending, one more than rows. Negative times are the warm-up.
        rates: Bytes/s, rows x partitions.
    """

    partitions: tuple[TopicPartition, ...]
    edges: tuple[float, ...]
    rates: Floats

    @cached_property
    def rows(self) -> list[list[float]]:
        """Return the rates as lists, which plain Python reads faster than arrays."""
        rows: list[list[float]] = self.rates.tolist()
        return rows

    @cached_property
    def topics(self) -> dict[str, list[int]]:
        """Return topic -> the indices of its partitions, in the order of their numbers."""
        indices: dict[str, list[int]] = {}
        for index, partition in enumerate(self.partitions):
            indices.setdefault(partition.topic, []).append(index)
        return indices

    @cached_property
    def index(self) -> dict[TopicPartition, int]:
        """Return partition -> its index."""
        return {partition: index for index, partition in enumerate(self.partitions)}

    @cached_property
    def _edges(self) -> Floats:
        return np.array(self.edges)

    @cached_property
    def _written(self) -> Floats:
        """Bytes written to each partition from the first edge to each edge."""
        bytes_of_rows = self.rates * np.diff(self._edges)[:, None]
        return np.vstack([np.zeros(len(self.partitions)), np.cumsum(bytes_of_rows, axis=0)])

    @property
    def ends_at(self) -> float:
        """Return when the last row ends, seconds."""
        return self.edges[-1]

    def row_at(self, time: float) -> int:
        """Return the row in which `time` lies; an edge belongs to the row that begins there."""
        return min(max(bisect_right(self.edges, time) - 1, 0), len(self.edges) - 2)

    def written(self, times: Floats) -> Floats:
        """Return bytes written since the first edge, times x partitions; below 0 before it."""
        rows = np.clip(
            np.searchsorted(self._edges, times, side="right") - 1, 0, len(self.rates) - 1
        )
        into: Floats = self._written[rows] + self.rates[rows] * (times - self._edges[rows])[:, None]
        return into

    def measured(self, times: Floats, window_s: float) -> Floats:
        """Return the rates that a monitor publishes, bytes/s, times x partitions.

        (A(t) - A(t - w)) / w: the bytes A that were written to the partition in the window of w
        seconds before t. The monitor's estimator gives the same from samples of logs; a test
        compares the two.
        """
        inside = self.written(times) - self.written(times - window_s)
        measured: Floats = np.round(inside / window_s, RATE_DIGITS)
        return np.abs(measured)  # of -0.0


def arrivals(
    rows: Sequence[Mapping[TopicPartition, float]],
    row_s: float,
    *,
    warm_up_s: float = 0.0,
    idle_before: bool = False,
) -> FluidLoad:
    """Return the load of these rows, each `row_s` seconds long; the first begins at 0.

    A partition that is missing in a row is not written during that row.

    Args:
        rows: Partition -> bytes/s.
        row_s: Seconds, > 0.
        warm_up_s: Seconds of load before 0, at the rates of the first row.
        idle_before: Nothing is written before 0, instead.

    Raises:
        StreamError: There are no rows or no partitions, or `row_s` is not > 0.
    """
    partitions = tuple(sorted({partition for row in rows for partition in row}))
    if not rows or not partitions:
        raise StreamError("a simulation needs at least one row with one partition")
    if not 0 < row_s < float("inf"):
        raise StreamError(f"a row must last finite seconds > 0, got {row_s}")
    rates = np.array([[row.get(p, 0.0) for p in partitions] for row in rows], dtype=np.float64)
    edges = [row * row_s for row in range(len(rows) + 1)]
    if warm_up_s > 0:
        before = np.zeros_like(rates[:1]) if idle_before else rates[:1]
        rates, edges = np.vstack([before, rates]), [-warm_up_s, *edges]
    return FluidLoad(partitions, tuple(edges), rates)
