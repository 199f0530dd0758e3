"""An index of bins: the one with the most rate left among those with enough lag left."""

from heapq import heappop, heappush

from binwright.scaler.decide.policies.capacity import Bin

_Key = tuple[float, int, int]
"""- rate left, partitions, number: the least key is the bin to fill next."""
_NONE: _Key = (1.0, 0, 0)


class OpenBins:
    """Bins 0 to n - 1 as a tree; each node has the least key and the most lag left below it.

    To take a bin costs O(log n), and so does to find one, where rate and lag are not opposed: nodes
    without enough lag are not entered.
    """

    def __init__(self, number: int, capacity: Bin) -> None:
        leaves = 1 << (number - 1).bit_length()
        missing = leaves - number
        self._first = leaves
        self._keys = [_NONE] * leaves + [(-capacity.rate, 0, at) for at in range(number)]
        self._keys += [_NONE] * missing
        self._lags = [-1.0] * leaves + [capacity.lag] * number + [-1.0] * missing
        # Level by level, from the leaves: of equal bins the left one has the least key.
        level = leaves
        while level > 1:
            above = slice(level // 2, level)
            self._keys[above] = self._keys[level : 2 * level : 2]
            self._lags[above] = self._lags[level : 2 * level : 2]
            level //= 2

    def find(self, lag: float) -> tuple[int, float]:
        """Return the bin with the most rate left that has so much lag left, and its rate left.

        Of equal ones that with the fewest partitions, then the lowest number. Without one the rate
        left is negative.
        """
        best = self._keys[1]
        if self._lags[self._first + best[2]] >= lag:
            return best[2], -best[0]
        reached = [(best, 1)]
        while reached:
            key, node = heappop(reached)
            if node >= self._first:
                return key[2], -key[0]
            for child in (2 * node, 2 * node + 1):
                if self._lags[child] >= lag:
                    heappush(reached, (self._keys[child], child))
        return -1, -1.0

    def fill(self, number: int, rate: float, lag: float) -> None:
        """Put a partition into a bin."""
        keys, lags = self._keys, self._lags
        node = self._first + number
        left, partitions, _ = keys[node]
        key = keys[node] = (left + rate, partitions + 1, number)
        most = lags[node] = lags[node] - lag
        # Calls of `min` and `max` would double the time of a whole packing.
        while node > 1:
            if keys[node ^ 1] < key:  # noqa: PLR1730
                key = keys[node ^ 1]
            if lags[node ^ 1] > most:  # noqa: PLR1730
                most = lags[node ^ 1]
            node //= 2
            keys[node], lags[node] = key, most
