"""Averages over a sliding window: rates of work, shares of waiting time."""

from collections import deque


class Meter:
    """The sum of amounts over the last `window_s` seconds.

    Attributes:
        total: The sum of all amounts.
    """

    def __init__(self, window_s: float = 10.0) -> None:
        self.total = 0.0
        self._window_s = window_s
        self._events: deque[tuple[float, float]] = deque()  # time in s, amount

    def add(self, now: float, amount: float) -> None:
        """Record an amount at `now`, seconds."""
        self._events.append((now, amount))
        self.total += amount

    def per_s(self, now: float) -> float:
        """Return the average amount per second over the window."""
        while self._events and self._events[0][0] < now - self._window_s:
            self._events.popleft()
        return sum(amount for _, amount in self._events) / self._window_s
