"""How much rates change, as observed: room in a consumer is worth the more, the more they do."""

from dataclasses import dataclass, field

from binwright.core.model import Rates

PERIOD_S = 30.0
"""Changes are taken over so long: the paper's time from one decision to the next."""
WEIGHT = 0.1
"""What the newest change counts for in the mean."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The mean square by which a rate changes in a period; recent changes count more."""

    rates: Rates = field(default_factory=dict)  # when the period began
    since: float | None = None  # seconds, monotonic
    squared: float | None = None  # (bytes/s)^2; None: nothing was observed yet

    def observe(self, rates: Rates, now: float) -> "Drift":
        """Return what is known with these rates at `now`; between periods that is the same."""
        if self.since is not None and now - self.since < PERIOD_S:
            return self
        changes = [(rate - self.rates[p]) ** 2 for p, rate in rates.items() if p in self.rates]
        if not changes:
            return Drift(rates, now, self.squared)
        newest = sum(changes) / len(changes)
        before = newest if self.squared is None else self.squared
        return Drift(rates, now, before + WEIGHT * (newest - before))
