"""What an assignment costs, and how far it is from the best there could be.

Names and equations are those of Landau, Andrade, Barbosa, arXiv 2402.06085. Two objectives pull
against each other: few consumers (CBS) and few bytes that change hands (E[R]); both are better
when smaller.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice, repeat
from math import ceil
from typing import TypeVar

from binwright.core.model import Assignment, BytesPerSecond, Rates, TopicPartition

T = TypeVar("T")

ROUNDING = 1e-9
"""What sums of floats may be off by, as a share of a consumer."""


def moved(current: Assignment, target: Assignment) -> Iterator[TopicPartition]:
    """Yield, in order, the partitions that had an owner before and have another now."""
    return (p for p in sorted(current.keys() & target.keys()) if current[p] != target[p])


def rscore(
    rates: Rates, capacity: BytesPerSecond, current: Assignment, target: Assignment
) -> float:
    """Return the speed that changes hands, in units of a consumer's capacity (eq. 11).

    Args:
        rates: Bytes/s now; holds every partition that moves.
        capacity: What one consumer is packed to, bytes/s, > 0.
        current: Who reads what before.
        target: Who reads what afterwards.
    """
    return sum(rates[p] for p in moved(current, target)) / capacity


def expected_rscore(rscores: Sequence[float]) -> float:
    """Return E[R], the mean Rscore of a stream's decisions (eq. 29), in consumers' capacities.

    The first decision of a new group moves nothing, and counts.

    Raises:
        ValueError: There is not one decision.
    """
    if not rscores:
        raise ValueError("a mean needs at least one decision")
    return sum(rscores) / len(rscores)


def cardinal_bin_score(consumers: Sequence[int], fewest: Sequence[int]) -> float:
    """Return CBS: by which share an algorithm exceeds the fewest consumers, on average (eq. 28).

    Args:
        consumers: How many the algorithm used, decision by decision.
        fewest: The fewest that any of the algorithms compared used (see `fewest_of`), each > 0.

    Raises:
        ValueError: There is not one decision, or their numbers differ.
    """
    if not consumers:
        raise ValueError("a mean needs at least one decision")
    pairs = zip(consumers, fewest, strict=True)
    return sum((used - least) / least for used, least in pairs) / len(consumers)


def fewest_of(runs: Sequence[Sequence[int]]) -> list[int]:
    """Return, decision by decision, the fewest consumers that any of these runs used."""
    return [min(used) for used in zip(*runs, strict=True)]


def lower_bound(rates: Rates, capacity: BytesPerSecond) -> int:
    """Return a number of consumers that no packing can go below: the bound L2.

    Martello and Toth, "Lower bounds and reduction procedures for the bin packing problem",
    Discrete Applied Mathematics 28 (1990). For every threshold a up to half a capacity: partitions
    above capacity - a share with none that count, those above half with none of their kind, and
    what is left of the rest must find room. At least 2/3 of the optimum; O(n log n).

    Args:
        rates: Bytes/s, each finite and >= 0; one above capacity fills a consumer.
        capacity: Of the largest consumer, bytes/s, > 0.
    """
    return lower_bound_of(sorted(rate / capacity for rate in rates.values()))


def lower_bound_of(shares: Sequence[float]) -> int:
    """Return L2 of rates in units of a capacity, sorted ascending. See `lower_bound`."""
    whole = bisect_right(shares, 1.0)
    each = chain(islice(shares, whole), repeat(1.0, len(shares) - whole))
    sums = list(accumulate(each, initial=0.0))
    half = _after(shares, 0.5)
    large = len(shares) - half
    # Zero rates alone need a consumer too.
    best = max(ceil(sums[-1] - ROUNDING), large, 1 if shares else 0)
    # Thresholds only matter at a rate. Of a range of them the first leaves out the least and the
    # last finds the least room: a range is cut in two while both together would raise the bound.
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
    """Return where those above `bound` begin, to within rounding."""
    return bisect_left(shares, bound + ROUNDING)


def pareto_front(points: Mapping[T, tuple[float, float]]) -> list[T]:
    """Return whom nobody beats, from the least of the first objective to the least of the second.

    One beats another that is no better in both objectives and worse in one; equal ones both stay.

    Args:
        points: Two objectives each, both better when smaller, for example (CBS, E[R]).
    """
    front: list[T] = []
    for name in sorted(points, key=points.__getitem__):
        if not front or points[name][1] < points[front[-1]][1] or points[name] == points[front[-1]]:
            front.append(name)
    return front
