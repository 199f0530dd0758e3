"""What one replica sustains: a rate, and a lag that it works off within the SLA."""

from dataclasses import dataclass
from math import floor, isfinite
from typing import NamedTuple

from binwright.packing.score import ROUNDING
from binwright.protocol.errors import PackingError


class Bin(NamedTuple):
    """What one replica may be given."""

    rate: float  # per second, > 0
    lag: float  # > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCapacity:
    """What one replica serves, and how late a record may be.

    Raises:
        PackingError: A value is out of range.
    """

    rate: float  # served per second, the paper's mu: finite and > 0
    sla_s: float  # the paper's w: from a record's arrival to the end of its work, finite and > 0
    burst_s: float = 0.0  # between two arrivals of records in a batch; 0: they come one by one

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not all(isfinite(one) and one > 0 for one in (self.rate, self.sla_s)):
            raise PackingError(f"rate and sla_s must be finite and > 0: {self.rate}, {self.sla_s}")
        if not (isfinite(self.burst_s) and self.burst_s >= 0):
            raise PackingError(f"burst_s must be finite and >= 0, got {self.burst_s}")

    def bin(self, share: float) -> Bin:
        """Return what a replica takes at this share of its rate: whole records of lag, at least 1.

        A lag that fits is worked off within `sla_s` (equation 4 of the paper).
        """
        return Bin(self.rate * share, max(1, floor(self.rate * self.sla_s * share + ROUNDING)))

    def sustained(self, pause_s: float = 0.0) -> float:
        """Return the rate at which the last record that waits after a pause is still in time.

        What gathers while nobody reads must be worked off within the SLA, so a replica that has
        0.5 s for bursts of 1 s sustains half of its rate, and that is less after a pause in which
        several bursts arrive.

        Args:
            pause_s: How long nobody reads, >= 0.
        """
        gathered_s = pause_s
        if self.burst_s:
            gathered_s = self.burst_s * (floor(pause_s / self.burst_s + ROUNDING) + 1)
        return self.rate * min(1.0, self.sla_s / gathered_s) if gathered_s else self.rate
