"""Kafka: control topics, the measuring of data partitions, and reading them."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

from binwright.protocol.model import TopicPartition
from binwright.protocol.selection import Selection

Headers = Sequence[tuple[str, bytes | None]]
NO_TIMESTAMP, NO_TIMESTAMP_TYPE = -1, -1
"""Of a record in message format 0, which has none; Kafka's own numbers."""
RECORD_BYTES, HEADER_BYTES = 64, 64  # of memory besides the contents, estimated


@dataclass(frozen=True, slots=True)
class Record:
    """One Kafka record."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    timestamp_type: int = 0  # 0: set by the producer, 1: by the broker at the append
    headers: tuple[tuple[str, bytes | None], ...] = ()


def memory_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return an estimate of the bytes that a record takes."""
    size = RECORD_BYTES
    if key:
        size += len(key)
    if value:
        size += len(value)
    for name, content in headers:
        size += HEADER_BYTES + len(name) + (len(content) if content else 0)
    return size


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one data partition, in order of offsets, column by column.

    All columns are lists, or all are arrays of numpy and Arrow: of many records, made without an
    object for each.
    """

    offsets: Sequence[int]
    timestamps_ms: Sequence[int]
    timestamp_types: Sequence[int]  # as in `Record`
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers]
    bytes: int  # of memory, estimated

    @classmethod
    def of(cls, records: Iterable[Record]) -> Self:
        """Return these records."""
        rows = list(records)
        return cls(
            offsets=[row.offset for row in rows],
            timestamps_ms=[row.timestamp_ms for row in rows],
            timestamp_types=[row.timestamp_type for row in rows],
            keys=[row.key for row in rows],
            values=[row.value for row in rows],
            headers=[row.headers for row in rows],
            bytes=sum(memory_of(row.key, row.value, row.headers) for row in rows),
        )

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.offsets)

    @property
    def next(self) -> int:
        """The offset behind the last record."""
        return int(self.offsets[-1]) + 1

    def since(self, offset: int) -> Self:
        """Return the records from this offset on; their bytes count like all others'."""
        first = bisect_left(self.offsets, offset)
        return self if first == 0 else self._slice(first, len(self))

    def before(self, offset: int) -> Self:
        """Return the records before this offset; their bytes count like all others'."""
        end = bisect_left(self.offsets, offset)
        return self if end == len(self) else self._slice(0, end)

    def _slice(self, first: int, end: int) -> Self:
        return replace(
            self,
            offsets=self.offsets[first:end],
            timestamps_ms=self.timestamps_ms[first:end],
            timestamp_types=self.timestamp_types[first:end],
            keys=self.keys[first:end],
            values=self.values[first:end],
            headers=self.headers[first:end],
            bytes=self.bytes * (end - first) // len(self),
        )


NO_RECORDS = Records.of(())


class Reader(Protocol):
    """Reads one partition in order, each record once, through outages."""

    @property
    def position(self) -> int:
        """The offset to read next; retention may have deleted the record there."""

    async def read(self, timeout_s: float) -> Sequence[Record]:
        """Return the next records, none after `timeout_s` seconds; raise `BrokerUnavailable`."""

    def seek(self, offset: int) -> None:
        """Continue at another offset of the partition."""

    async def close(self) -> None:
        """Release the connections."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic's configuration."""

    config: Mapping[str, str]  # by Kafka's names; without those that Kafka does not return
    replicas: int  # the fewest of any partition
    brokers: int  # alive in the cluster


