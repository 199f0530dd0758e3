"""What a consumer does within the memory that it has."""

VALUE_SHARE, MOST_VALUE_BYTES = 4, 256_000_000
LARGE_SHARE = 24


def value_bytes(memory: int) -> int:
    """Return how much memory values may take while they are decoded, bytes.

    A quarter: the rest is for the process itself, and for what is fetched, buffered and written.
    More is of no use: a value of that size stops the event loop for a second at a time.
    """
    return min(memory // VALUE_SHARE, MOST_VALUE_BYTES)


def large_batch_bytes(memory: int, most: int) -> int:
    """Return the inflated size above which a batch is decoded behind a mark, `most` at most.

    As inflated, as records, as columns and as a file it may be there several times.
    """
    return min(memory // LARGE_SHARE, most)
