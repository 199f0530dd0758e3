"""Windows of each day in UTC, such as `22:00-06:00`."""

import re
from typing import NamedTuple, Self

_WINDOW = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")
DAY_MIN, MINUTE_MS = 24 * 60, 60_000


class DailyWindow(NamedTuple):
    """From `start` up to, not including, `end`, in minutes after midnight UTC; it may span it."""

    start: int
    end: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `22:00-06:00`; raise `ValueError` for anything else, and for an empty window."""
        if (match := _WINDOW.fullmatch(text)) is None:
            raise ValueError(f"not a window of a day, as 22:00-06:00 (UTC): {text!r}")
        hour, minute, end_hour, end_minute = map(int, match.groups())
        start, end = 60 * hour + minute, 60 * end_hour + end_minute
        if start == end:
            raise ValueError(f"a window that begins when it ends: {text!r}")
        return cls(start, end)

    def __str__(self) -> str:
        """Write it as it is read."""
        return f"{_clock(self.start)}-{_clock(self.end)}"

    def includes(self, at_ms: int) -> bool:
        """Whether a moment, ms since 1970, is in the window."""
        minute = at_ms // MINUTE_MS % DAY_MIN
        return (minute - self.start) % DAY_MIN < (self.end - self.start) % DAY_MIN


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
