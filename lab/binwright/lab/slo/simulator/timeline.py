"""Simulated time: what is to happen, in order."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count


class Timeline:
    """Runs actions at their times; those of the same time in the order they were added."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, time_s: float, action: Callable[[], None]) -> None:
        """Run an action at a time that is not past."""
        heappush(self._queue, (time_s, next(self._numbers), action))

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Run an action later."""
        self.at(self.now + delay_s, action)

    def run(self, until_s: float) -> None:
        """Run everything up to a time, and what that adds."""
        while self._queue and self._queue[0][0] <= until_s:
            self.now, _, action = heappop(self._queue)
            action()
