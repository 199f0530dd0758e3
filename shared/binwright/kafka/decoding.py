"""How fetched batches are decoded: within bounds of memory, and without one fault for all.

aiokafka 0.14 has no hook for decoding, so three classes of its fetcher are replaced:

- It inflates a batch whole, whatever its size, and `getmany` bounds the number of records, not
  their bytes: here both have a limit.
- One batch that cannot be decoded loses what `getmany` has taken from other partitions
  (aio-libs/aiokafka#321): here it ends the poll of its partition with a `DecodeFault`.
- Header keys must be UTF-8, but producers such as librdkafka may send other bytes: here such a key
  is escaped, so no part of the record is lost.
- `getmany` does not tell that it passed offsets without a record: here `Watch.passed` does.

The latter three hold for watched partitions only.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from aiokafka import ConsumerRecord
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import (
    DefaultRecordBatch,
    _DefaultRecordBatchPy,
    _DefaultRecordPy,
)
from aiokafka.record.legacy_records import LegacyRecordBatch
from aiokafka.record.util import decode_varint_py as decode_varint  # the other reads beyond the end

from binwright.kafka.inflating import InflatedTooLarge, inflated
from binwright.protocol.ports.kafka import memory_of

INFLATED_BYTES = 128_000_000
"""Limit of a batch's inflated records in partitions that are not watched."""
LARGE_BYTES = 32_000_000
"""A batch that inflates to more is decoded only if `Watch.large_before` says so."""
MANY_HEADERS_BYTES = 1 << 20
MOST_HEADERS = MANY_HEADERS_BYTES // 2
"""Of a record; a header takes two bytes or more, so no smaller record can have more."""

_OVERHEAD, _MAGIC_AT = 12, 16  # positions in a stored batch, bytes
_CODEC_AT, _CODEC_MASK, _RECORDS_AT = 22, DefaultRecordBatch.CODEC_MASK, 61  # in format 2
_LEGACY_CODEC_AT, _LEGACY_KEY_AT = 17, (18, 26)  # in formats 0 and 1
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
class Limits:
    """What one client's partitions share."""

    inflated_bytes: int  # of a batch
    poll_bytes: int = 0  # that the present poll may still return; the last record may exceed it


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


class DecodedBatch:
    """A batch of format 2; see aiokafka's `DefaultRecordBatch`, which cannot be subclassed."""

    def __init__(self, stored: bytes, escaped: list[int]) -> None:
        """Wrap a stored batch; offsets of records with escaped headers are added to `escaped`."""
        self._stored, self._batch, self._escaped = stored, DefaultRecordBatch(stored), escaped
        self.limit = INFLATED_BYTES

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)  # of a control batch

    def __iter__(self) -> Iterator[Any]:
        """Decode the batch; yield its records one by one."""
        stored = self._inflated()
        records, checked, decoded = iter(DefaultRecordBatch(stored)), _RECORDS_AT, 0
        while True:
            if len(stored) > MANY_HEADERS_BYTES and checked < len(stored):
                checked = _check_headers(stored, checked)
            try:
                record = next(records)
            except StopIteration:
                return
            except UnicodeDecodeError:
                break
            decoded += 1
            yield record
        yield from islice(_TolerantBatch(stored, self._escaped), decoded, None)

    def _inflated(self) -> memoryview:
        """Return the batch as if it had been stored without compression; its CRC is wrong then."""
        stored = memoryview(self._stored)
        codec = stored[_CODEC_AT] & _CODEC_MASK
        if not codec:
            return stored
        head = bytearray(stored[:_RECORDS_AT])
        head[_CODEC_AT] &= ~_CODEC_MASK
        return inflated(codec, stored[_RECORDS_AT:], self.limit, head=bytes(head))


def _check_headers(stored: memoryview, at: int) -> int:
    """Check the record at this position; return where the next one begins.

    Each header is several objects: a record of some MB could take gigabytes. aiokafka's decoder
    checks all else.
    """
    length, at = decode_varint(stored, at)
    end: int = at + length
    if length > MANY_HEADERS_BYTES:
        for _ in range(3):  # attributes, timestamp, offset
            _, at = decode_varint(stored, at)
        for _ in range(2):  # key, value
            size, at = decode_varint(stored, at)
            at += max(size, 0)
        count, _ = decode_varint(stored, at)
        if count > MOST_HEADERS:
            raise ValueError(f"a record has {count:,} headers; the limit is {MOST_HEADERS:,}")
    return end


class _TolerantBatch(_DefaultRecordBatchPy):  # type: ignore[misc]  # aiokafka has no types
    """A batch decoded in Python, which accepts header keys that are not UTF-8."""

    def __init__(self, stored: memoryview, escaped: list[int]) -> None:
        super().__init__(stored[:_RECORDS_AT])
        self._buffer = stored  # aiokafka's own would be a copy
        self._pos: int
        self._escaped = escaped

    def _read_msg(self) -> Any:
        length, start = decode_varint(self._buffer, self._pos)
        _attributes, at = decode_varint(self._buffer, start)
        since_first_ms, at = decode_varint(self._buffer, at)
        delta, at = decode_varint(self._buffer, at)
        key, at = self._bytes(at)
        value, at = self._bytes(at)
        count, at = decode_varint(self._buffer, at)
        headers: list[tuple[str, bytes | None]] = []
        for _ in range(count):
            name, at = self._bytes(at)
            content, at = self._bytes(at)
            headers.append((self._text(name or b"", self.base_offset + delta), content))
        if at - start != length:
            raise ValueError(f"a record of {length} bytes was read as {at - start}")
        self._pos = at
        appended = self.timestamp_type == self.LOG_APPEND_TIME
        timestamp = self.max_timestamp if appended else self.first_timestamp + since_first_ms
        offset = self.base_offset + delta
        return _DefaultRecordPy(offset, timestamp, self.timestamp_type, key, value, headers)

    def _bytes(self, at: int) -> tuple[bytes | None, int]:
        size, at = decode_varint(self._buffer, at)
        return (None, at) if size < 0 else (bytes(self._buffer[at : at + size]), at + size)

    def _text(self, name: bytes, offset: int) -> str:
        try:
            return name.decode()
        except UnicodeDecodeError:
            if offset not in self._escaped[-1:]:
                self._escaped.append(offset)
            return name.decode(errors="backslashreplace")


