"""Ranges of offsets."""

from dataclasses import dataclass, field

MAX_LISTED = 20
"""Ranges or offsets listed in a result; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets from `first` to `last`, both included."""

    first: int
    last: int

    def __len__(self) -> int:
        """Return how many."""
        return self.last - self.first + 1

    def __str__(self) -> str:
        """Return `5` or `5-9`."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(slots=True)
class Tally:
    """Counts offsets added in rising order, and lists the first ranges they form."""

    count: int = 0
    ranges: list[Range] = field(default_factory=list)
    _last: int = -1
    _full: bool = False

    def add(self, offset: int) -> None:
        """Count one offset, higher than all before."""
        self.count += 1
        if offset == self._last + 1 and self.ranges and not self._full:
            self.ranges[-1] = Range(self.ranges[-1].first, offset)
        elif len(self.ranges) < MAX_LISTED:
            self.ranges.append(Range(offset, offset))
        else:
            self._full = True
        self._last = offset
