"""When a batch goes to Spark: large enough, or old enough (the paper's 5 MB and 1 s)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchRules:
    """A consumer's settings, as batching needs them."""

    bytes: int = 5_000_000
    wait_s: float = 1.0
    cap_bytes: int = 64_000_000


def due(rules: BatchRules, size: int, oldest_s: float | None, now: float) -> bool:
    """Whether the buffer (`size` bytes, its oldest row read at `oldest_s`) is to be written."""
    return oldest_s is not None and (size >= rules.bytes or now - oldest_s >= rules.wait_s)


def room(rules: BatchRules, size: int) -> int:
    """Return how many bytes may still be fetched; 0 means back-pressure."""
    return max(0, rules.cap_bytes - size)