class Batches:
    """The batches of a partition in one response; see aiokafka's `MemoryRecords`."""

    def __init__(self, stored: bytes) -> None:
        self._stored, self._at = stored or b"", 0
        self._end = self._next_end()
        self.escaped: list[int] = []
        self.limit = self.large_limit = INFLATED_BYTES
        self.large_before = 0
        self.last, self.behind = b"", 0  # the last returned batch, and the offset behind it

    def _next_end(self) -> int | None:
        """Return where the next batch ends; None if it is incomplete."""
        if len(self._stored) < self._at + _OVERHEAD:
            return None
        length = int.from_bytes(self._stored[self._at + 8 : self._at + _OVERHEAD], signed=True)
        end = self._at + _OVERHEAD + length
        return end if self._at + _OVERHEAD < end <= len(self._stored) else None

    def size_in_bytes(self) -> int:
        """Return the size of the batches, bytes."""
        return len(self._stored)

    def has_next(self) -> bool:
        """Return whether there is another complete batch."""
        return self._end is not None

    def next_batch(self) -> Any:
        """Return the next batch."""
        begin, self._at = self._at, self._end or len(self._stored)
        self.last = stored = self._stored[begin : self._at]
        self._end = self._next_end()
        self.behind = int.from_bytes(stored[:8]) + 1
        magic = stored[_MAGIC_AT]
        if magic < 2:  # noqa: PLR2004 - Kafka's number for the format
            _check_legacy(memoryview(stored), magic, self._present_limit())
            return LegacyRecordBatch(stored, magic)
        batch = DecodedBatch(stored, self.escaped)
        self.behind = batch.next_offset
        batch.limit = self._present_limit()
        return batch

    def _present_limit(self) -> int:
        return self.large_limit if self.behind <= self.large_before else self.limit


def _check_legacy(stored: memoryview, magic: int, limit: int) -> None:
    """Check what a batch of format 0 or 1 inflates to; aiokafka's decoder inflates it again."""
    if codec := stored[_LEGACY_CODEC_AT] & _CODEC_MASK:
        at = _LEGACY_KEY_AT[magic]
        (key_size,) = struct.unpack_from(">i", stored, at)
        inflated(codec, stored[at + 4 + max(key_size, 0) + 4 :], limit)


class PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]  # aiokafka has no types
    """A partition's records, up to the first that cannot be decoded."""

    _watch: Watch | None = None

    def observe(self, watched: Watch) -> None:
        """Record there what happens, and keep its limits; to be called before the first record."""
        self._watch = watched
        self._records.escaped = watched.escaped
        self._records.large_limit = most = watched.limits.inflated_bytes
        self._records.limit = min(LARGE_BYTES, most)
        self._records.large_before = watched.large_before

    def _unpack_records(self) -> Iterator[Any]:
        try:
            yield from super()._unpack_records()
        except Exception as exc:
            if self._watch is None:
                raise
            self._watch.fault = self._fault(exc)

    def _fault(self, exc: Exception) -> DecodeFault:
        at, behind = self.next_fetch_offset, self._records.behind
        next_offset = behind if at < behind <= at + _MOST_OFFSETS else at + 1
        return DecodeFault(
            at,
            next_offset,
            f"{type(exc).__name__}: {exc}",
            self._records.last,
            out_of_memory=isinstance(exc, MemoryError),
            large=isinstance(exc, InflatedTooLarge) and exc.limit < self._records.large_limit,
        )


class FetchResult(fetcher.FetchResult):  # type: ignore[misc]  # aiokafka has no types
    """The fetched records of a partition, of which a poll takes a bounded number of bytes."""

    _partition_records: Any

    def __init__(
        self, partition: KafkaPartition, *, partition_records: PartitionRecords, **others: Any
    ) -> None:
        super().__init__(partition, partition_records=partition_records, **others)
        self._watch: Watch | None = getattr(self._assignment, "watched", {}).get(partition)
        if self._watch is not None:
            partition_records.observe(self._watch)

    def getall(self, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return the next records, up to the bound of the poll."""
        if self._watch is None:
            return super().getall(max_records)  # type: ignore[no-any-return]
        limits, taken = self._watch.limits, list[ConsumerRecord]()
        if limits.poll_bytes <= 0:
            return taken  # they stay for the next poll
        if not self.check_assignment(self._topic_partition) or not self.has_more():
            return taken
        records, left = self._partition_records, limits.poll_bytes
        for record in records:
            taken.append(record)
            left -= memory_of(record.key, record.value, record.headers)
            if left <= 0 or len(taken) == max_records:
                break
        else:
            self._partition_records = None
        limits.poll_bytes = left
        state = self._assignment.state_value(self._topic_partition)
        state.consumed_to(records.next_fetch_offset)
        self._watch.passed = records.next_fetch_offset
        return taken


def install_decoder() -> None:
    """Make aiokafka's fetchers use the classes of this module."""
    fetcher.MemoryRecords = Batches
    fetcher.PartitionRecords = PartitionRecords
    fetcher.FetchResult = FetchResult
