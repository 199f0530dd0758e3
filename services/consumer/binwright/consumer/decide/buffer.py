"""Holds fetched records that are not staged yet, and the offset ranges that they form.

Rows are staged by size and age, and fetching pauses when the memory for them is short. Of a backlog
they wait for one another, for large files: these need no compaction.
A range begins where reading was started, or where the previous range ended, and ends at the
reader's position: it holds every record in between that a reader can see, once (†). Offsets without
a record (retention, compaction, transaction markers) are part of the range, also behind its last
record; a range may have no record at all.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from binwright.consumer.decide.turns import until_turn_s
from binwright.protocol.landing import OffsetRange
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Records
from binwright.tables.ports import PartitionOffsets

NO_ENDS: PartitionOffsets = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """A consumer's settings for batching."""

    bytes: int = 16_000_000  # of a topic's rows: so many are staged at once, but of a backlog
    wait_s: float = 1.0  # from one time at which a topic's rows are staged to the next, at least
    cap_bytes: int = 160_000_000  # of all buffered rows
    wall_s: float = 0.0  # the wall clock's time when the monotonic one was 0


@dataclass(frozen=True, slots=True)
class BufferedRange:
    """One partition's rows for a file."""

    range: OffsetRange
    records: Sequence[Records]  # as they were fetched
    bytes: int  # of memory
    cut: bool = False  # the log was truncated: the range begins where it then ended

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.records))


@dataclass(frozen=True, slots=True)
class TakenRows:
    """Rows of one topic, for one file."""

    topic: str
    topic_id: str | None  # of the topic that they were fetched from
    ranges: Mapping[TopicPartition, BufferedRange]
    oldest_at: float  # when the oldest row was fetched; s, monotonic
    bytes: int  # of memory

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return sum(part.count for part in self.ranges.values())


@dataclass(slots=True)
class _Rows:
    begin: int  # of the current range
    next: int  # its end so far
    records: list[Records]
    bytes: int = 0
    cut: bool = False


LATE_SHARE, MOST_INTERVALS = 1 / 4, 16
FILL_INTERVALS = 2
"""For which rows of a backlog wait for more of it, at most: a quarter of what they are late by."""
LEAST_SHARE = 1 / 4  # of a batch: what is less is no backlog, or its beginning


def interval_s(shortest_s: float, late_s: float) -> float:
    """Return the time from one staging of a topic to the next, s.

    Rows that land late anyway are staged in fewer files: at a quarter of what they are late by. The
    interval is doubled to that, so that consumers of one topic keep common times.

    Args:
        shortest_s: The interval of a topic that is not late, above 0.
        late_s: How much later than wanted the topic's rows land; 0: they do not.
    """
    every_s = shortest_s
    while 2 * every_s <= min(LATE_SHARE * late_s, MOST_INTERVALS * shortest_s):
        every_s *= 2
    return every_s


