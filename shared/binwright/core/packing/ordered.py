"""A sorted collection whose additions and removals stay cheap up to millions of entries."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T", bound=tuple[float, ...])

BLOCK = 1_000
"""A block of twice as many entries is cut in two."""


class Ordered(Generic[T]):
    """Distinct tuples in ascending order, kept as a list of short sorted lists.

    Every operation is two binary searches and a shift within one block: O(log n + BLOCK), the
    shift at the speed of memory. No block is ever empty, but for the only one.
    """

    def __init__(self) -> None:
        self._blocks: list[list[T]] = [[]]
        self._firsts: list[T] = []

    def add(self, entry: T) -> None:
        """Put an entry in its place."""
        at = max(0, bisect_right(self._firsts, entry) - 1)
        block = self._blocks[at]
        insort(block, entry)
        self._firsts[at : at + 1] = [block[0]]
        if len(block) > 2 * BLOCK:
            self._blocks.insert(at + 1, block[BLOCK:])
            self._firsts.insert(at + 1, block[BLOCK])
            del block[BLOCK:]

    def remove(self, entry: T) -> None:
        """Take out an entry that is there."""
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
        """Return the least entry that fits, if whatever follows one that fits does so too."""
        at = max(0, bisect_left(self._firsts, x=True, key=fits) - 1)
        for block in self._blocks[at : at + 2]:
            if (found := bisect_left(block, x=True, key=fits)) < len(block):
                return block[found]
        return None
