"""The events of each second that a producer sends, and how they are spread over partitions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, cos, pi

PARTITIONS = 5
SKEWED_PARTITIONS = 9
HOT = 0.25
"""The share of each of the two hot partitions of a skewed workload; the others share the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Events per second, and the share of each partition."""

    name: str
    events: tuple[int, ...]  # of each second
    shares: tuple[float, ...]  # of each partition, in sum 1
    random: bool = True  # each event goes to a random partition; else shares are exact, rounded up
    is_stand_in: bool = False  # the true events are not at hand

    @property
    def duration_s(self) -> int:
        """Return the length."""
        return len(self.events)

    @property
    def peak(self) -> int:
        """Return the most events of a second."""
        return max(self.events)


KNOTS = ((0, 0), (125, 200), (212.5, 150), (300, 275), (387.5, 150), (475, 350), (600, 0))
"""Second and events/s of the paper's first workload; half a cosine lies between two of them."""


def first() -> Workload:
    """Return the paper's first workload, exactly: 109,053 events in ten minutes."""
    seconds = range(round(KNOTS[-1][0]))
    return even("w1", [ceil(between(KNOTS, second + 0.5)) for second in seconds])


def skewed(workload: Workload) -> Workload:
    """Return a workload over nine partitions: two of them have a quarter of the events each."""
    rest = SKEWED_PARTITIONS - 2
    shares = (HOT, HOT, *((1 - 2 * HOT) / rest for _ in range(rest)))
    return replace(workload, name=f"{workload.name}-skew", shares=shares, random=False)


def even(name: str, events: Sequence[int], partitions: int = PARTITIONS) -> Workload:
    """Return a workload whose events go to any partition alike."""
    return Workload(name=name, events=tuple(events), shares=(1 / partitions,) * partitions)


def between(knots: Sequence[tuple[float, float]], at: float) -> float:
    """Return the value at a place between the knots, on half a cosine between two of them."""
    for (left, low), (right, high) in pairwise(knots):
        if at <= right:
            return low + (high - low) * (1 - cos(pi * (at - left) / (right - left))) / 2
    raise ValueError(f"{at} is behind the last knot")
