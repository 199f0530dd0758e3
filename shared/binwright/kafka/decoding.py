"""How fetched batches are decoded: within bounds of memory, and without one fault for all.

aiokafka 0.14 has no hook for decoding, so three classes of its fetcher are replaced:

- It inflates a batch whole, whatever its size, and `getmany` bounds the number of records, not
  their bytes: here both have a limit.
- One batch that cannot be decoded loses what `getmany` has taken from other partitions
  (aio-libs/aiokafka#321): here it ends the poll of its partition with a `DecodeFault`.
- Header keys must be UTF-8, but producers such as librdkafka may send other bytes: here such a key
  is escaped, so no part of the record is lost.
- `getmany` does not tell that it passed offsets without a record: here `Watch.passed` does.
- It makes several objects of each record: here `getmany` returns `Records`, column by column.

The latter four hold for watched partitions only.
"""

import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiokafka import ConsumerRecord
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.consumer import fetcher

from binwright.kafka.batches import Batches, Limits
from binwright.kafka.inflating import InflatedTooLarge
from binwright.kafka.segments import Segment
from binwright.protocol.ports.kafka import (
    NO_RECORDS,
    NO_TIMESTAMP,
    NO_TIMESTAMP_TYPE,
    Records,
    memory_of,
)

FEW = 128
"""Fewer records are decoded one by one: to decode records together takes 0.2 ms at least."""

_MOST_OFFSETS = 1 << 20  # in one batch; a header that claims more is corrupt


@dataclass(frozen=True, slots=True)
class DecodeFault:
    """A batch that cannot be decoded."""

    offset: int  # where decoding ended: all records before it were returned
    next: int  # the offset behind the batch
    reason: str
    stored: bytes = field(repr=False)  # the batch
    out_of_memory: bool = False  # the process is at fault, not the batch
    large: bool = False  # it was not tried, as it is large


@dataclass(slots=True)
class Watch:
    """What happened in a partition since the last look at it."""

    limits: Limits
    fault: DecodeFault | None = None
    escaped: list[int] = field(default_factory=list)  # offsets of records with escaped headers
    passed: int | None = None  # the offset behind all that was decoded
    large_before: int = 0  # batches before this offset may be large


def watch(consumer: Any, limits: Limits) -> Mapping[KafkaPartition, Watch]:
    """Watch all assigned partitions of a consumer; to be called after each `assign`.

    The decoders have no context but the assignment: it holds what is returned.
    """
    assignment = consumer._subscription.subscription.assignment  # noqa: SLF001 - has no public name
    assignment.watched = {partition: Watch(limits) for partition in assignment.tps}
    return assignment.watched  # type: ignore[no-any-return]


class PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]  # aiokafka has no types
    """A partition's records in one response.

    Of a watched partition, they are the `Records` of one poll after the other, up to the first that
    cannot be decoded.

    Attributes:
        ended: Nothing of a watched partition is left.
    """

    next_fetch_offset: int
    _records_iterator: Any
    _watch: Watch | None = None
    ended = False

    def observe(self, watched: Watch) -> None:
        """Record there what happens, and keep its limits; to be called before the first record."""
        self._watch = watched
        self._records.poll = watched.limits
        self._records.escaped = watched.escaped
        self._records.large_limit = most = watched.limits.inflated_bytes
        self._records.limit = min(watched.limits.large_bytes, most)
        self._records.large_before = watched.large_before

    def close(self) -> None:
        """Give the memory back: the iterators over the records refer to them, and they to those."""
        if self._records_iterator is not None:
            self._records_iterator.close()
            self._records_iterator = None

    def _consumer_record(self, tp: KafkaPartition, record: Any) -> Any:
        return super()._consumer_record(tp, record) if self._watch is None else record

    def _unpack_records(self) -> Iterator[Any]:
        if self._watch is None:
            yield from super()._unpack_records()
        else:
            yield from self._polls(self._watch)

    def _polls(self, watched: Watch) -> Iterator[Records]:
        """Yield the records of each poll; perhaps none in the last."""
        parts_left, limits = self._parts(watched), watched.limits
        while not self.ended:
            first, room, most = self.next_fetch_offset, limits.poll_bytes, limits.poll_records
            parts, last = _fitting(parts_left, limits)
            behind = self.next_fetch_offset
            if (records := _columns(parts)) is not None:
                records = records.since(first)
            else:
                limits.poll_bytes, limits.poll_records = room, most
                self.next_fetch_offset = first
                records, decoded = yield from self._one_by_one(parts, watched)
                if decoded:
                    self.next_fetch_offset = behind
                last |= not decoded
            self.ended = last
            yield records

    def _parts(self, watched: Watch) -> Iterator[Any]:
        """Yield segments, and single records of old formats, up to a batch with a fault."""
        try:
            yield from super()._unpack_records()
        except Exception as exc:  # noqa: BLE001 - whatever a decoder raises
            watched.fault = self._fault(exc, self._records.behind, self._records.last)

    def _one_by_one(
        self, parts: Sequence[Any], watched: Watch
    ) -> Generator[Records, None, tuple[Records, bool]]:
        """Yield the records of all polls but the last.

        Returns:
            The records of the last, and whether all were decoded.
        """
        rows, limits = list[Any](), watched.limits
        for part in parts:
            try:
                for row in _in_order(part) if isinstance(part, Segment) else (part,):
                    if row.offset < self.next_fetch_offset:
                        continue
                    if limits.poll_bytes <= 0 or len(rows) >= limits.poll_records:
                        yield _records(rows)
                        rows = []
                    rows.append(row)
                    self.next_fetch_offset = row.offset + 1
                    limits.poll_bytes -= memory_of(row.key, row.value, row.headers)
            except Exception as exc:  # noqa: BLE001 - whatever a decoder raises
                watched.fault = self._fault(exc, part.batch.next_offset, part.batch.stored)
                return _records(rows), False
        return _records(rows), True

    def _fault(self, exc: Exception, behind: int, stored: bytes) -> DecodeFault:
        at = self.next_fetch_offset
        return DecodeFault(
            at,
            behind if at < behind <= at + _MOST_OFFSETS else at + 1,
            f"{type(exc).__name__}: {exc}",
            stored,
            out_of_memory=isinstance(exc, MemoryError),
            large=isinstance(exc, InflatedTooLarge) and exc.limit < self._records.large_limit,
        )


