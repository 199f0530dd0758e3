"""Whether too many of a table's newest records are bad: then its format or columns are wrong."""

from dataclasses import dataclass, replace

WINDOW = 1_000
"""Records that a share is of, at least: one bad record among a few is not yet a tenth of them."""


@dataclass(frozen=True, slots=True)
class BadShare:
    """Counts what landed last.

    Attributes:
        most: The share that may be bad, from 0 to 1.
        counts: Of the last commits: records, and how many of them were bad.
    """

    most: float = 1.0
    counts: tuple[tuple[int, int], ...] = ()

    def after(self, records: int, bad: int) -> "BadShare":
        """Return the share after one more commit, without commits that are too long ago."""
        counts = (*self.counts, (records, bad))
        oldest, total = 0, sum(each for each, _ in counts)
        while total - counts[oldest][0] >= WINDOW:
            total -= counts[oldest][0]
            oldest += 1
        return replace(self, counts=counts[oldest:])

    @property
    def records(self) -> int:
        """How many records the share is of."""
        return max(WINDOW, sum(records for records, _ in self.counts))

    @property
    def bad(self) -> int:
        """How many of them are bad."""
        return sum(bad for _, bad in self.counts)

    @property
    def exceeded(self) -> bool:
        """Whether more are bad than may be, some of the newest commit among them."""
        return bool(self.counts and self.counts[-1][1]) and self.bad > self.most * self.records
