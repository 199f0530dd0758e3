"""A set of durations, and its percentiles."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Distribution:
    """Durations, s, in order; at least one."""

    samples: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise `ValueError` without a sample."""
        if not self.samples:
            raise ValueError("a distribution needs a sample")

    @classmethod
    def of(cls, samples: Iterable[float]) -> "Distribution | None":
        """Return the distribution of these, in any order; None: there is none."""
        ordered = tuple(sorted(samples))
        return cls(ordered) if ordered else None

    def quantile(self, share: float) -> float:
        """Return the smallest sample that at least `share` (0 to 1) of them do not exceed."""
        return self.samples[max(0, ceil(share * len(self.samples)) - 1)]

    @property
    def mean(self) -> float:
        """The arithmetic mean, s."""
        return fmean(self.samples)
