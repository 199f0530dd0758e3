"""Stored batches of records, decoded within bounds of memory.

Each can be decoded in two ways: record by record, or in segments for `columns`.
"""

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from aiokafka.record.default_records import (
    DefaultRecordBatch,
    _DefaultRecordBatchPy,
    _DefaultRecordPy,
)
from aiokafka.record.legacy_records import LegacyRecordBatch
from aiokafka.record.util import decode_varint_py as decode_varint  # the other reads beyond the end

from binwright.kafka.inflating import inflated
from binwright.kafka.segments import OneByOne, Segment, find_records, offset_in_batch

INFLATED_BYTES = 128_000_000
"""Limit of a batch's inflated records in partitions that are not watched."""
LARGE_BYTES = 32_000_000
"""A batch that inflates to more is decoded only if `Batches.large_before` says so."""
MANY_HEADERS_BYTES = 1 << 20
MOST_HEADERS = MANY_HEADERS_BYTES // 2
"""Of a record; a header takes two bytes or more, so no smaller record can have more."""

_OVERHEAD, _MAGIC_AT = 12, 16  # positions in a stored batch, bytes
_CODEC_AT, _CODEC_MASK = 22, DefaultRecordBatch.CODEC_MASK  # in format 2
_COUNT_AT, _RECORDS_AT = 57, 61
_LEGACY_CODEC_AT, _LEGACY_KEY_AT = 17, (18, 26)  # in formats 0 and 1


@dataclass(slots=True)
class Limits:
    """What one client's partitions share."""

    inflated_bytes: int  # of a batch
    large_bytes: int = LARGE_BYTES  # of a batch, from which on it is large
    poll_bytes: int = 0  # that the present poll may still return; the last record may exceed it
    poll_records: int = sys.maxsize  # likewise
    stored_bytes: int = 0  # of all batches that were read, as stored


class DecodedBatch:
    """A batch of format 2; see aiokafka's `DefaultRecordBatch`, which cannot be subclassed."""

    def __init__(self, stored: bytes, escaped: list[int], poll: Limits | None = None) -> None:
        """Wrap a stored batch.

        Args:
            stored: The batch.
            escaped: Offsets of records with escaped headers are added to it.
            poll: If given, the batch's records are returned in segments, as the poll has room.
        """
        self.stored, self._batch, self._escaped = stored, DefaultRecordBatch(stored), escaped
        self.limit, self._poll = INFLATED_BYTES, poll
        self.base_offset, self.next_offset = self._batch.base_offset, self._batch.next_offset
        self.producer_id, self.validate_crc = self._batch.producer_id, self._batch.validate_crc
        self.is_transactional = self._batch.is_transactional
        self.is_control_batch = self._batch.is_control_batch

    def __next__(self) -> Any:
        return next(self._batch)  # of a control batch

    def __iter__(self) -> Iterator[Any]:
        """Return the batch's records, one by one or in segments."""
        stored = self._inflated()
        records = self._one_by_one(stored)
        return records if self._poll is None else self._segments(stored, records, self._poll)

    def _segments(
        self, stored: memoryview, records: Iterator[Any], poll: Limits
    ) -> Iterator[Segment]:
        one_by_one, at, number = OneByOne(records), _RECORDS_AT, 0
        after, last = self.base_offset - 1, self.next_offset - 1
        count = int.from_bytes(stored[_COUNT_AT:_RECORDS_AT], signed=True)
        while number < count:
            most = min(poll.poll_records, count - number)
            try:
                positions, end = find_records(stored, at, most, poll.poll_bytes)
                offset = self.base_offset + offset_in_batch(stored, positions[-1])
            except (IndexError, ValueError):
                break
            if not after + len(positions) <= offset <= last:
                break
            yield Segment(self, stored, positions, end, offset, after, number, one_by_one)
            at, number, after = end, number + len(positions), offset
        if number < count:  # one of them is damaged: it is looked at, wherever its offset would be
            last = max(last, after + 1)
        if number < count or at < len(stored):
            yield Segment(self, stored, [], at, last, after, number, one_by_one)

    def _one_by_one(self, stored: memoryview) -> Iterator[Any]:
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
        stored = memoryview(self.stored)
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
        self.poll: Limits | None = None  # if set, batches return their records in segments
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
        if self.poll is not None:
            self.poll.stored_bytes += len(stored)
        self._end = self._next_end()
        self.behind = int.from_bytes(stored[:8]) + 1
        magic = stored[_MAGIC_AT]
        if magic < 2:  # noqa: PLR2004 - Kafka's number for the format
            _check_legacy(memoryview(stored), magic, self._present_limit())
            return LegacyRecordBatch(stored, magic)
        batch = DecodedBatch(stored, self.escaped, self.poll)
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
