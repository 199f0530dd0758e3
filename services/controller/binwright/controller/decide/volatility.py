"""Measures how much rates change: the more they do, the more room consumers should keep."""

from dataclasses import dataclass, field
from math import fsum

from binwright.protocol.model import Rates

PERIOD_S = 30.0
"""Changes are measured over this time: the paper's time from one decision to the next."""
WEIGHT = 0.1
"""The weight of the newest change in the mean."""


@dataclass(frozen=True, slots=True)
class RateVolatility:
    """The mean square of rates' changes over a period; recent changes count more."""

    rates: Rates = field(default_factory=dict)  # at the beginning of the period
    since: float | None = None  # seconds, monotonic
    mean_square: float | None = None  # (bytes/s)^2; None: no period has ended yet

    def observe(self, rates: Rates, now: float) -> "RateVolatility":
        """Return the volatility after rates at `now`; unchanged until the period has ended."""
        if self.since is not None and now - self.since < PERIOD_S:
            return self
        before = self.rates.get
        pairs = ((rate, before(p)) for p, rate in rates.items())
        changes = [(rate - old) ** 2 for rate, old in pairs if old is not None]
        if not changes:
            return RateVolatility(rates, now, self.mean_square)
        newest = fsum(changes) / len(changes)  # exact: topics come in another order elsewhere
        mean = newest if self.mean_square is None else self.mean_square
        return RateVolatility(rates, now, mean + WEIGHT * (newest - mean))
