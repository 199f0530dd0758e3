"""The lag of a whole group over time: bytes written and not read, once a second."""

from array import array
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FIGURES = 6  # of a part
PARTS = 50_000
"""So many parts are summed up at once: some ten megabytes."""


class LagSeries:
    """The sum of all backlogs at whole steps; the parts are added in any order."""

    def __init__(self, begin: float, end: float, step_s: float = 1.0) -> None:
        """Sample from `begin` to `end`, both included, every `step_s` seconds."""
        self.begin, self.step_s = begin, step_s
        self._sum: Floats = np.zeros(floor((end - begin) / step_s) + 1)
        # Not summed up yet, of each: begin, end, first, last; its first sample, and how many it has
        # at most.
        self._parts = array("d")

    @property
    def bytes(self) -> Floats:
        """Return the lag at each step."""
        self._sum_up()
        return self._sum

    def add(self, begin: float, end: float, first: float, last: float) -> None:
        """Add a backlog that changes evenly from `first` bytes to `last` bytes.

        The sample at `begin` belongs to the time before, the one at `end` to this one.
        """
        low = max(floor((begin - self.begin) / self.step_s) + 1, 0)
        high = min(ceil((end - self.begin) / self.step_s), len(self._sum) - 1)
        if high > low or (high == low and self.begin + high * self.step_s <= end):
            self._parts.extend((begin, end, first, last, low, high - low + 1))
            if len(self._parts) >= FIGURES * PARTS:
                self._sum_up()

    def clear(self) -> None:
        """Forget all that was added."""
        del self._parts[:]
        self._sum[:] = 0.0

    def _sum_up(self) -> None:
        """Sample all parts at once: most are a few samples long."""
        parts = np.array(self._parts).reshape(-1, FIGURES).T
        begin, end, first, last = parts[:4]
        low, counts = parts[4:].astype(np.int64)
        each = np.repeat(np.arange(len(counts)), counts)
        into = np.arange(len(each)) - np.repeat(np.cumsum(counts) - counts, counts)
        samples = low[each] + into
        times = self.begin + samples * self.step_s
        slope = (last - first) / (end - begin)
        values = first[each] + slope[each] * (times - begin[each])
        inside = times <= end[each]
        np.add.at(self._sum, samples[inside], values[inside])
        del self._parts[:]
