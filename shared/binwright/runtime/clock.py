"""The two clocks: the wall clock stamps messages, the event loop's measures time."""

import asyncio
import time


def wall_ms() -> int:
    """Return the wall clock, ms since the epoch."""
    return time.time_ns() // 1_000_000


def loop_s() -> float:
    """Return the running event loop's clock, s, monotonic."""
    return asyncio.get_running_loop().time()
