"""All that binwright replaces or uses of aiokafka's privates, as of aiokafka 0.14, and why.

- `keep_to_own_topics`: a client that uses no topics yet requests the metadata of all of them
  (aio-libs/aiokafka#440 mended its start alone), and each refresh creates a used topic anew that
  was deleted, with the broker's default settings. No option turns that off.
- `abandon_producer`: without brokers `stop` waits for ever, since an idempotent batch never expires
  (aio-libs/aiokafka#1101).
- `fetcher_has_died`: a fetcher whose task has ended is not started again, and no public attribute
  tells (aio-libs/aiokafka#983, #1037).
- `install_decoder`: header keys must be UTF-8, but producers such as librdkafka may send other
  bytes; and one batch that cannot be decoded loses what `getmany` has taken from other partitions
  (aio-libs/aiokafka#321). Decoding has no hook, so two classes of the fetcher are replaced.
- `inner_client`, `known_topics`: a consumer's connections and metadata have no public name, as a
  producer's have.
"""

import asyncio
import random
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.consumer import fetcher
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.record.default_records import (
    DefaultRecordBatch,
    _DefaultRecordBatchPy,
    _DefaultRecordPy,
)
from aiokafka.record.legacy_records import LegacyRecordBatch
from aiokafka.record.util import decode_varint

# --- clients -------------------------------------------------------------------------------------


def inner_client(user: Any) -> AIOKafkaClient:
    """Return the client of an aiokafka consumer or producer."""
    return user.client if hasattr(user, "client") else user._client  # noqa: SLF001


def keep_to_own_topics(user: Any) -> None:
    """Have a consumer or producer request its own topics only, and create none."""
    client: AIOKafkaClient = inner_client(user)

    async def update(cluster: ClusterMetadata, topics: Collection[str] | None) -> bool:
        request = MetadataRequest(sorted(topics or ()), allow_auto_topic_creation=False)
        brokers = [broker.nodeId for broker in client.cluster.brokers()]
        for broker in random.sample(brokers, len(brokers)):
            try:
                metadata = await client.send(broker, request)
            except KafkaError:
                continue  # another broker may answer
            cluster.update_metadata(metadata)
            return True
        cluster.failed_update(None)
        return False

    client._metadata_update = update  # noqa: SLF001


def known_topics(consumer: AIOKafkaConsumer) -> set[str]:
    """Return the topics in a consumer's metadata."""
    topics: set[str] = inner_client(consumer).cluster.topics(exclude_internal_topics=False)
    return topics


def fetcher_has_died(consumer: AIOKafkaConsumer) -> bool:
    """Return whether a consumer fetches no more; one that has not started has no fetcher yet."""
    fetching = getattr(consumer, "_fetcher", None)
    return fetching is not None and fetching.error_future.done()


async def abandon_producer(producer: AIOKafkaProducer, patience_s: float) -> None:
    """Fail what a producer still has to send, and close its connections.

    The sender is closed first, within `patience_s`, as it may still use a batch that is failed.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await producer._sender.close()  # noqa: SLF001
    producer._message_accumulator.fail_all(KafkaError("given up at the end"))  # noqa: SLF001
    await producer.client.close()


# --- decoding ------------------------------------------------------------------------------------
# Ours decode like aiokafka's own, except that
# - a header key that is not UTF-8 is escaped, so no part of the record is lost;
# - in watched partitions, a batch that cannot be decoded ends the poll of its partition with a
#   `DecodeFault`, instead of an error for all partitions.

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


class DecodedBatch:
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
        batch = DecodedBatch(stored, self.escaped)
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


def install_decoder() -> None:
    """Make aiokafka's fetchers use the classes of this module."""
    fetcher.MemoryRecords = Batches
    fetcher.PartitionRecords = PartitionRecords