class ControlTopics(Protocol):
    """Control topics: small messages, in order within each partition."""

    async def publish(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        """Append durably, in the order of calls, and return the record's offset.

        Raises:
            BrokerUnavailable: Not confirmed in time; the record may have been appended.
            TopicMissing: The topic or partition does not exist.
            RecordTooLarge: The topic does not accept a record of this size.
        """

    async def end(self, topic: str, partition: int) -> int:
        """Return the offset of the next record; raise like `publish`."""

    async def offset_at(self, topic: str, partition: int, at_ms: int) -> int:
        """Return the offset of the first record of this time or later, or the end.

        Args:
            topic: Its name.
            partition: Its number.
            at_ms: Time of a record, ms since 1970.

        Raises:
            ExternalError: As `publish` does.
        """

    async def reader(self, topic: str, partition: int, offset: int) -> Reader:
        """Return a reader from `offset` on, or from the oldest record if that is later."""

    async def oldest(self, topic: str, partition: int) -> Sequence[Record] | None:
        """Return some of a partition's oldest records; none if it has none.

        Returns:
            The records, or None: this user may not read them.

        Raises:
            BrokerUnavailable: No broker replies.
            TopicMissing: The topic or partition does not exist.
        """

    async def partitions(self, topic: str) -> int:
        """Return the number of the topic's partitions; 0 if it does not exist."""

    async def topic_id(self, topic: str) -> str | None:
        """Return the topic's id, new with each creation; None if the brokers have no topic ids.

        Raises:
            BrokerUnavailable: No broker replies, or the client is not authorized.
            TopicMissing: The topic does not exist.
        """

    async def ensure(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create the topic with `config`, or add partitions up to at least `partitions`."""

    async def describe(self, topic: str, names: Collection[str]) -> TopicDescription:
        """Return a topic's configuration, with its settings of these names.

        Raises:
            BrokerUnavailable: No broker replies, or the client is not authorized.
            TopicMissing: The topic does not exist.
        """


@dataclass(frozen=True, slots=True)
class LogSample:
    """The state of one partition's log on its leader, at one time."""

    leader: int
    start: int  # first offset that is retained
    end: int  # offset of the next record
    size: int | None  # bytes of the log as stored; None: the leader does not return it
    at: float | None = field(default=None, compare=False)  # s, monotonic; None: now
    batch_bytes_per_record: float | None = None  # of a recent batch, if requested


class LogSampler(Protocol):
    """Samples the logs of data partitions."""

    async def sample(
        self, wanted: Selection, measure_batches: Mapping[str, Collection[int]]
    ) -> Mapping[str, Mapping[int, LogSample | None]]:
        """Return each wanted topic's partitions; None for one that cannot be sampled now.

        Args:
            wanted: A named topic that does not exist is returned without partitions; a topic whose
                metadata is unavailable now is left out.
            measure_batches: Partitions of which a batch should be read, most urgent first; as many
                as can be read at little cost are.

        Raises:
            BrokerUnavailable: No broker replied.
        """

    def zones(self, topic: str) -> Mapping[int, Collection[str]]:
        """Return the zones in which a topic's partitions can be read, as of the last sample.

        Empty unless brokers are in several.
        """


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset committed under the group's name, for monitoring tools and a quick start."""

    offset: int  # the next offset to land
    topic_id: str | None = None  # of the topic that the offset is of, if known


@dataclass(frozen=True, slots=True)
class UndecodableBatch:
    """A batch of records that no fetch of some minutes could decode, or a large one."""

    first: int  # the first offset that was not returned
    next: int  # the offset behind the batch
    reason: str
    content: bytes = field(repr=False)  # as Kafka stores it
    large: bool = False  # it was not tried: decoding it takes much memory


@dataclass(frozen=True, slots=True)
class ReadProgress:
    """How far a reader is."""

    stored_bytes: int  # of all batches that it has read, as stored on the brokers
    offsets: Mapping[TopicPartition, tuple[int, int]]
    """Started partitions -> the next offset to return, and the end as the last fetch has it."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """What Kafka has of a topic."""

    topic_id: str | None  # None: the brokers have no ids
    bounds: Mapping[TopicPartition, tuple[int, int]]
    """(First retained offset, end offset) of the partitions whose leader answers."""
    readable: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the first open transaction begins, if only committed records are read: partitions ->
    the end of what can be read; those that are not here can be read to their end."""
    leaderless: frozenset[TopicPartition] = frozenset()  # whose bounds are unknown


class DataReader(Protocol):
    """Fetches a consumer's data partitions, assigned without a Kafka consumer group."""

    async def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch from `offset` on; other partitions are not interrupted."""

    def stop(self, partition: TopicPartition) -> None:
        """Stop fetching at once; no more records of it are returned."""

    async def fetch(self, max_bytes: int, timeout_s: float) -> Mapping[TopicPartition, Records]:
        """Return fetched records, in order per partition, about `max_bytes` bytes at most.

        Raises:
            BrokerUnavailable: The brokers do not reply.
        """

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return (first retained offset, end offset) of the partitions whose leader answers.

        The others are left out: theirs are not known yet.

        Raises:
            BrokerUnavailable: No broker answers.
            TopicMissing: Some of the partitions do not exist.
        """

    async def offsets_at(
        self, partitions: Collection[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, int]:
        """Return the offset of the first record whose timestamp is not before a time, in ms.

        Partitions without such a record are left out.

        Raises:
            BrokerUnavailable: It is not known of each of them: a leader does not answer.
            TopicMissing: Some of the topics do not exist.
        """

    async def topic_states(self, topics: Collection[str]) -> Mapping[str, TopicState | None]:
        """Return what Kafka has of these topics, in few requests for all.

        None is known of one that Kafka does not describe, that has no leader, or that is being
        recreated; one that is left out does not exist.

        Raises:
            BrokerUnavailable: No broker answers.
        """

    async def partitions(self, topic: str) -> Collection[TopicPartition]:
        """Return the topic's partitions; raise `BrokerUnavailable`, `TopicMissing`."""

    async def topic_id(self, topic: str) -> str | None:
        """Return the topic's id, new with each creation; None if the brokers have no topic ids.

        The leaders of its partitions are asked, because they serve the records.

        Raises:
            BrokerUnavailable: No broker replies, or the client is not authorized.
            TopicMissing: The topic does not exist.
        """

    async def committed(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset]:
        """Return the group's committed offsets of those partitions that have one."""

    async def commit(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Commit offsets under the group's name; raise `BrokerUnavailable`."""

    def jumps(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return position resets since the last call: partition -> (old offset, new offset).

        Forward: retention deleted the records between. Back: the log was truncated, or the topic
        recreated.
        """

    def progress(self) -> ReadProgress:
        """Return what was read so far, and what is known to be left."""

    def passed(self) -> Mapping[TopicPartition, int]:
        """Return positions behind offsets without a record, each once: partition -> position.

        All records before the position were returned.
        """

    def undecodable(self) -> Mapping[TopicPartition, UndecodableBatch]:
        """Return the batches that were given up, or are large, since the last call.

        Their partitions are stopped: only a new start continues, behind the batch, or at a large
        one that is allowed.
        """

    def allow_large(self, partition: TopicPartition, before: int) -> None:
        """Decode large batches before this offset, until the partition is stopped."""

    def stuck(self) -> Mapping[TopicPartition, str]:
        """Return the started partitions whose next batch cannot be decoded, and why."""
