"""Decides when buffered rows are staged, by size and age, and when fetching must pause."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """A consumer's settings for batching."""

    bytes: int = 16_000_000  # of a topic's rows: so many are staged at once
    wait_s: float = 1.0  # age of the oldest row at which a topic's rows are staged
    cap_bytes: int = 64_000_000  # of all buffered rows


def due(config: BatchConfig, size: int, oldest_s: float | None, now: float) -> bool:
    """Whether rows of `size` bytes, the oldest fetched at `oldest_s`, are to be staged."""
    return oldest_s is not None and (size >= config.bytes or now - oldest_s >= config.wait_s)


def free_bytes(config: BatchConfig, size: int) -> int:
    """Return how many bytes may still be fetched; 0 means back-pressure."""
    return max(0, config.cap_bytes - size)


def over_share(config: BatchConfig, sizes: Mapping[str, int]) -> frozenset[str]:
    """Return the topics to pause, so that the others have room.

    One topic whose files cannot be staged must not fill the memory that all topics share.

    Args:
        config: Bounds the memory.
        sizes: Topic -> bytes that are not staged yet, for each topic that is read.
    """
    half = config.cap_bytes // 2
    if len(sizes) < 2 or sum(sizes.values()) < half:  # noqa: PLR2004 - a single topic may use all
        return frozenset()
    return frozenset(topic for topic, size in sizes.items() if size >= half // len(sizes))
