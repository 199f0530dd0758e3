"""Virtual time: what happens when, in one total order."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

Happening = Callable[[], None]

MESSAGES, TICKS = 0, 1
"""What comes first of happenings at one time: messages arrive before the controller looks."""


class Clock:
    """Happenings by time; of equal times messages first, then in the order of being planned.

    Attributes:
        now: Seconds.
    """

    def __init__(self, begin: float) -> None:
        self.now = begin
        self._numbers = count()
        self._planned: list[tuple[float, int, int, Happening]] = []

    def at(self, time: float, happening: Happening, order: int = MESSAGES) -> None:
        """Plan a happening; in the past means now."""
        heappush(self._planned, (max(time, self.now), order, next(self._numbers), happening))

    def after(self, delay: float, happening: Happening) -> None:
        """Plan a happening later, seconds from now."""
        self.at(self.now + delay, happening)

    def run_until(self, time: float) -> None:
        """Let everything happen that is planned up to `time`, that included."""
        while self._planned and self._planned[0][0] <= time:
            self.now, _, _, happening = heappop(self._planned)
            happening()
        self.now = max(self.now, time)
