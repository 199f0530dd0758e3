"""A partition's log computed from its growth rate, without storing records."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import floor, inf
from operator import attrgetter

from binwright.protocol.ports.kafka import Record


def size_of(record: Record) -> int:
    """Return the bytes of a record's key and value."""
    return len(record.key or b"") + len(record.value or b"")


@cache
def _zeros(count: int) -> bytes:
    return bytes(count)  # shared: a long test holds millions of records


@dataclass(slots=True)
class _Run:
    """Consecutive offsets from `base` on: given records, or records that arrive at a rate."""

    base: int = 0
    size_before: int = 0  # bytes of the log up to `base`
    given: Sequence[Record | None] | None = None  # None in it: an offset without a record
    since_s: float = 0.0
    per_s: float = 0.0  # records/s
    carry: float = 0.0  # the fraction of a record that the previous growth left
    record_bytes: int = 0
    count: int = 0

    def size(self, count: int) -> int:
        """Return the bytes of the first `count` records."""
        if self.given is not None:
            return sum(size_of(record) for record in self.given[:count] if record)
        return count * self.record_bytes

    def record(self, offset: int) -> Record | None:
        index = offset - self.base
        if self.given is not None:
            return self.given[index]
        at_s = self.since_s + (index + 1 - self.carry) / self.per_s
        return Record(offset, round(at_s * 1000), None, _zeros(self.record_bytes))


class FakePartitionLog:
    """A partition that grows steadily, and to which records and gaps can be appended.

    Times are the event loop's, seconds; they must not decrease.

    Attributes:
        start: The first retained offset.
        leader: None: there is none.
        open_from: Where a transaction that is open began; None: none is.
    """

    def __init__(self, now: float) -> None:
        self.start = 0
        self.leader: int | None = 1
        self.open_from: int | None = None
        self._runs = [_Run(since_s=now)]

    def grow(self, now: float, per_s: float, record_bytes: int) -> None:
        """Grow by `per_s` records per second from now on, of `record_bytes` bytes each."""
        carry = self._carry(now)
        self._begin(_Run(since_s=now, per_s=per_s, carry=carry, record_bytes=record_bytes))

    @property
    def record_bytes(self) -> int:
        """Return the size of the records that it grows by, bytes."""
        return self._runs[-1].record_bytes

    def add(self, now: float, records: Sequence[Record | None]) -> None:
        """Append these (None: an offset without a record), then grow as before."""
        carry, last = self._carry(now), self._runs[-1]
        self._begin(_Run(given=records, count=len(records)))
        self._begin(replace(last, since_s=now, carry=carry, count=0))

    def cut(self, now: float, end: int) -> None:
        """Delete the records from `end` on; the growth continues there."""
        last = replace(self._settled(now), since_s=now, carry=0.0, count=0)
        del self._runs[self._index(end) + 1 :]
        run = self._runs[-1]
        run.count = min(run.count, end - run.base)
        if run.given is None:
            kept = [run.record(run.base + index) for index in range(run.count)]
            self._runs[-1] = replace(run, given=kept)
        self._begin(last)

    def end(self, now: float) -> int:
        """Return the offset of the next record."""
        last = self._settled(now)
        return last.base + last.count

    def readable_end(self, now: float) -> int:
        """Return up to where committed records can be read."""
        return self.end(now) if self.open_from is None else min(self.open_from, self.end(now))

    def size(self, now: float) -> int:
        """Return the bytes that are retained."""
        last = self._settled(now)
        first = self._runs[self._index(self.start)]
        gone = first.size_before + first.size(self.start - first.base)
        return last.size_before + last.size(last.count) - gone

    def grows_in(self, now: float) -> float:
        """Return the seconds until growth adds the next record; infinite if it never does."""
        last = self._settled(now)
        if last.per_s <= 0:
            return inf
        return max((last.count + 1 - last.carry) / last.per_s - (now - last.since_s), 0.0)

    def read(self, now: float, offset: int) -> Iterator[tuple[int, Record | None]]:
        """Yield each offset from `offset` on with its record; None where it has none."""
        self._settled(now)
        for run in self._runs[self._index(offset) :]:
            for at in range(max(offset, run.base), run.base + run.count):
                yield at, run.record(at)

    def _index(self, offset: int) -> int:
        return max(bisect_right(self._runs, offset, key=attrgetter("base")) - 1, 0)

    def _settled(self, now: float) -> _Run:
        last = self._runs[-1]
        # A sum of floats may be slightly below the whole number that it stands for.
        last.count = floor(last.carry + last.per_s * (now - last.since_s) + 1e-6)
        return last

    def _carry(self, now: float) -> float:
        last = self._settled(now)
        return max(last.carry + last.per_s * (now - last.since_s) - last.count, 0.0)

    def _begin(self, run: _Run) -> None:
        last = self._runs[-1]
        if not last.count:
            del self._runs[-1]
        run.base = last.base + last.count
        run.size_before = last.size_before + last.size(last.count)
        self._runs.append(run)
