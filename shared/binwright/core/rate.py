"""How fast partitions are written: a sliding window over samples of their logs.

A log's size tells exactly how many bytes were written, as long as nothing is taken away meanwhile.
A stretch between two sized samples is *clean* when one leader answered all along, the log start
did not move and the size did not fall: then its bytes are the difference in size. Of any other
stretch (retention, compaction, deleted records, a leader moved, sizes that nobody tells) only the
records are counted, and priced at recent bytes per record: a moving average over clean stretches,
or what batch headers told. Never at the log's lifetime average, which was seen 41 to 560 % off
after the records changed their size. Sizes may come in turns: what lies between two of them is
priced at first, and corrected when the second comes.

What this cannot see: a compaction, or the removal of a segment whose records were deleted before
(or moved to tiered storage), that frees less than was written in the same interval. That one
interval then counts too little.
"""

from collections import deque
from collections.abc import Mapping
from itertools import islice
from math import isfinite

from binwright.core.messages import PartitionRate, Quality
from binwright.core.model import BytesPerSecond
from binwright.core.ports import LogSample

NEWEST_WEIGHT = 0.5
"""Of the newest clean stretch (or batch) in the price."""
LEAP = 2.0
"""A price so many times higher or lower than the last is a change, and not averaged with it."""
ESTIMATED_SHARE = 0.1
"""A rate of which more than this is priced records is called estimated."""
WARM_SHARE = 0.5
"""A window shorter than this share of the whole is warming up."""
BLIND_SHARE = 0.1
"""A price older than this share of the window should be looked up."""


class _Interval:
    """From one sample to the next."""

    __slots__ = ("begin", "end", "exact", "records", "size")

    def __init__(self, begin: float, end: float, records: int) -> None:
        self.begin, self.end = begin, end  # s
        self.records = records
        self.size: int | None = None  # bytes; None: not known yet, to be priced when asked
        self.exact = False


