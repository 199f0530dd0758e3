"""What a consumer could read: what it has read, by the share of its time that this took.

Stream processors call it the true processing rate (Kalavri et al., "Three steps is all you need",
OSDI 2018). What a consumer does beside reading counts as taken, too: at a small load the estimate
is below what it could read, and it comes nearer the more there is to read.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from binwright.protocol.metadata import MeasuredCapacity
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.protocol.quantiles import weighted_quantile

WINDOW_S = 5.0
MOST_WINDOWS = 120
"""Ten minutes of work: a slow disk, or a noisy neighbor, for less than half of it is outvoted."""
FEWEST_WINDOWS = 6
GROWTH = 4.0
"""A consumer is believed to sustain so many times what it has read, and no more."""
LEAST_USED = 0.005
"""Of a window that says something: below, nearly all of it is what an idle consumer does."""
MOST_HELD = 0.02
"""Share of a window in which reading may wait for files to land: that says nothing of reading."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a consumer's time; what is not said otherwise is a share of it, 0 to 1."""

    seconds: float
    bytes: int  # that it has read, as stored
    loop: float  # CPU time of the event loop
    process: float  # CPU time of all threads, by the CPUs that they may use
    waited: float = 0.0  # in which fetching waited for staging
    held: float = 0.0  # in which fetching waited for files to land
    full_speed: bool = False  # there was more to read all the time

    @property
    def rate(self) -> float:
        """Bytes/s that it has read."""
        return self.bytes / self.seconds

    @property
    def used(self) -> float:
        """The share that what was read has taken, whatever was scarce.

        Who never ran out of records has used all time, whether for CPU, for brokers and network, or
        for others on the same machine.
        """
        return 1.0 if self.full_speed else min(1.0, max(self.loop + self.waited, self.process))


@dataclass(slots=True)
class CapacityEstimate:
    """The estimate of one consumer process, from its last windows with work."""

    _windows: deque[Window] = field(default_factory=lambda: deque(maxlen=MOST_WINDOWS))

    def add(self, window: Window) -> None:
        """Take one more window into account, if it says something."""
        if window.bytes and window.used >= LEAST_USED and window.held <= MOST_HELD:
            self._windows.append(window)

    def capacity(self) -> MeasuredCapacity | None:
        """Return the estimate; None: too little was measured.

        It is the median of the windows, each with the weight of the time that it used, so that
        windows of nearly nothing do not outvote those with work.
        """
        if len(self._windows) < FEWEST_WINDOWS:
            return None
        estimates = [(w.rate / w.used, w.used * w.seconds) for w in self._windows]
        low, middle, high = (weighted_quantile(estimates, share) for share in (0.25, 0.5, 0.75))
        seen = GROWTH * max(w.rate for w in self._windows)
        return MeasuredCapacity(
            bytes_per_s=BytesPerSecond(min(middle, seen)),
            spread=(high - low) / 2 / middle,
            used=max(w.used for w in self._windows),
            seconds=sum(w.seconds for w in self._windows),
        )


Offsets = Mapping[TopicPartition, tuple[int, int]]
"""Partition -> the next offset to read, and the end."""


def at_full_speed(before: Offsets, after: Offsets) -> bool:
    """Return whether there was more to read from the one time to the other, all the time.

    So it was if half of what was read is of partitions of which it has not even read what was there
    at first. A partition that stands, for whatever reason, does not count.
    """
    moved = behind = 0
    for partition, (position, _) in after.items():
        begun, old_end = before.get(partition, (position, position))
        if (step := position - begun) > 0:
            moved += step
            if position < old_end:
                behind += step
    return 2 * behind > moved
