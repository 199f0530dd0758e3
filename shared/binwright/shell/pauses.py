"""Waiting: for what comes, and longer and longer for what does not."""

import asyncio

FIRST_S, LONGEST_S = 0.5, 30.0


class Pause:
    """The seconds from one try to the next: twice as long each time."""

    def __init__(self, longest_s: float = LONGEST_S, *, first_s: float = FIRST_S) -> None:
        self._longest_s = longest_s
        self._next_s = first_s

    def next(self) -> float:
        """Return how long to wait now."""
        now_s, self._next_s = self._next_s, min(2 * self._next_s, self._longest_s)
        return now_s


async def until_set(event: asyncio.Event, timeout_s: float) -> None:
    """Wait for the event, and no longer than `timeout_s`."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return
