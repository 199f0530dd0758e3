"""How much was done, and how long was waited, of late."""

from collections import deque


class Meter:
    """A sum over the last seconds."""

    def __init__(self, window_s: float = 10.0) -> None:
        self._window_s = window_s
        self._events: deque[tuple[float, float]] = deque()  # when, how much

    def add(self, now: float, amount: float) -> None:
        """Take that so much was done just now."""
        self._events.append((now, amount))

    def per_s(self, now: float) -> float:
        """Return how much was done per second."""
        while self._events and self._events[0][0] < now - self._window_s:
            self._events.popleft()
        return sum(amount for _, amount in self._events) / self._window_s
