"""How far the logs of a topic reach, and how fast records arrive: from repeated look-ups."""

from collections.abc import Mapping
from dataclasses import dataclass, field

WINDOW_S = 60.0
"""A rate is that of the last minute, as far back as there are look-ups."""

Ends = Mapping[int, int]
"""Partition number -> offset of the next record."""


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The ends of one topic's logs at some time, and records/s of each partition."""

    at_s: float  # monotonic
    ends: Ends
    rates: Mapping[int, float]  # of partitions whose rate is known
    count: int  # partitions that the topic has


@dataclass(frozen=True, slots=True)
class EndHistory:
    """Looked-up ends of one topic within the last `WINDOW_S`, and the one before."""

    looked_up: tuple[tuple[float, Ends], ...] = field(default=())  # oldest first

    def with_ends(self, at_s: float, ends: Ends) -> "EndHistory":
        """Return the history with one look-up more; `at_s` must not go back."""
        before = self.looked_up
        while len(before) > 1 and before[1][0] <= at_s - WINDOW_S:
            before = before[1:]
        return EndHistory((*before, (at_s, ends)))

    def latest(self, count: int) -> LogEnds:
        """Return the last look-up with rates; needs at least one.

        A log that was truncated or made again has the rate 0 until its old ends are forgotten.

        Args:
            count: Partitions that the topic has.
        """
        (first_s, first), (at_s, ends) = self.looked_up[0], self.looked_up[-1]
        passed_s = at_s - first_s
        rates = (
            {p: max(0, end - first[p]) / passed_s for p, end in ends.items() if p in first}
            if passed_s > 0
            else {}
        )
        return LogEnds(at_s, ends, rates, count)
