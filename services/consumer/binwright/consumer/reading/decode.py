"""Decodes record batches that aiokafka cannot: one such record must not stop a consumer.

aiokafka expects header keys in UTF-8, but producers such as librdkafka may send other bytes. Its
decoder then raises in the middle of `getmany`, which loses what it had taken from other partitions.
It has no hook for decoding, so `install` replaces two classes in its fetcher. Ours decode like
aiokafka's own, except that

- a header key that is not UTF-8 is escaped, so no part of the record is lost;
- in watched partitions, a batch that cannot be decoded ends the poll of its partition with a
  `DecodeFault`, instead of an error for all partitions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aiokafka import TopicPartition as KafkaPartition
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import (
    DefaultRecordBatch,
    _DefaultRecordBatchPy,
    _DefaultRecordPy,
)
from aiokafka.record.legacy_records import LegacyRecordBatch
from aiokafka.record.util import decode_varint

_OVERHEAD, _MAGIC_AT = 12, 16  # positions in a stored batch, bytes
_MOST_OFFSETS = 1 << 20  # in one batch; a header that claims more is corrupt


@dataclass(frozen=True, slots=True)
class DecodeFault:
    """A batch that cannot be decoded."""

    offset: int  # where decoding ended: all records before it were returned
    next: int  # the offset behind the batch
    reason: str


@dataclass(slots=True)
class DecodeIssues:
    """What could not be decoded in a partition since the last look at it."""

    fault: DecodeFault | None = None
    escaped: list[int] = field(default_factory=list)  # offsets of records with escaped headers


# Shared by all clients of the process: aiokafka creates the decoders without a context.
_watched: dict[KafkaPartition, DecodeIssues] = {}


def watch(partition: KafkaPartition) -> DecodeIssues:
    """Record faults of this partition instead of raising them; return the record."""
    return _watched.setdefault(partition, DecodeIssues())


def unwatch(partition: KafkaPartition) -> None:
    """Raise faults of this partition again."""
    _watched.pop(partition, None)


class Batch:
    """A batch of format 2; see aiokafka's `DefaultRecordBatch`, which cannot be subclassed."""

    def __init__(self, stored: bytes, escaped: list[int]) -> None:
        """Wrap a stored batch; offsets of records with escaped headers are added to `escaped`."""
        self._stored, self._batch, self._escaped = stored, DefaultRecordBatch(stored), escaped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)  # of a control batch

    def __iter__(self) -> Iterator[Any]:
        """Decode the whole batch; return its records."""
        try:
            return iter(list(self._batch))
        except UnicodeDecodeError:
            return iter(list(_TolerantBatch(self._stored, self._escaped)))


class _TolerantBatch(_DefaultRecordBatchPy):  # type: ignore[misc]  # aiokafka has no types
    """A batch decoded in Python, which accepts header keys that are not UTF-8."""

    def __init__(self, stored: bytes, escaped: list[int]) -> None:
        super().__init__(stored)
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
        self.behind = 0  # the offset behind the last returned batch

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
        stored = self._stored[begin : self._at]
        self._end = self._next_end()
        self.behind = int.from_bytes(stored[:8]) + 1
        magic = stored[_MAGIC_AT]
        if magic < 2:  # noqa: PLR2004 - Kafka's number for the format
            return LegacyRecordBatch(stored, magic)
        batch = Batch(stored, self.escaped)
        self.behind = batch.next_offset
        return batch


class PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]  # aiokafka has no types
    """A partition's records, up to the first that cannot be decoded."""

    def __init__(self, partition: KafkaPartition, records: Batches, *args: Any) -> None:
        super().__init__(partition, records, *args)
        self._watch = _watched.get(partition)
        if self._watch is not None:
            records.escaped = self._watch.escaped

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
        return DecodeFault(at, next_offset, f"{type(exc).__name__}: {exc}")


def install() -> None:
    """Make aiokafka's fetchers use the classes of this module."""
    fetcher.MemoryRecords = Batches
    fetcher.PartitionRecords = PartitionRecords
