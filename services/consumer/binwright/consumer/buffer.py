"""What was fetched and is not handed to Spark yet, by topic: one topic is one table."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from binwright.core.batch import BatchRules, due, room
from binwright.core.model import TopicPartition
from binwright.core.ports import Record

RECORD_OVERHEAD = 64  # bytes a row takes besides its key and value, about
GATHER_S = 0.2  # how long hurried rows are waited for: a topic's partitions come one after another


def size_of(records: Sequence[Record]) -> int:
    """Return about how many bytes these rows take."""
    return sum(len(r.key or b"") + len(r.value or b"") + RECORD_OVERHEAD for r in records)


class Buffer:
    """Rows in offset order per partition, and how old the oldest of each topic is."""

    def __init__(self, rules: BatchRules) -> None:
        self.rules = rules
        self._rows: dict[TopicPartition, list[Record]] = {}
        self._sizes: dict[TopicPartition, int] = {}
        self._oldest: dict[str, float] = {}
        self._hurried: set[TopicPartition] = set()

    @property
    def room(self) -> int:
        """Bytes that may still be fetched; 0 means back-pressure."""
        return room(self.rules, sum(self._sizes.values()))

    def add(self, partition: TopicPartition, records: Sequence[Record], now: float) -> None:
        """Keep fetched rows; raise `ValueError` if they do not follow what is kept."""
        if records:
            rows = self._rows.setdefault(partition, [])
            if rows and rows[-1].offset >= records[0].offset:
                raise ValueError(f"{partition}: {records[0].offset} came after {rows[-1].offset}")
            rows.extend(records)
            self._sizes[partition] = self._sizes.get(partition, 0) + size_of(records)
            oldest = self._oldest.setdefault(partition.topic, now)
            if partition in self._hurried:
                soon = now + GATHER_S - self.rules.wait_s
                self._oldest[partition.topic] = min(oldest, soon)

    def hurry(self, partition: TopicPartition) -> None:
        """Let its first rows go soon, and before others: nobody has read it for some time."""
        self._hurried.add(partition)

    def drop(self, partition: TopicPartition) -> None:
        """Forget a partition's rows: somebody else will read them."""
        self._rows.pop(partition, None)
        self._sizes.pop(partition, None)
        self._hurried.discard(partition)
        if not any(p.topic == partition.topic for p in self._rows):
            self._oldest.pop(partition.topic, None)

    def due(self, now: float) -> str | None:
        """Return the topic whose batch is to be written now: hurried, then longest waiting."""
        hurried = {p.topic for p in self._hurried & self._rows.keys()}
        ready = [
            (topic not in hurried, oldest, topic)
            for topic, oldest in self._oldest.items()
            if due(self.rules, self._size(topic), oldest, now)
        ]
        return min(ready)[2] if ready else None

    def due_in(self, now: float) -> float | None:
        """Return the seconds until a batch is due by its age; None when there is nothing."""
        if not self._oldest:
            return None
        return max(0.0, min(self._oldest.values()) + self.rules.wait_s - now)

    def take(
        self, topic: str, landed: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Sequence[Record]]:
        """Remove and return a topic's rows of these partitions, from `landed` on."""
        self._oldest.pop(topic, None)
        rows: dict[TopicPartition, Sequence[Record]] = {}
        for partition in sorted(p for p in self._rows if p.topic == topic):
            records = self._rows.pop(partition)
            self._sizes.pop(partition)
            self._hurried.discard(partition)
            if partition in landed:
                first = bisect_left(records, landed[partition], key=attrgetter("offset"))
                if records[first:]:
                    rows[partition] = records[first:]
        return rows

    def _size(self, topic: str) -> int:
        return sum(size for p, size in self._sizes.items() if p.topic == topic)


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """What was read of a partition ahead of its old owner's last write."""

    records: Sequence[Record]
    go_on: int | None  # where to fetch on, when fetching was interrupted


class Shelf:
    """Rows that may not land yet, `limit` bytes at most, about: the others need room, too."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._rows: dict[TopicPartition, list[Record]] = {}
        self._go_on: dict[TopicPartition, int] = {}

    def add(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        """Keep fetched rows."""
        if records:
            self._rows.setdefault(partition, []).extend(records)
            self.size += size_of(records)

    def overfull(self) -> list[TopicPartition]:
        """Return what to fetch no more for now: once the limit is reached, whatever has rows."""
        if self.size < self._limit:
            return []
        full = sorted(self._rows.keys() - self._go_on.keys())
        self._go_on.update({p: self._rows[p][-1].offset + 1 for p in full})
        return full

    def take(self, partition: TopicPartition) -> ReadAhead:
        """Remove and return a partition's rows; there may be none."""
        records = self._rows.pop(partition, [])
        self.size -= size_of(records)
        return ReadAhead(records, self._go_on.pop(partition, None))