class Buffer:
    """Rows in offset order per partition, and the age of what each topic has to stage."""

    def __init__(
        self, config: BatchConfig, late_s: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        """Begin without partitions.

        Args:
            config: The settings.
            late_s: Topic -> how late its rows land, if they do; it may change.
        """
        self.config, self._late_s = config, late_s
        self._rows: dict[TopicPartition, _Rows] = {}
        self._oldest: dict[str, float] = {}  # topic -> when the first of its rows was fetched; s
        self._size = 0
        self._sizes: dict[str, int] = {}

    @property
    def free_bytes(self) -> int:
        """Bytes that may still be fetched; 0 means back-pressure."""
        return max(0, self.config.cap_bytes - self._size)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Return topic -> bytes of its rows, for topics that have rows."""
        return {topic: size for topic, size in self._sizes.items() if size}

    @property
    def may_wait(self) -> bool:
        """Whether `due` depends on where partitions end."""
        return LEAST_SHARE * self.config.bytes <= self._size < self.config.cap_bytes // 2

    def next_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset to fetch next; None for a partition that is not read."""
        rows = self._rows.get(partition)
        return None if rows is None else rows.next

    def taken_before(self, partition: TopicPartition) -> int | None:
        """Return the offset before which all was taken; None for a partition that is not read."""
        rows = self._rows.get(partition)
        return None if rows is None else rows.begin

    def begin(self, partition: TopicPartition, offset: int, *, cut: bool = False) -> None:
        """Begin a range at `offset`; drop the partition's rows."""
        self.drop(partition)
        self._rows[partition] = _Rows(offset, offset, [], cut=cut)

    def add(self, partition: TopicPartition, records: Records, now: float) -> None:
        """Add fetched rows; skip those of a partition that is not read, or before its position.

        A fetch that was in flight when reading was stopped or reset may return such rows.
        """
        rows = self._rows.get(partition)
        if rows is None:
            return
        if records := records.since(rows.next):
            rows.records.append(records)
            rows.next = records.next
            self._grow(partition.topic, rows, records.bytes)
            self._oldest.setdefault(partition.topic, now)

    def advance(self, partition: TopicPartition, offset: int, now: float) -> None:
        """Add the offsets before this one: they have no records that are not added yet."""
        rows = self._rows.get(partition)
        if rows is not None and rows.next < offset:
            rows.next = offset
            self._oldest.setdefault(partition.topic, now)

    def _grow(self, topic: str, rows: _Rows, size: int) -> None:
        rows.bytes += size
        self._size += size
        self._sizes[topic] = self._sizes.get(topic, 0) + size

    def drop(self, partition: TopicPartition) -> None:
        """Forget a partition: another consumer reads it, or it is read from another offset."""
        rows = self._rows.pop(partition, None)
        if rows is not None:
            self._grow(partition.topic, rows, -rows.bytes)
            if partition.topic in self._oldest and not self._sizes[partition.topic]:
                others = (r for p, r in self._rows.items() if p.topic == partition.topic)
                if all(other.next == other.begin for other in others):
                    del self._oldest[partition.topic]

    def due(
        self, now: float, busy: Collection[str] = (), ends: PartitionOffsets = NO_ENDS
    ) -> str | None:
        """Return the topic whose rows are to be staged now, the one with the oldest row first.

        Args:
            now: Seconds, monotonic.
            busy: Topics that are left out: a file of theirs is being written.
            ends: Where partitions end in Kafka, as far as it matters, see `may_wait`.
        """
        ready = [
            (oldest, topic)
            for topic, oldest in self._oldest.items()
            if topic not in busy and now >= self._due_at(topic, oldest, ends)
        ]
        return min(ready)[1] if ready else None

    def _due_at(self, topic: str, oldest: float, ends: PartitionOffsets) -> float:
        if self._fills(topic, oldest, ends):
            return oldest + FILL_INTERVALS * self.config.wait_s
        if self._sizes.get(topic, 0) >= self.config.bytes:
            return oldest
        return self._staged_at(topic, oldest)

    def _fills(self, topic: str, oldest: float, ends: PartitionOffsets) -> bool:
        """Whether rows of a topic are to wait for others, until the buffer is half full.

        They wait for what Kafka has already, and only if all partitions of theirs are late: a live
        one does not wait for the backlog of another.
        """
        if not self.may_wait:
            return False
        late_s = FILL_INTERVALS * self.config.wait_s / LATE_SHARE
        late_ms = 1_000 * (self.config.wall_s + oldest - late_s)
        unread = 0
        for partition, rows in self._rows.items():
            if partition.topic == topic and rows.records:
                if rows.records[-1].timestamps_ms[-1] > late_ms:
                    return False
                left = max(0, ends.get(partition, 0) - rows.next)
                unread += left * rows.bytes // sum(map(len, rows.records))
        return unread >= self.config.cap_bytes // 2 - self._size

    def _staged_at(self, topic: str, oldest: float) -> float:
        """Return when a row fetched at `oldest` is staged: an interval later at the most.

        The times of a topic are those of the wall clock, so that what its consumers stage arrives
        together and lands in one commit. Topics have times of their own. A buffer that is half full
        needs room, and stages those that are late as often as others.
        """
        late_s = 0.0 if 2 * self._size > self.config.cap_bytes else self._late_s.get(topic, 0.0)
        interval = interval_s(self.config.wait_s, late_s)
        wait_s = until_turn_s(topic, interval, self.config.wall_s + oldest)
        return oldest + (wait_s or interval)

    def due_in(
        self, now: float, busy: Collection[str] = (), ends: PartitionOffsets = NO_ENDS
    ) -> float | None:
        """Return the seconds until the age of rows makes a file due; None: there are no rows."""
        due = [
            self._due_at(topic, oldest, ends)
            for topic, oldest in self._oldest.items()
            if topic not in busy
        ]
        return max(0.0, min(due) - now) if due else None

    def oldest_at(self, topic: str) -> float | None:
        """Return when the oldest row of the topic was fetched; seconds, monotonic."""
        return self._oldest.get(topic)

    def take_ranges(self, topic: str) -> Mapping[TopicPartition, BufferedRange]:
        """Remove and return a topic's rows; its next ranges begin where these end."""
        self._oldest.pop(topic, None)
        taken: dict[TopicPartition, BufferedRange] = {}
        for partition in sorted(p for p in self._rows if p.topic == topic):
            rows = self._rows[partition]
            if rows.begin < rows.next:
                offsets = OffsetRange(rows.begin, rows.next)
                taken[partition] = BufferedRange(offsets, rows.records, rows.bytes, rows.cut)
                self._grow(topic, rows, -rows.bytes)
                self._rows[partition] = _Rows(rows.next, rows.next, [])
        return taken


def over_share(limit_bytes: int, sizes: Mapping[str, int]) -> frozenset[str]:
    """Return the topics to pause, so that the others have room.

    A topic may take as much as is left free: one that cannot go on stops at half of the limit, two
    at a third each, and so on. A single topic may take all.

    Args:
        limit_bytes: On what all topics take together.
        sizes: Topic -> the bytes that it takes, for each topic that may take some.
    """
    if len(sizes) < 2:  # noqa: PLR2004 - there is no other that needs room
        return frozenset()
    free = limit_bytes - sum(sizes.values())
    return frozenset(topic for topic, size in sizes.items() if size >= free)
