"""Waits: exponential back-off, and an event with a timeout."""

import asyncio

FIRST_S, LONGEST_S = 0.5, 30.0


class Backoff:
    """The seconds between attempts: each wait is twice as long as the one before."""

    def __init__(self, longest_s: float = LONGEST_S, *, first_s: float = FIRST_S) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._next_s = first_s

    def next(self) -> float:
        """Return how long to wait before the next attempt, s."""
        now_s, self._next_s = self._next_s, min(2 * self._next_s, self._longest_s)
        return now_s

    def reset(self) -> None:
        """Begin with the shortest wait again: an attempt succeeded."""
        self._next_s = self._first_s


async def until_set(event: asyncio.Event, timeout_s: float) -> None:
    """Wait until the event is set, or `timeout_s` has passed."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return
