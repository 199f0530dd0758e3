"""The wall clock, as timestamps of messages have it."""

import time


def wall_ms() -> int:
    """Return the wall clock, ms since the epoch."""
    return time.time_ns() // 1_000_000
