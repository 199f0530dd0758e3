"""Pairs bins with members so that the most partitions keep their owner.

Kuhn, "The Hungarian method for the assignment problem", Naval Research Logistics 2 (1955), in the
form with shortest augmenting paths. `BinMatching.java` does the same step by step, so that equal
groups get equal pairs.
"""

from collections.abc import Sequence

_FAR = 1 << 60


def best_pairs(kept: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the column of each row, such that the sum of the chosen values is the largest.

    Args:
        kept: n rows of m values each, >= 0. The shorter side is paired completely.

    Returns:
        Row -> column, min(n, m) of them.
    """
    if not kept:
        return {}
    if len(kept) > len(kept[0]):
        turned = [list(column) for column in zip(*kept, strict=True)]
        return {row: column for column, row in best_pairs(turned).items()}
    search = _Search(kept)
    for row in range(len(kept)):
        search.add(row)
    return {row: column for column, row in enumerate(search.row_of) if row >= 0}


class _Search:
    """The rows that are paired so far, with the potentials that prove the pairs the best."""

    def __init__(self, kept: Sequence[Sequence[int]]) -> None:
        self.kept = kept
        self.columns = len(kept[0])
        self.row_of = [-1] * self.columns
        self.of_row, self.of_column = [0] * len(kept), [0] * self.columns

    def add(self, row: int) -> None:
        """Pair one more row along the shortest path to a free column."""
        distance, before = [_FAR] * self.columns, [-1] * self.columns
        visited: list[int] = []
        seen = [False] * self.columns
        column, current = -1, row
        while current >= 0:
            nearest = self._nearest(current, column, seen, distance, before)
            step = distance[nearest]
            self.of_row[row] += step
            for each in visited:
                self.of_row[self.row_of[each]] += step
                self.of_column[each] -= step
            for each in range(self.columns):
                if not seen[each]:
                    distance[each] -= step
            column = nearest
            seen[column] = True
            visited.append(column)
            current = self.row_of[column]
        while column >= 0:
            previous = before[column]
            self.row_of[column] = self.row_of[previous] if previous >= 0 else row
            column = previous

    def _nearest(
        self, row: int, column: int, seen: list[bool], distance: list[int], before: list[int]
    ) -> int:
        """Update the distances by way of `row`, and return the nearest column; a free one first."""
        nearest = -1
        values, potential = self.kept[row], self.of_row[row]
        for each in range(self.columns):
            if seen[each]:
                continue
            cost = -values[each] - potential - self.of_column[each]
            if cost < distance[each]:
                distance[each], before[each] = cost, column
            is_nearer = nearest < 0 or distance[each] < distance[nearest]
            if is_nearer or (
                distance[each] == distance[nearest]
                and self.row_of[each] < 0
                and self.row_of[nearest] >= 0
            ):
                nearest = each
        return nearest
