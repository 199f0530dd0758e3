"""What was fetched and is not staged yet, and which offset ranges it makes up.

A range begins where its reader was told to begin, or where its last one ended, and ends behind the
last record that is in it: every record that a reader sees in between is in it, once (†). Offsets
without a record (retention, compaction, markers of transactions) lie inside.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from binwright.core.consumer.batch import BatchRules, due, room
from binwright.core.messages import OffsetRange
from binwright.core.model import TopicPartition
from binwright.core.ports import Record

RECORD_OVERHEAD = 64  # bytes that a row takes besides its key and value, about


def size_of(records: Sequence[Record]) -> int:
    """Return about how many bytes these rows take."""
    return sum(len(r.key or b"") + len(r.value or b"") + RECORD_OVERHEAD for r in records)


@dataclass(frozen=True, slots=True)
class Stretch:
    """One partition's rows for a file."""

    range: OffsetRange
    records: Sequence[Record]
    cut: bool = False  # the range begins at what was the end of a log that was cut


@dataclass(slots=True)
class _Rows:
    begin: int  # of the range that is being filled
    records: list[Record]
    bytes: int = 0
    cut: bool = False

    @property
    def next(self) -> int:
        """Return the offset behind the last row."""
        return self.records[-1].offset + 1 if self.records else self.begin


class Buffer:
    """Rows in offset order per partition, and how old the oldest of each topic is."""

    def __init__(self, rules: BatchRules) -> None:
        self.rules = rules
        self._rows: dict[TopicPartition, _Rows] = {}
        self._oldest: dict[str, float] = {}  # topic -> when its oldest row was fetched
        self._size = 0
        self._sizes: dict[str, int] = {}

    @property
    def room(self) -> int:
        """Bytes that may still be fetched; 0 means back-pressure."""
        return room(self.rules, self._size)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Return topic -> bytes of its rows."""
        return {topic: size for topic, size in self._sizes.items() if size}

    def next_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset to fetch next; None for a partition that is not read."""
        rows = self._rows.get(partition)
        return None if rows is None else rows.next

    def begin(self, partition: TopicPartition, offset: int, *, cut: bool = False) -> None:
        """Begin a range at `offset`; rows of the partition that are here are dropped."""
        self.drop(partition)
        self._rows[partition] = _Rows(offset, [], cut=cut)

    def add(self, partition: TopicPartition, records: Sequence[Record], now: float) -> None:
        """Take fetched rows; those of a partition that is not read, or before its place, are not.

        A fetch that was under way when the place changed may bring them.
        """
        rows = self._rows.get(partition)
        if rows is None:
            return
        records = records[bisect_left(records, rows.next, key=attrgetter("offset")) :]
        if records:
            rows.records.extend(records)
            self._grow(partition.topic, rows, size_of(records))
            self._oldest.setdefault(partition.topic, now)

    def _grow(self, topic: str, rows: _Rows, size: int) -> None:
        rows.bytes += size
        self._size += size
        self._sizes[topic] = self._sizes.get(topic, 0) + size

    def drop(self, partition: TopicPartition) -> None:
        """Forget a partition: somebody else reads it, or it is read from elsewhere."""
        rows = self._rows.pop(partition, None)
        if rows is not None:
            self._grow(partition.topic, rows, -rows.bytes)
            if not self._sizes[partition.topic]:
                self._oldest.pop(partition.topic, None)

    def due(self, now: float, busy: Collection[str] = ()) -> str | None:
        """Return the topic whose rows are to be staged now, the longest waiting first.

        Topics of `busy` are left out: a file of theirs is being written.
        """
        ready = [
            (oldest, topic)
            for topic, oldest in self._oldest.items()
            if topic not in busy and due(self.rules, self._sizes[topic], oldest, now)
        ]
        return min(ready)[1] if ready else None

    def due_in(self, now: float, busy: Collection[str] = ()) -> float | None:
        """Return the seconds until a file is due by the age of its rows; None: nothing waits."""
        waiting = [oldest for topic, oldest in self._oldest.items() if topic not in busy]
        return max(0.0, min(waiting) + self.rules.wait_s - now) if waiting else None

    def oldest_at(self, topic: str) -> float | None:
        """Return when the oldest row of the topic was fetched."""
        return self._oldest.get(topic)

    def take(self, topic: str) -> Mapping[TopicPartition, Stretch]:
        """Remove and return a topic's rows; the next ranges begin where these end."""
        self._oldest.pop(topic, None)
        taken: dict[TopicPartition, Stretch] = {}
        for partition in sorted(p for p in self._rows if p.topic == topic):
            rows = self._rows[partition]
            if rows.records:
                stretch = Stretch(OffsetRange(rows.begin, rows.next), rows.records, rows.cut)
                taken[partition] = stretch
                self._grow(topic, rows, -rows.bytes)
                self._rows[partition] = _Rows(rows.next, [])
        return taken
