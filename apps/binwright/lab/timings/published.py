"""What the paper published of its system on Google's cloud, as read off its figures.

Landau, Andrade, Barbosa, arXiv 2402.06085: Table VI, Figures 13 to 17. Most numbers are lost in its
text; those of Figures 14 to 17 were digitised from the figures of the first author's thesis, those
of Figure 13 are of the recorded cycles of its consumer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

SOURCE = "Landau, Andrade, Barbosa, arXiv 2402.06085: Table VI, Figures 13 to 17"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTiming:
    """A distribution of the paper.

    Attributes:
        figure: Its number.
        observations: How many there are.
        quantiles: Share of the observations (0 to 1) -> seconds, both growing.
        binned: Whether the seconds are upper ends of bins.
    """

    figure: int
    observations: int
    quantiles: Mapping[float, float]
    binned: bool = False

    def quantile(self, share: float) -> float | None:
        """Return a published quantile, seconds; None: it is not known.

        Of figures in bins, it is the upper end of the bin that holds it.
        """
        if not self.binned:
            return self.quantiles.get(share)
        return min(s for known, s in self.quantiles.items() if known >= share)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCapacity:
    """One of the three conditions of Table VI, and the cycles of the paper's consumer in it."""

    name: str
    total_bytes: int
    partitions: int
    tables: int
    cycles: int
    mean: float  # bytes/s, as are the others
    deviation: float
    p5: float
    p50: float
    p95: float
    least: float
    most: float


def _timing(fields: Mapping[str, Any]) -> PublishedTiming:
    quantiles = dict(map(tuple, fields["quantiles"]))
    return PublishedTiming(
        figure=fields["figure"], observations=fields["observations"], quantiles=quantiles
    )


def _of_bins(fields: Mapping[str, Any]) -> PublishedTiming:
    """Return a distribution of which only the counts in bins are known."""
    total = sum(count for _, count in fields["counts"])
    quantiles, below = {0.0: float(fields["first_s"])}, 0
    for end_s, count in fields["counts"]:
        below += count
        quantiles[below / total] = float(end_s)
    return PublishedTiming(
        figure=fields["figure"], observations=total, quantiles=quantiles, binned=True
    )


_FOUND: Final[Mapping[str, Any]] = json.loads(
    (files("binwright.lab.timings") / "paper.json").read_bytes()
)
DELTA_1 = _timing(_FOUND["delta_1"])
"""The monitor's convergence: until 90 % of a step are measured, over a window of 30 s."""
DELTA_2 = _timing(_FOUND["delta_2"])
"""From a measurement to the request for new consumers."""
DELTA_3 = _of_bins(_FOUND["delta_3_bins"])
"""From the request for a consumer until its Deployment is ready."""
DELTA_4 = _timing(_FOUND["delta_4"])
"""From the readiness of all consumers until each has acknowledged its change."""
CONDITIONS: Sequence[PublishedCapacity] = tuple(
    PublishedCapacity(**found) for found in _FOUND["conditions"]
)
"""Tests 1 to 3."""
