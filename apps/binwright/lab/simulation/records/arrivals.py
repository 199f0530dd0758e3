"""The load of a simulation: records that arrive in bursts, a number of them in each second."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLoad:
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


def bursts(
    events: int, shares: NDArray[np.float64], chunks: int, rng: np.random.Generator, *, random: bool
) -> list[list[int]]:
    """Return the records of each partition in each part of a second."""
    exact = np.ceil(events * shares - 1e-9).astype(np.int64)
    each: NDArray[np.int64] = rng.multinomial(events, shares) if random else exact
    if chunks == 1:
        return [[int(one) for one in each]]
    even = np.full(chunks, 1 / chunks)
    by_partition = [rng.multinomial(many, even) for many in each]
    return [[int(row[chunk]) for row in by_partition] for chunk in range(chunks)]
