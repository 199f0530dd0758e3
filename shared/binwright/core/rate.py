"""How fast partitions are written: a sliding window over samples of their logs.

A log's size tells exactly how many bytes were written, as long as nothing is taken away meanwhile.
An interval between two samples is *clean* when the same leader answered at both ends, the log
start did not move and the size did not fall: then its bytes are the difference in size. Of any
other interval (retention, compaction, deleted records, a leader moved) only the records are
counted, and priced at the bytes per record of the clean intervals around it. Never at the log's
lifetime average, which was seen 41 to 560 % off after the records changed their size.

What this cannot see: a compaction, or the removal of a segment whose records were deleted before,
that frees less than was written in the same interval. That one interval then counts too little.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from binwright.core.messages import PartitionRate
from binwright.core.model import BytesPerSecond
from binwright.core.ports import LogSample


@dataclass(frozen=True, slots=True)
class _Interval:
    begin: float  # s
    end: float  # s
    size: int  # bytes written, where clean
    sized: int  # records written, where clean
    unsized: int  # records written, where not


def _between(begin: float, old: LogSample, end: float, new: LogSample) -> _Interval:
    records = new.end - old.end
    if (
        old.size is not None
        and new.size is not None
        and new.size >= old.size
        and new.start == old.start
        and new.leader == old.leader
    ):
        return _Interval(begin, end, new.size - old.size, records, 0)
    return _Interval(begin, end, 0, 0, records)


class _Window:
    """One partition: its last sample, and the intervals before it with their sums.

    The oldest interval may lie half outside; only its share inside counts then.
    """

    def __init__(self, at: float, sample: LogSample) -> None:
        self._begin = self._at = at
        self._last = sample
        self._intervals: deque[_Interval] = deque()
        # Integers: whatever is added and taken away again leaves nothing behind.
        self._size = self._sized = self._unsized = 0
        self._bytes_per_record: float | None = None

    def continues(self, sample: LogSample) -> bool:
        # The end of a living log falls only when an unclean election cuts it; its start falls only
        # where another replica's retention had not come as far. Else it was deleted and made again.
        old = self._last
        return sample.end >= old.end and (sample.start >= old.start or sample.leader != old.leader)

    def add(self, now: float, sample: LogSample) -> None:
        interval = _between(self._at, self._last, now, sample)
        self._intervals.append(interval)
        self._size += interval.size
        self._sized += interval.sized
        self._unsized += interval.unsized
        self._at, self._last = now, sample

    def forget(self, before: float) -> None:
        while self._intervals and self._intervals[0].end <= before:
            gone = self._intervals.popleft()
            self._size -= gone.size
            self._sized -= gone.sized
            self._unsized -= gone.unsized
        self._begin = max(before, self._intervals[0].begin) if self._intervals else self._at
        if self._size and self._sized:
            self._bytes_per_record = self._size / self._sized

    def measured(self, partition: int) -> PartitionRate:
        seconds = self._at - self._begin
        written = self._written()
        return PartitionRate(
            partition=partition,
            rate=None if written is None or not seconds else BytesPerSecond(written / seconds),
            window_s=seconds,
            end=self._last.end,
            start=self._last.start,
            bytes_per_record=self._bytes_per_record,
        )

    def _written(self) -> float | None:
        if not self._intervals or (self._unsized and self._bytes_per_record is None):
            return None
        price = self._bytes_per_record or 0.0
        old = self._intervals[0]
        inside = (old.end - self._begin) / (old.end - old.begin)
        size = self._size - old.size + inside * old.size
        return size + (self._unsized - old.unsized + inside * old.unsized) * price


class TopicRates:
    """The write rates of one topic's partitions, from one sample of each a pass."""

    def __init__(self, window_s: float = 30.0) -> None:
        """Look back `window_s` seconds, finite and > 0."""
        if not (isfinite(window_s) and window_s > 0):
            raise ValueError(f"window_s must be finite and > 0, got {window_s}")
        self._window_s = window_s
        self._windows: dict[int, _Window] = {}
        self._now = -float("inf")

    def feed(
        self, now: float, samples: Mapping[int, LogSample | None]
    ) -> tuple[PartitionRate, ...]:
        """Take in one pass and return what is known now, by partition.

        A rate is None until a partition was seen twice, and while its intervals were all of the
        kind that needs bytes per record and none has told them; `window_s` says over how many
        seconds it was measured. A partition without a sample keeps the rate of what its window
        still holds, which shrinks, until nothing is left; the next sample bridges the gap. One
        that is not in `samples` at all is forgotten. Costs O(1) a sample, amortised.

        Args:
            now: When the samples were taken: seconds, monotonic, greater than the last time.
            samples: Every partition the topic has; None for one that could not be sampled.

        Raises:
            ValueError: Time did not pass since the last call.
        """
        if now <= self._now:
            raise ValueError(f"time must pass between samples: {now} after {self._now}")
        self._now = now
        self._windows = {p: w for p, w in self._windows.items() if p in samples}
        return tuple(self._take(now, p, sample) for p, sample in sorted(samples.items()))

    def _take(self, now: float, partition: int, sample: LogSample | None) -> PartitionRate:
        window = self._windows.get(partition)
        if sample is None:
            if window is None:
                return PartitionRate(
                    partition=partition,
                    rate=None,
                    window_s=0,
                    end=0,
                    start=0,
                    bytes_per_record=None,
                )
        elif window is not None and window.continues(sample):
            window.add(now, sample)
        else:
            window = self._windows[partition] = _Window(now, sample)
        window.forget(now - self._window_s)
        return window.measured(partition)
