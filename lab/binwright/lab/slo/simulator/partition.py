"""A partition: records that wait, and how far the group has committed."""

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from binwright.lab.slo.simulator.consumer import Consumer


class Partition:
    """A queue of records by the time they arrived."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.owner: Consumer | None = None
        self._waiting: deque[tuple[float, int]] = deque()
        self._end = 0
        self._committed = 0

    @property
    def lag(self) -> int:
        """Return how many records have arrived and are not committed."""
        return self._end - self._committed

    def append(self, arrived_s: float, records: int) -> None:
        """Add records that arrive together."""
        if records:
            self._waiting.append((arrived_s, records))
            self._end += records

    def take(self, most: int) -> list[tuple[float, int]]:
        """Remove and return the oldest records, up to `most`: when they arrived, how many."""
        taken = []
        while self._waiting and most > 0:
            arrived_s, records = self._waiting[0]
            if records > most:
                self._waiting[0] = (arrived_s, records - most)
                records = most
            else:
                self._waiting.popleft()
            taken.append((arrived_s, records))
            most -= records
        return taken

    def commit(self, records: int) -> None:
        """Commit so many records more."""
        self._committed += records
