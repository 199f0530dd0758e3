"""The lag of a whole group over time: bytes written and not read, once a second."""

from math import ceil, floor

import numpy as np
from numpy.typing import NDArray


class LagSeries:
    """The sum of all backlogs at whole steps; the parts are added in any order."""

    def __init__(self, begin: float, end: float, step_s: float = 1.0) -> None:
        """Sample from `begin` to `end`, both included, every `step_s` seconds."""
        self.begin, self.step_s = begin, step_s
        self.bytes: NDArray[np.float64] = np.zeros(floor((end - begin) / step_s) + 1)

    def add(self, begin: float, end: float, first: float, last: float) -> None:
        """Add a backlog that changes evenly from `first` bytes to `last` bytes.

        The sample at `begin` belongs to the time before, the one at `end` to this one.
        """
        low = max(floor((begin - self.begin) / self.step_s) + 1, 0)
        high = min(ceil((end - self.begin) / self.step_s), len(self.bytes) - 1)
        if high > low or (high == low and self._time(high) <= end):
            times = self.begin + np.arange(low, high + 1) * self.step_s
            times = times[times <= end]
            slope = (last - first) / (end - begin)
            self.bytes[low : low + len(times)] += first + slope * (times - begin)

    def clear(self) -> None:
        """Forget all that was added."""
        self.bytes[:] = 0.0

    def _time(self, sample: int) -> float:
        return self.begin + sample * self.step_s
