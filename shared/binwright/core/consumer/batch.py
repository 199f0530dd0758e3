"""When rows are staged: large enough, or old enough; and when fetching must pause."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchRules:
    """A consumer's settings, as batching needs them."""

    bytes: int = 16_000_000
    wait_s: float = 1.0
    cap_bytes: int = 64_000_000


def due(rules: BatchRules, size: int, oldest_s: float | None, now: float) -> bool:
    """Whether the buffer (`size` bytes, its oldest row read at `oldest_s`) is to be written."""
    return oldest_s is not None and (size >= rules.bytes or now - oldest_s >= rules.wait_s)


def room(rules: BatchRules, size: int) -> int:
    """Return how many bytes may still be fetched; 0 means back-pressure."""
    return max(0, rules.cap_bytes - size)


def over_share(rules: BatchRules, sizes: Mapping[str, int]) -> frozenset[str]:
    """Return the topics to fetch no more of for now, so that the others have room.

    One topic whose files cannot be staged must not fill the memory that all need.

    Args:
        rules: How much memory there is.
        sizes: Of each topic that is read: bytes that are not staged yet.
    """
    half = rules.cap_bytes // 2
    if len(sizes) < 2 or sum(sizes.values()) < half:  # noqa: PLR2004 - one alone may use all
        return frozenset()
    return frozenset(topic for topic, size in sizes.items() if size >= half // len(sizes))
