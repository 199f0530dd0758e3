"""A sorted collection with cheap additions and removals, up to millions of entries."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T", bound=tuple[float, ...])

BLOCK = 1_000
"""A block with twice as many entries is split."""


class Ordered(Generic[T]):
    """Distinct tuples in ascending order, as a list of short sorted lists.

    Every operation is two binary searches and a memory move within one block: O(log n + BLOCK). No
    block is empty, except a single one.
    """

    def __init__(self) -> None:
        self._blocks: list[list[T]] = [[]]
        self._firsts: list[T] = []

    def add(self, entry: T) -> None:
        """Add an entry."""
        at = max(0, bisect_right(self._firsts, entry) - 1)
        block = self._blocks[at]
        insort(block, entry)
        self._firsts[at : at + 1] = [block[0]]
        if len(block) > 2 * BLOCK:
            self._blocks.insert(at + 1, block[BLOCK:])
            self._firsts.insert(at + 1, block[BLOCK])
            del block[BLOCK:]

    def remove(self, entry: T) -> None:
        """Remove an entry that is present."""
        at = bisect_right(self._firsts, entry) - 1
        block = self._blocks[at]
        del block[bisect_left(block, entry)]
        if block:
            self._firsts[at] = block[0]
        else:
            del self._firsts[at]
            if len(self._blocks) > 1:
                del self._blocks[at]

    def first(self, fits: Callable[[T], bool]) -> T | None:
        """Return the least entry that fits; requires that all after one that fits fit, too."""
        at = max(0, bisect_left(self._firsts, x=True, key=fits) - 1)
        for block in self._blocks[at : at + 2]:
            if (found := bisect_left(block, x=True, key=fits)) < len(block):
                return block[found]
        return None
