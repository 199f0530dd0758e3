"""What a fluid load is measured by: the lag of the group over time, and how long bytes waited.

Latency is the time from when a byte is written until a consumer reads it, in seconds. Bytes are
what is weighed: with records of equal size a share of bytes is a share of records.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

SAME_S = 1e-9
"""Latencies closer than this, in seconds, are one."""
POINTS, LEAST_SHARE = 400, 1e-7
"""Points of a distribution that is drawn or written, and the least share that is told apart."""


class LatencyPieces:
    """Bytes that left a backlog: each piece at latencies spread evenly between two bounds."""

    def __init__(self) -> None:
        self._pieces = array("d")  # low, high, bytes of each

    def add(self, first: float, last: float, amount: float) -> None:
        """Add `amount` bytes whose latencies run evenly from `first` to `last`, seconds."""
        low, high = (first, last) if first <= last else (last, first)
        if low < 0.0:
            low, high = 0.0, max(high, 0.0)
        self._pieces.extend((low, high, amount))

    def clear(self) -> None:
        """Forget all pieces."""
        del self._pieces[:]

    def distribution(self, total: float) -> "Latencies":
        """Return the distribution over `total` bytes: those in no piece did not wait."""
        pieces = np.frombuffer(self._pieces, dtype=np.float64).reshape(-1, 3)
        return Latencies.of(pieces, total)


@dataclass(frozen=True)
class Latencies:
    """A distribution of latencies: `below[i]` bytes waited at most `at[i]` seconds.

    Between two points it is linear; the bytes that did not wait are the first value.
    """

    at: NDArray[np.float64]  # seconds, ascending; the first is 0
    below: NDArray[np.float64]  # bytes, ascending
    total: float  # bytes

    @classmethod
    def of(cls, pieces: NDArray[np.float64], total: float) -> "Latencies":
        """Sum up the pieces exactly: a point at every bound."""
        low, high, amount = pieces.T
        waited = float(amount.sum())
        total = max(total, waited)
        even = high - low <= SAME_S  # a pause of no length, or a step
        steps_at, steps = low[even], amount[even]
        rates = amount[~even] / (high - low)[~even]
        at = np.unique(np.concatenate([[0.0], low, high]))
        slope = np.zeros(len(at))
        np.add.at(slope, np.searchsorted(at, low[~even]), rates)
        np.add.at(slope, np.searchsorted(at, high[~even]), -rates)
        below = np.concatenate([[0.0], np.cumsum(np.cumsum(slope)[:-1] * np.diff(at))])
        jumps = np.zeros(len(at))
        np.add.at(jumps, np.searchsorted(at, steps_at), steps)
        below += np.cumsum(jumps) + (total - waited)
        return cls(at, np.maximum.accumulate(below), total)

    def percentile(self, share: float) -> float:
        """Return the least latency that `share` (0 to 1) of the bytes do not exceed, seconds."""
        wanted = share * self.total
        index = int(np.searchsorted(self.below, wanted * (1 - 1e-12)))
        if index == 0 or index == len(self.at):
            return float(self.at[min(index, len(self.at) - 1)])
        before, after = self.below[index - 1], self.below[index]
        part = (wanted - before) / (after - before)
        return float(self.at[index - 1] + part * (self.at[index] - self.at[index - 1]))

    def share_within(self, seconds: float) -> float:
        """Return the share of bytes, 0 to 1, that waited at most `seconds`; 1 if there are none."""
        if not self.total:
            return 1.0
        return float(np.interp(seconds, self.at, self.below) / self.total)

    def curve(self, points: int = POINTS) -> tuple[Sequence[float], Sequence[float]]:
        """Return latencies and the share of bytes within each, at most `points` of them.

        The higher the share the closer the points: the longest latencies matter.
        """
        if len(self.at) <= points:
            return self.at.tolist(), (self.below / (self.total or 1.0)).tolist()
        waited = 1.0 - self.below[0] / self.total
        rest = np.geomspace(waited, min(waited, LEAST_SHARE), points - 1)
        shares = [*(1.0 - rest).tolist(), 1.0]
        return [self.percentile(share) for share in shares], shares


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
