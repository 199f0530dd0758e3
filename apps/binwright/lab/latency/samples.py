"""Millions of latencies, kept as the straight lines that they lie on.

A queue's latencies during an interval are l(x) = max(first + slope x, 0) for x = 0, 1, ...; to
count and to rank them needs no more than the lines. So memory and CPU follow the number of
intervals and consumers, not of bytes. Counts and order statistics are those of the samples written
out, but for lines that are flat to within rounding.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LatencyLine:
    """The latencies max(first + slope x, 0), seconds, for x = 0 to count - 1."""

    first: float  # >= 0
    slope: float  # seconds per byte
    count: int  # > 0

    @property
    def last(self) -> float:
        """Return the last latency, seconds."""
        return max(self.slope * (self.count - 1) + self.first, 0.0)


class SamplesBuilder:
    """Collects lines; those that are 0 throughout are only counted."""

    def __init__(self) -> None:
        self._first, self._slope, self._count = array("d"), array("d"), array("d")
        self._total = 0

    def add(self, line: LatencyLine) -> None:
        """Add the samples of one line."""
        self._total += line.count
        if line.first > 0 or line.slope > 0:
            self._first.append(line.first)
            self._slope.append(line.slope)
            self._count.append(line.count)

    def build(self) -> "LatencySamples":
        """Return what was added."""
        columns = [np.array(column) for column in (self._first, self._slope, self._count)]
        return LatencySamples(columns[0], columns[1], columns[2], self._total)


class LatencySamples:
    """Latencies in seconds, >= 0, and what can be asked of them."""

    def __init__(self, first: Floats, slope: Floats, count: Floats, total: int) -> None:
        self._first, self._slope, self._count = first, slope, count
        self._rising = slope >= 0
        ends = (slope * (count - 1) + first, first, np.zeros(1))
        self.max_s = float(max(part.max(initial=0.0) for part in ends))
        self.total = total
        self.above_zero = self.above(0.0)

    def above(self, bound_s: float) -> int:
        """Return how many samples are above a bound >= 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = np.ceil((bound_s - self._first) / self._slope)
        # A flat line at the bound: nothing of it is above.
        turn = np.clip(np.nan_to_num(estimate, nan=np.inf), 0, self._count)
        # The division may have rounded to the wrong side: look at the samples on both.
        turn -= (turn > 0) & ~self._before_turn(turn - 1, bound_s)
        turn += (turn < self._count) & self._before_turn(turn, bound_s)
        return int(np.where(self._rising, self._count - turn, turn).sum())

    def _before_turn(self, x: Floats, bound_s: float) -> NDArray[np.bool_]:
        """Return where sample x lies on the side of the bound where its line begins."""
        above: NDArray[np.bool_] = self._slope * x + self._first > bound_s
        return above ^ self._rising

    def quantile(self, share: float, *, above_zero: bool = False) -> float | None:
        """Return a quantile in seconds, interpolated between samples; None: there is no sample.

        Args:
            share: From 0 to 1.
            above_zero: Of the samples above 0 only, instead of all.
        """
        size = self.above_zero if above_zero else self.total
        if not size:
            return None
        position = share * (size - 1)
        rank = int(position)
        low = self._ranked(self.total - size + rank)
        if rank == size - 1:
            return low
        return low + (position - rank) * (self._ranked(self.total - size + rank + 1) - low)

    def _ranked(self, rank: int) -> float:
        """Return the sample of this rank, from 0, by bisection over all doubles up to the largest.

        The bits of doubles >= 0, read as integers, are in the order of their values.
        """
        if rank < self.total - self.above_zero:
            return 0.0
        low, high = 0, int(np.float64(self.max_s).view(np.int64))
        while low < high:
            middle = (low + high) // 2
            if self.total - self.above(float(np.int64(middle).view(np.float64))) > rank:
                high = middle
            else:
                low = middle + 1
        return float(np.int64(low).view(np.float64))

    def histogram(self, edges_s: Sequence[float]) -> list[int]:
        """Return how many samples are in each (edge, next edge], for ascending edges >= 0."""
        above = [self.above(edge) for edge in edges_s]
        return [low - high for low, high in pairwise(above)]
