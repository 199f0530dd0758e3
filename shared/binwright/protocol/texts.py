"""Words that messages of several programs share."""

from collections.abc import Collection
from itertools import islice


def first_of(names: Collection[object], most: int, between: str = ", ") -> str:
    """Return at most so many names, and how many more there are."""
    first, more = between.join(map(str, islice(names, most))), len(names) - most
    return f"{first} and {more} more" if more > 0 else first