def _in_order(segment: Segment) -> Iterator[Any]:
    """Yield a segment's records; raise what is wrong with one, or with its offset."""
    before, behind = segment.after, segment.batch.next_offset
    for row in segment.one_by_one():
        if not before < row.offset < behind:
            raise ValueError(f"a record has offset {row.offset}, between {before} and {behind}")
        before = row.offset
        yield row


def _fitting(parts_left: Iterator[Any], limits: Limits) -> tuple[Sequence[Any], bool]:
    """Return the next parts that a poll has room for, and whether none are left."""
    parts = list[Any]()
    for part in parts_left:
        parts.append(part)
        if isinstance(part, Segment):
            if not part.positions:
                return parts, False
            limits.poll_records -= len(part.positions)
            limits.poll_bytes -= part.bytes
        else:
            limits.poll_records -= 1
            limits.poll_bytes -= memory_of(part.key, part.value, part.headers)
        if limits.poll_bytes <= 0 or limits.poll_records <= 0:
            return parts, False
    return parts, True


def _columns(parts: Sequence[Any]) -> Records | None:
    """Decode all records at once; return None if they are few, or not all can be."""
    segments = [part for part in parts if isinstance(part, Segment) and part.positions]
    if len(segments) < len(parts) or sum(len(part.positions) for part in segments) < FEW:
        return None
    from binwright.kafka.columns import decode  # noqa: PLC0415 - numpy and Arrow take a while

    return decode(segments)


def _records(rows: Sequence[Any]) -> Records:
    return Records(
        offsets=[r.offset for r in rows],
        timestamps_ms=[NO_TIMESTAMP if r.timestamp is None else r.timestamp for r in rows],
        timestamp_types=[
            NO_TIMESTAMP_TYPE if r.timestamp_type is None else r.timestamp_type for r in rows
        ],
        keys=[r.key for r in rows],
        values=[r.value for r in rows],
        headers=[r.headers for r in rows],
        bytes=sum(memory_of(r.key, r.value, r.headers) for r in rows),
    )


class FetchResult(fetcher.FetchResult):  # type: ignore[misc]  # aiokafka has no types
    """The fetched records of a partition, of which a poll takes a bounded number of bytes.

    They are freed as soon as they are taken or dropped: a garbage collector that comes later finds
    hundreds of megabytes of them in a consumer that works off a backlog.
    """

    _held: PartitionRecords | None = None

    def __init__(
        self, partition: KafkaPartition, *, partition_records: PartitionRecords, **others: Any
    ) -> None:
        super().__init__(partition, partition_records=partition_records, **others)
        self._watch: Watch | None = getattr(self._assignment, "watched", {}).get(partition)
        if self._watch is not None:
            partition_records.observe(self._watch)

    def __del__(self) -> None:
        self._partition_records = None

    @property
    def _partition_records(self) -> Any:
        return self._held

    @_partition_records.setter
    def _partition_records(self, records: PartitionRecords | None) -> None:
        if self._held is not None:
            self._held.close()
        self._held = records

    def getall(self, max_records: int | None = None) -> Records | list[ConsumerRecord]:
        """Return the next records up to the bound of the poll, `Records` if it is watched."""
        if self._watch is None:
            return super().getall(max_records)  # type: ignore[no-any-return]
        limits = self._watch.limits
        if limits.poll_bytes <= 0:
            return NO_RECORDS  # they stay for the next poll
        if not self.check_assignment(self._topic_partition) or not self.has_more():
            return NO_RECORDS
        records, left = self._partition_records, limits.poll_bytes
        limits.poll_records = sys.maxsize if max_records is None else max_records
        taken: Records = next(records)
        limits.poll_bytes = left - taken.bytes
        if records.ended:
            self._partition_records = None
        state = self._assignment.state_value(self._topic_partition)
        state.consumed_to(records.next_fetch_offset)
        self._watch.passed = records.next_fetch_offset
        return taken


def install_decoder() -> None:
    """Make aiokafka's fetchers use the classes of this module."""
    fetcher.MemoryRecords = Batches
    fetcher.PartitionRecords = PartitionRecords
    fetcher.FetchResult = FetchResult
