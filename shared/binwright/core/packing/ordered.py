"""A sorted collection whose additions and removals stay cheap up to millions of entries."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=tuple[float, ...])

BLOCK = 1_000
"""Entries of a block when it is made; one that doubles is cut in two."""


class Ordered(Generic[T]):
    """Distinct tuples in ascending order, kept as a list of short sorted lists.

    Every operation is two binary searches and a shift within one block: O(log n + BLOCK), the
    shift at the speed of memory. No block is ever empty, but for the only one.
    """

    def __init__(self, entries: Iterable[T] = ()) -> None:
        every = sorted(entries)
        self._blocks = [every[at : at + BLOCK] for at in range(0, len(every), BLOCK)] or [[]]
        self._firsts = [block[0] for block in self._blocks if block]

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

    def least(self, bound: T) -> T | None:
        """Return the least entry that is not below `bound`."""
        at = max(0, bisect_right(self._firsts, bound) - 1)
        for block in self._blocks[at : at + 2]:
            if (found := bisect_left(block, bound)) < len(block):
                return block[found]
        return None

    @property
    def last(self) -> T | None:
        """Return the greatest entry."""
        block = self._blocks[-1]
        return block[-1] if block else None

    def descending(self) -> Iterator[T]:
        """Walk from the greatest entry to the least; nothing may change meanwhile."""
        for block in reversed(self._blocks):
            yield from reversed(block)
