"""Bounds that hold at certain times of the week."""

from dataclasses import dataclass
from datetime import datetime, tzinfo

from binwright.protocol.errors import SettingsError

DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class Bounds:
    """The fewest and the most replicas.

    Raises:
        SettingsError: They are negative, or the wrong way round.
    """

    least: int
    most: int

    def __post_init__(self) -> None:
        """Check the order."""
        if not 0 <= self.least <= self.most:
            raise SettingsError(f"0 <= min <= max must hold, got {self.least} and {self.most}")

    def clamp(self, replicas: int) -> int:
        """Return the number within the bounds that is next to this one."""
        return max(self.least, min(self.most, replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Bounds for a part of some days; a part that ends before it begins ends on the next day."""

    days: frozenset[int]  # on which it begins: 0 is Monday
    begin_min: int  # minutes since midnight, of local time
    end_min: int  # exclusive
    zone: tzinfo  # in which days and times are meant
    least: int | None = None  # None: the group's own
    most: int | None = None

    def holds(self, wall_s: float) -> bool:
        """Return whether it holds at this time, seconds since 1970."""
        local = datetime.fromtimestamp(wall_s, self.zone)
        day, minute = local.weekday(), local.hour * 60 + local.minute
        if self.begin_min < self.end_min:
            return day in self.days and self.begin_min <= minute < self.end_min
        began_today = day in self.days and minute >= self.begin_min
        return began_today or ((day - 1) % 7 in self.days and minute < self.end_min)

    def bounds(self, own: Bounds) -> Bounds:
        """Return the bounds while it holds; one alone moves the other along if it must."""
        least = own.least if self.least is None else self.least
        most = own.most if self.most is None else self.most
        if self.most is None:
            return Bounds(least, max(least, most))
        return Bounds(min(least, most) if self.least is None else least, most)


def bounds_at(own: Bounds, schedules: tuple[Schedule, ...], wall_s: float) -> Bounds:
    """Return the bounds of the first schedule that holds, or the group's own.

    Args:
        own: Of the group.
        schedules: In the order in which they count.
        wall_s: Seconds since 1970.
    """
    found = next((each for each in schedules if each.holds(wall_s)), None)
    return own if found is None else found.bounds(own)
