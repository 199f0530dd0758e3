"""Estimates how fast partitions are written: a sliding window over samples of their logs.

The size of a log gives the exact number of bytes written, as long as nothing is deleted. The time
between two samples with sizes is *clean* if both came from the same leader, the log start did not
move and the size did not fall: its bytes are the difference of the sizes. Otherwise (retention,
compaction, deleted records, a new leader, unknown sizes) only the records are counted, and
multiplied by recent bytes per record: a moving average over clean intervals, or batch headers. The
log's lifetime average is never used: it was measured to be 41 to 560 % off after the records
changed their size. Partitions may be sized in turns: the intervals between two sizes are estimated
at first, and corrected when the second size arrives.

Undetected: a compaction, or the removal of a segment whose records were deleted (or moved to
tiered storage) before, that frees less than was written in the same interval. The rate of that one
interval is then too low.
"""

from collections import deque
from collections.abc import Mapping
from itertools import islice
from math import isfinite

from binwright.protocol.metrics import PartitionRate, Quality
from binwright.protocol.model import BytesPerSecond
from binwright.protocol.ports.kafka import LogSample

NEWEST_WEIGHT = 0.5
"""The weight of the newest clean interval (or batch) in the average of bytes per record."""
LEAP = 2.0
"""Bytes per record that differ by this factor from the average replace it."""
ESTIMATED_SHARE = 0.1
"""A rate with a larger share of estimated bytes has the quality estimated."""
WARM_SHARE = 0.5
"""A rate over less than this share of the window has the quality warming."""
UNSIZED_SHARE = 0.1
"""Bytes per record older than this share of the window should be measured by a batch."""


class _Interval:
    """The time from one sample to the next."""

    __slots__ = ("begin", "end", "exact", "records", "size")

    def __init__(self, begin: float, end: float, records: int) -> None:
        self.begin, self.end = begin, end  # s
        self.records = records
        self.size: int | None = None  # bytes; None: unknown as yet, estimated on each read
        self.exact = False


class _Window:
    """One partition: its last sample, and the intervals before it with their sums.

    The last `_tail` intervals follow the last sample with a size, `_anchor`. The oldest interval
    may begin before the window; then only its share inside counts.
    """

    __slots__ = (
        "_anchor", "_at", "_begin", "_estimated", "_intervals", "_last", "_open", "_record_bytes",
        "_records", "_size", "_sized_at", "_sized_end", "_tail",
    )  # fmt: skip

    def __init__(self, at: float, sample: LogSample) -> None:
        self._begin = self._at = at
        self._last = self._anchor = sample
        self._tail = 0
        self._intervals: deque[_Interval] = deque()
        # Integers, so that additions and subtractions leave no rounding errors.
        self._size = 0  # bytes of all intervals whose size is known
        self._estimated = 0  # the part of it that is records times bytes per record
        self._records = 0
        self._open = 0  # the records of intervals whose size is not known
        self._record_bytes: float | None = None
        self._sized_at, self._sized_end = at, sample.end
        if sample.batch_bytes_per_record is not None:
            self._update_record_bytes(at, sample, sample.batch_bytes_per_record)

    def continues(self, sample: LogSample) -> bool:
        # The end of a log falls only when an unclean election truncates it; its start falls only on
        # a new leader whose retention was behind. Otherwise the topic was deleted and recreated.
        old = self._last
        return sample.end >= old.end and (sample.start >= old.start or sample.leader != old.leader)

    def is_older(self, at: float) -> bool:
        return self._at < at

    def add(self, at: float, sample: LogSample) -> None:
        records = sample.end - self._last.end
        self._intervals.append(_Interval(self._at, at, records))
        self._records += records
        self._open += records
        self._tail += 1
        self._at, self._last = at, sample
        self._settle(at, sample)
        if sample.batch_bytes_per_record is not None:
            self._update_record_bytes(at, sample, sample.batch_bytes_per_record)

    def _settle(self, at: float, sample: LogSample) -> None:
        anchor = self._anchor
        same = sample.leader == anchor.leader and sample.start == anchor.start
        if same and anchor.size is not None and sample.size is None:
            return  # the next size covers this interval, too
        if same and anchor.size is not None and sample.size is not None:
            written, records = sample.size - anchor.size, sample.end - anchor.end
            if written >= 0:
                if records and written:
                    self._update_record_bytes(at, sample, written / records)
                self._distribute(written, records)
                self._anchor = sample
                return
        self._estimate_tail()
        self._anchor = sample

    def _distribute(self, written: int, records: int) -> None:
        """Distribute the bytes written over the tail's intervals, by their records.

        Intervals that have left the window take their share with them.
        """
        for interval in islice(reversed(self._intervals), self._tail):
            share = round(written * interval.records / records) if records else written
            self._fix(interval, share, exact=True)
            written, records = written - share, records - interval.records
        self._tail = 0

    def _estimate_tail(self) -> None:
        """Estimate the tail's bytes for good: no size will cover it any more."""
        if self._record_bytes is not None:
            for interval in islice(reversed(self._intervals), self._tail):
                self._fix(interval, round(interval.records * self._record_bytes), exact=False)
        self._tail = 0

    def _fix(self, interval: _Interval, size: int, *, exact: bool) -> None:
        interval.size, interval.exact = size, exact
        self._size += size
        self._open -= interval.records
        if not exact:
            self._estimated += size

    def _update_record_bytes(self, at: float, sample: LogSample, record_bytes: float) -> None:
        old = self._record_bytes
        if old is None or not 1 / LEAP < record_bytes / old < LEAP:
            self._record_bytes = record_bytes
        else:
            self._record_bytes = old + NEWEST_WEIGHT * (record_bytes - old)
        self._sized_at, self._sized_end = at, sample.end

    def unsized_since(self, before: float) -> float | None:
        """Return since when records have arrived without a size, if earlier than `before`."""
        due = self._record_bytes is None or self._sized_at < before
        return self._sized_at if due and self._last.end > self._sized_end else None

    def forget(self, before: float) -> None:
        intervals = self._intervals
        while intervals and intervals[0].end <= before:
            gone = intervals.popleft()
            self._records -= gone.records
            if gone.size is None:
                self._open -= gone.records
            else:
                self._size -= gone.size
                if not gone.exact:
                    self._estimated -= gone.size
        self._tail = min(self._tail, len(intervals))
        self._begin = max(before, intervals[0].begin) if intervals else self._at

    def measured(self, partition: int, now: float, window_s: float, *, seen: bool) -> PartitionRate:
        seconds = self._at - self._begin
        size, estimated, records = self._inside()
        if not seen:
            quality: Quality = "stale"
        elif size is None or seconds < WARM_SHARE * window_s:
            quality = "warming"
        else:
            quality = "estimated" if estimated > ESTIMATED_SHARE * size else "measured"
        last = self._last
        return PartitionRate(
            partition=partition,
            rate=None if size is None else BytesPerSecond(round(size / seconds, 1)),
            window_s=round(seconds, 3),
            end=last.end,
            start=last.start,
            bytes_per_record=None if self._record_bytes is None else round(self._record_bytes, 3),
            records_per_s=round(records / seconds, 3) if self._intervals else None,
            size=last.size if last.size is not None else self._anchor.size,
            quality=quality,
            age_s=round(max(now - self._at, 0.0), 3),
            leader=last.leader,
        )

    def _inside(self) -> tuple[float | None, float, float]:
        """Return bytes (None: unknown), the estimated part of them, and records in the window."""
        if not self._intervals:
            return None, 0.0, 0.0
        old = self._intervals[0]
        outside = (self._begin - old.begin) / (old.end - old.begin)
        record_bytes = self._record_bytes
        if self._open and record_bytes is None:
            return None, 0.0, self._records - outside * old.records
        opened = self._open * (record_bytes or 0.0)
        size, estimated = self._size + opened, self._estimated + opened
        beyond = outside * (old.records * (record_bytes or 0.0) if old.size is None else old.size)
        estimated_inside = estimated if old.exact else estimated - beyond
        # A sum of floats may be slightly below 0.
        return max(size - beyond, 0.0), estimated_inside, self._records - outside * old.records