class _Window:
    """One partition: its last sample, and the intervals before it with their sums.

    The last `_tail` intervals lie behind the last sized sample, `_anchor`. The oldest interval may
    lie half outside; only its share inside counts then.
    """

    __slots__ = (
        "_anchor", "_at", "_begin", "_intervals", "_last", "_open", "_price", "_priced_at",
        "_priced_end", "_records", "_size", "_surmised", "_tail",
    )  # fmt: skip

    def __init__(self, at: float, sample: LogSample) -> None:
        self._begin = self._at = at
        self._last = self._anchor = sample
        self._tail = 0
        self._intervals: deque[_Interval] = deque()
        # Integers: whatever is added and taken away again leaves nothing behind.
        self._size = 0  # bytes of all intervals whose size is known
        self._surmised = 0  # the part of it that is priced records
        self._records = 0
        self._open = 0  # the records of intervals whose size is not known
        self._price: float | None = None
        self._priced_at, self._priced_end = at, sample.end
        if sample.batch_bytes_per_record is not None:
            self._weigh(at, sample, sample.batch_bytes_per_record)

    def continues(self, sample: LogSample) -> bool:
        # The end of a living log falls only when an unclean election cuts it; its start falls only
        # where another replica's retention had not come as far. Else it was deleted and made again.
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
            self._weigh(at, sample, sample.batch_bytes_per_record)

    def _settle(self, at: float, sample: LogSample) -> None:
        anchor = self._anchor
        same = sample.leader == anchor.leader and sample.start == anchor.start
        if same and anchor.size is not None and sample.size is None:
            return  # its turn will come, and tell all at once
        if same and anchor.size is not None and sample.size is not None:
            written, records = sample.size - anchor.size, sample.end - anchor.end
            if written >= 0:
                if records and written:
                    self._weigh(at, sample, written / records)
                self._share_out(written, records)
                self._anchor = sample
                return
        self._surmise()
        self._anchor = sample

    def _share_out(self, written: int, records: int) -> None:
        """Give the tail's intervals what was really written, by their records.

        Some may have slid out of the window by now: theirs is not for the others.
        """
        for interval in islice(reversed(self._intervals), self._tail):
            share = round(written * interval.records / records) if records else written
            self._fix(interval, share, exact=True)
            written, records = written - share, records - interval.records
        self._tail = 0

    def _surmise(self) -> None:
        """Price the tail for good: nobody will tell its size any more."""
        if self._price is not None:
            for interval in islice(reversed(self._intervals), self._tail):
                self._fix(interval, round(interval.records * self._price), exact=False)
        self._tail = 0

    def _fix(self, interval: _Interval, size: int, *, exact: bool) -> None:
        interval.size, interval.exact = size, exact
        self._size += size
        self._open -= interval.records
        if not exact:
            self._surmised += size

    def _weigh(self, at: float, sample: LogSample, price: float) -> None:
        old = self._price
        if old is None or not 1 / LEAP < price / old < LEAP:
            self._price = price
        else:
            self._price = old + NEWEST_WEIGHT * (price - old)
        self._priced_at, self._priced_end = at, sample.end

    def blind_since(self, before: float) -> float | None:
        """Return since when records came whose bytes nobody told, if that is before `before`."""
        due = self._price is None or self._priced_at < before
        return self._priced_at if due and self._last.end > self._priced_end else None

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
                    self._surmised -= gone.size
        self._tail = min(self._tail, len(intervals))
        self._begin = max(before, intervals[0].begin) if intervals else self._at

    def measured(self, partition: int, now: float, window_s: float, *, seen: bool) -> PartitionRate:
        seconds = self._at - self._begin
        size, surmised, records = self._inside()
        if not seen:
            quality: Quality = "stale"
        elif size is None or seconds < WARM_SHARE * window_s:
            quality = "warming"
        else:
            quality = "estimated" if surmised > ESTIMATED_SHARE * size else "measured"
        last = self._last
        return PartitionRate(
            partition=partition,
            rate=None if size is None else BytesPerSecond(round(size / seconds, 1)),
            window_s=round(seconds, 3),
            end=last.end,
            start=last.start,
            bytes_per_record=None if self._price is None else round(self._price, 3),
            records_per_s=round(records / seconds, 3) if self._intervals else None,
            size=last.size if last.size is not None else self._anchor.size,
            quality=quality,
            age_s=round(max(now - self._at, 0.0), 3),
            leader=last.leader,
        )

    def _inside(self) -> tuple[float | None, float, float]:
        """Return bytes (None: not known), the surmised part of them, and records."""
        if not self._intervals:
            return None, 0.0, 0.0
        old = self._intervals[0]
        outside = (self._begin - old.begin) / (old.end - old.begin)
        price = self._price
        if self._open and price is None:
            return None, 0.0, self._records - outside * old.records
        opened = self._open * (price or 0.0)
        size, surmised = self._size + opened, self._surmised + opened
        beyond = outside * (old.records * (price or 0.0) if old.size is None else old.size)
        kept = surmised if old.exact else surmised - beyond
        # A sum of floats may fall just below nothing.
        return max(size - beyond, 0.0), kept, self._records - outside * old.records


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
        kind that needs bytes per record and nothing has told them; `window_s` says over how many
        seconds it was measured. A partition without a sample keeps the rate of what its window
        still holds, which shrinks, until nothing is left; the next sample bridges the gap. One
        that is not in `samples` at all is forgotten. Costs O(1) a sample, amortised.

        Args:
            now: When this is: seconds, monotonic, greater than the last time. A sample that does
                not say when it was taken was taken now; one older than the last counts as none.
            samples: Every partition the topic has; None for one that could not be sampled.

        Raises:
            ValueError: Time did not pass since the last call.
        """
        if now <= self._now:
            raise ValueError(f"time must pass between samples: {now} after {self._now}")
        self._now = now
        for partition in self._windows.keys() - samples.keys():
            del self._windows[partition]
        return tuple([self._take(now, p, sample) for p, sample in sorted(samples.items())])

    def blind(self) -> tuple[int, ...]:
        """Return partitions whose records should be weighed by their batches, longest due first.

        Records come, and for a good part of the window no size has told how many bytes they are.
        """
        before = self._now - BLIND_SHARE * self._window_s
        found = ((w.blind_since(before), p) for p, w in self._windows.items())
        return tuple(p for _, p in sorted((since, p) for since, p in found if since is not None))

    def _take(self, now: float, partition: int, sample: LogSample | None) -> PartitionRate:
        window = self._windows.get(partition)
        seen = sample is not None
        if sample is not None:
            at = now if sample.at is None else min(sample.at, now)
            if window is None or not window.continues(sample):
                window = self._windows[partition] = _Window(at, sample)
            elif seen := window.is_older(at):
                window.add(at, sample)
        elif window is None:
            return _unknown(partition)
        window.forget(now - self._window_s)
        return window.measured(partition, now, self._window_s, seen=seen)


def _unknown(partition: int) -> PartitionRate:
    return PartitionRate(
        partition=partition,
        rate=None,
        window_s=0,
        end=0,
        start=0,
        bytes_per_record=None,
        quality="stale",
    )
