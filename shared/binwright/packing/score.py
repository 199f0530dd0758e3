"""The paper's metrics of assignments, and a lower bound on the number of consumers.

Names and equations are those of Landau, Andrade, Barbosa, arXiv 2402.06085. There are two
conflicting objectives: few consumers (CBS), and a low rate of moved partitions (E[R]).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice, repeat
from math import ceil
from typing import TypeVar

from binwright.protocol.model import Assignment, BytesPerSecond, Rates, TopicPartition

T = TypeVar("T")

ROUNDING = 1e-9
"""The tolerance for sums of floats, as a share of a consumer's capacity."""


def moved_partitions(current: Assignment, target: Assignment) -> Iterator[TopicPartition]:
    """Yield, in order, the partitions whose owner differs; first starts are not moves."""
    return (p for p in sorted(current.keys() & target.keys()) if current[p] != target[p])


def rscore(
    rates: Rates, capacity: BytesPerSecond, current: Assignment, target: Assignment
) -> float:
    """Return the rate of the partitions that move, in units of a consumer's capacity (eq. 11).

    Args:
        rates: Bytes/s now, of every partition that moves at least.
        capacity: Of one consumer, bytes/s, > 0.
        current: The assignment before.
        target: The assignment afterwards.
    """
    return sum(rates[p] for p in moved_partitions(current, target)) / capacity


def expected_rscore(rscores: Sequence[float]) -> float:
    """Return E[R], the mean Rscore of a stream's decisions (eq. 29), in units of capacity.

    Includes the first decision of a new group, which moves nothing.

    Raises:
        ValueError: There are no decisions.
    """
    if not rscores:
        raise ValueError("a mean needs at least one decision")
    return sum(rscores) / len(rscores)


def cardinal_bin_score(consumers: Sequence[int], fewest: Sequence[int]) -> float:
    """Return CBS: the mean relative excess over the fewest consumers (eq. 28).

    Args:
        consumers: The number that the algorithm used, by decision.
        fewest: The fewest that any of the compared algorithms used (see `fewest_of`), each > 0.

    Raises:
        ValueError: There are no decisions, or the lengths differ.
    """
    if not consumers:
        raise ValueError("a mean needs at least one decision")
    pairs = zip(consumers, fewest, strict=True)
    return sum((used - least) / least for used, least in pairs) / len(consumers)


def fewest_of(runs: Sequence[Sequence[int]]) -> list[int]:
    """Return, by decision, the fewest consumers that any of these runs used."""
    return [min(used) for used in zip(*runs, strict=True)]


def lower_bound(shares: Sequence[float]) -> int:
    """Return L2, a lower bound on the number of consumers of any assignment.

    Martello and Toth, "Lower bounds and reduction procedures for the bin packing problem",
    Discrete Applied Mathematics 28 (1990). For every threshold a up to half a capacity, only the
    partitions of at least a count: those above capacity - a are alone, no two above half a capacity
    are together, and the others must fit into the remaining room. At least 2/3 of the optimum;
    O(n log n).

    Args:
        shares: Rates in units of the largest consumer's capacity, each finite and >= 0, sorted
            ascending; one above 1 fills a consumer.
    """
    if not shares or shares[-1] < ROUNDING:
        return min(len(shares), 1)  # partitions without load need a consumer, too
    whole = bisect_right(shares, 1.0)
    each = chain(islice(shares, whole), repeat(1.0, len(shares) - whole))
    sums = list(accumulate(each, initial=0.0))
    half = _after(shares, 0.5)
    large = len(shares) - half
    best = max(ceil(sums[-1] - ROUNDING), large, 1)
    # Only thresholds equal to a rate matter. Within a range of them the first leaves out the least
    # and the last finds the least room: a range is bisected while both together raise the bound.
    begin = bisect_left(shares, ROUNDING)
    ranges = [(begin, half)] if begin < half else []
    while ranges:
        first, last = ranges.pop()
        lone = _after(shares, 1.0 - shares[last - 1])
        room = (lone - half) - (sums[lone] - sums[half])
        bound = large + ceil(sums[half] - sums[first] - room - ROUNDING)
        if bound <= best:
            continue
        if last - first == 1:
            best = bound
        else:
            middle = (first + last) // 2
            ranges += [(middle, last), (first, middle)]
    return best


def _after(shares: Sequence[float], bound: float) -> int:
    """Return the index of the first share above `bound`, to within rounding."""
    return bisect_left(shares, bound + ROUNDING)


def pareto_front(points: Mapping[T, tuple[float, float]]) -> list[T]:
    """Return the names on the Pareto front, ascending by the first objective.

    A point dominates one that is worse in one objective and not better in the other; equal points
    are both returned.

    Args:
        points: Name -> two objectives to minimise, for example (CBS, E[R]).
    """
    front: list[T] = []
    for name in sorted(points, key=points.__getitem__):
        if not front or points[name][1] < points[front[-1]][1] or points[name] == points[front[-1]]:
            front.append(name)
    return front