class TopicRates:
    """The write rates of one topic's partitions, from one sample of each in each pass."""

    def __init__(self, window_s: float = 30.0) -> None:
        """Measure over the last `window_s` seconds, finite and > 0."""
        if not (isfinite(window_s) and window_s > 0):
            raise ValueError(f"window_s must be finite and > 0, got {window_s}")
        self._window_s = window_s
        self._windows: dict[int, _Window] = {}
        self._now = -float("inf")

    def feed(
        self, now: float, samples: Mapping[int, LogSample | None]
    ) -> tuple[PartitionRate, ...]:
        """Add the samples of one pass; return the topic's rates, by partition.

        A rate is None until a partition has two samples, and while all its intervals need bytes per
        record that are still unknown; its `window_s` is the time that it covers, s. A partition
        without a sample keeps the rate of the rest of its window, which shrinks, until nothing is
        left; the next sample covers the time since the last one. A partition that is not in
        `samples` is forgotten. O(1) per sample, amortised.

        Args:
            now: Seconds, monotonic, greater than at the last call. A sample without a time was
                taken now; one older than the partition's last counts as none.
            samples: Every partition of the topic; None for one that could not be sampled.

        Raises:
            ValueError: `now` is not greater than at the last call.
        """
        if now <= self._now:
            raise ValueError(f"time must pass between samples: {now} after {self._now}")
        self._now = now
        for partition in self._windows.keys() - samples.keys():
            del self._windows[partition]
        return tuple([self._feed_one(now, p, sample) for p, sample in sorted(samples.items())])

    def lacking_sizes(self) -> tuple[int, ...]:
        """Return the partitions of which a batch should be measured, longest due first.

        They receive records, and had no size for `UNSIZED_SHARE` of the window.
        """
        before = self._now - UNSIZED_SHARE * self._window_s
        unsized = ((w.unsized_since(before), p) for p, w in self._windows.items())
        return tuple(p for _, p in sorted((since, p) for since, p in unsized if since is not None))

    def _feed_one(self, now: float, partition: int, sample: LogSample | None) -> PartitionRate:
        window = self._windows.get(partition)
        seen = sample is not None
        if sample is not None:
            at = now if sample.at is None else min(sample.at, now)
            if window is None or not window.continues(sample):
                window = self._windows[partition] = _Window(at, sample)
            elif seen := window.is_older(at):
                window.add(at, sample)
        elif window is None:
            return _unknown_rate(partition)
        window.forget(now - self._window_s)
        return window.measured(partition, now, self._window_s, seen=seen)


def _unknown_rate(partition: int) -> PartitionRate:
    return PartitionRate(
        partition=partition,
        rate=None,
        window_s=0,
        end=0,
        start=0,
        bytes_per_record=None,
        quality="stale",
    )
