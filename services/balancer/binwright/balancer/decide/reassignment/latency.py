"""Whether producers wait longer than before the move began."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

BASELINE = 5
"""Measurements before the first move."""
RECENT = 3
"""Measurements whose median counts: one slow request pauses nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyGate:
    """Closes when the median of the last measurements rises, and opens when it has fallen again.

    Attributes:
        factor: Closes above the baseline times this, > 1.
        least_s: Never closes below the baseline plus this, s: small times vary by themselves.
        before: The first `BASELINE` measurements, s.
        recent: The last `RECENT` ones, s.
        closed: Whether moves pause.
    """

    factor: float = 3.0
    least_s: float = 0.1
    before: Sequence[float] = ()
    recent: Sequence[float] = ()
    closed: bool = False

    @property
    def baseline_s(self) -> float | None:
        """Return the median before the first move; None until it is known."""
        return median(self.before) if len(self.before) >= BASELINE else None

    @property
    def limit_s(self) -> float | None:
        """Return above which median the gate closes; None until it is known."""
        baseline = self.baseline_s
        return None if baseline is None else max(baseline * self.factor, baseline + self.least_s)

    @property
    def latency_s(self) -> float | None:
        """Return the median of the last measurements; None before the first."""
        return median(self.recent) if self.recent else None

    def measured(self, latency_s: float) -> "LatencyGate":
        """Return the gate after one more measurement.

        It opens again at half the way from the limit to the baseline, so that it does not swing.
        """
        gate = replace(self, recent=(*self.recent, latency_s)[-RECENT:])
        baseline, limit = self.baseline_s, self.limit_s
        if baseline is None or limit is None:
            return replace(gate, before=(*self.before, latency_s))
        recent = median(gate.recent)
        return replace(gate, closed=recent > ((baseline + limit) / 2 if self.closed else limit))
