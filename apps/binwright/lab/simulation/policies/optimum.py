"""The fewest consumers that keep up at each moment: what no policy can undercut for long.

Each row of the load by itself, known beforehand, at what a consumer really sustains: no start-up,
no moves, no lag. A policy that has fewer consumers builds up lag. The number is exact where best
fit decreasing, or a search, packs the row into as many consumers as the lower bound L2 has; else L2
is what is counted, which is at most the optimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from binwright.packing.score import ROUNDING, lower_bound

TRIES = 200
"""Placements that a search makes before it gives up."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The fewest consumers of each row."""

    consumers: tuple[int, ...]
    unproved: int  # rows whose number is only a lower bound


def optimum(rows: Sequence[Sequence[float]], capacity: float) -> Optimum:
    """Return the fewest consumers of this capacity that each row needs.

    Args:
        rows: Rates of all partitions, bytes/s; one above `capacity` fills a consumer.
        capacity: Bytes/s, > 0.
    """
    counts, unproved = list[int](), 0
    for row in rows:
        shares = sorted(rate / capacity for rate in row)
        bound = lower_bound(shares)
        proved = fits(shares[::-1], bound)
        unproved += not proved
        counts.append(bound)
    return Optimum(tuple(counts), unproved)


def fits(shares: Sequence[float], bins: int) -> bool:
    """Return whether a packing into `bins` bins was found, by best fit and then by a search.

    Args:
        shares: Sizes in units of a bin, descending; one above 1 fills a bin.
        bins: Number of bins.
    """
    sizes = [min(share, 1.0) for share in shares]
    return _best_fit(sizes, bins) or _Search(sizes, bins).run()


def _best_fit(sizes: Sequence[float], bins: int) -> bool:
    free = [1.0] * bins
    for size in sizes:
        fitting = [(room, number) for number, room in enumerate(free) if size <= room + ROUNDING]
        if not fitting:
            return False
        room, number = min(fitting)
        free[number] = room - size
    return True


class _Search:
    """Depth first: the largest size first, into each bin with another room that holds it."""

    def __init__(self, sizes: Sequence[float], bins: int) -> None:
        self._sizes, self._free, self._tries = sizes, [1.0] * bins, TRIES

    def run(self) -> bool:
        return self._place(0)

    def _place(self, number: int) -> bool:
        if number == len(self._sizes):
            return True
        size, seen = self._sizes[number], set[float]()
        rooms = sorted((room, index) for index, room in enumerate(self._free))
        for room, index in rooms:
            if size > room + ROUNDING or room in seen:
                continue
            seen.add(room)
            self._tries -= 1
            if self._tries < 0:
                return False
            self._free[index] = room - size
            if self._place(number + 1):
                return True
            self._free[index] = room
        return False
