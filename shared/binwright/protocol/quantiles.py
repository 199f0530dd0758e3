"""Quantiles of values of unequal weight."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate


def weighted_quantile(weighted: Iterable[tuple[float, float]], share: float) -> float:
    """Return the smallest value that at least `share` (0 to 1) of the weight does not exceed.

    Args:
        weighted: Values, each with its weight, finite and > 0; one at least.
        share: 0.5 is the median.
    """
    ordered = sorted(weighted)
    sums = list(accumulate(weight for _, weight in ordered))
    return ordered[bisect_left(sums, share * sums[-1])][0]
