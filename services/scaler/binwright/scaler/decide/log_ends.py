"""How far the logs of a topic reach, and how fast records arrive: from repeated look-ups."""

from collections.abc import Mapping
from dataclasses import dataclass, field

WINDOW_S = 60.0
"""By default a rate is that of the last minute, as far back as there are look-ups."""

Ends = Mapping[int, int]
"""Partition number -> offset of the next record."""


@dataclass(frozen=True, slots=True)
class Trend:
    """How the rate of a whole topic changes: single partitions are too uneven for one each."""

    age_s: float = 0.0  # since the middle of the time whose mean the rates are
    growth: float = 0.0  # of the rate each second, as a share of that mean

    def factor(self, lead_s: float) -> float:
        """Return by what the mean rate is multiplied for the rate to be expected.

        A rising rate is that at the end of `lead_s`, when a replica ordered now reads; it is at
        most twice the mean, as one that has just begun to rise says little about how far it will.
        A falling rate is the mean of the later half of the time: it may have stopped to fall.
        """
        ahead_s = self.age_s + lead_s if self.growth > 0 else self.age_s / 2
        return min(2.0, max(0.0, 1.0 + self.growth * ahead_s))


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The ends of one topic's logs at some time, and records/s of each partition."""

    at_s: float  # monotonic
    ends: Ends
    rates: Mapping[int, float]  # of partitions whose rate is known
    count: int  # partitions that the topic has
    trend: Trend = Trend()


@dataclass(frozen=True, slots=True)
class EndHistory:
    """Looked-up ends of one topic within the last `window_s`, and the one before."""

    looked_up: tuple[tuple[float, Ends], ...] = field(default=())  # oldest first
    window_s: float = WINDOW_S

    def with_ends(self, at_s: float, ends: Ends) -> "EndHistory":
        """Return the history with one look-up more; `at_s` must not go back."""
        before = self.looked_up
        while len(before) > 1 and before[1][0] <= at_s - self.window_s:
            before = before[1:]
        return EndHistory((*before, (at_s, ends)), self.window_s)

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
        return LogEnds(at_s, ends, rates, count, self._trend())

    def _trend(self) -> Trend:
        """Return the difference between the two halves of the time, if there are two."""
        (first_s, first), (at_s, ends) = self.looked_up[0], self.looked_up[-1]
        middle_s = (first_s + at_s) / 2
        split_s, split = min(self.looked_up, key=lambda one: (abs(one[0] - middle_s), one[0]))
        known = first.keys() & split.keys() & ends.keys()
        arrived = sum(max(0, ends[p] - first[p]) for p in known)
        if not first_s < split_s < at_s or not arrived:
            return Trend()
        early = sum(max(0, split[p] - first[p]) for p in known) / (split_s - first_s)
        late = sum(max(0, ends[p] - split[p]) for p in known) / (at_s - split_s)
        passed_s = at_s - first_s
        return Trend(passed_s / 2, (late - early) / (passed_s / 2) / (arrived / passed_s))
