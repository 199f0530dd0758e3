"""The offsets that topics still hold, as a plain reader gets them, and ranges of offsets."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import NoError
from aiokafka.protocol.admin import DescribeConfigsRequest

from binwright.kafka.client import ClusterClient, client_options, stop_client, translate_errors
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.runtime.settings.kafka import KafkaSettings

POLL_S = 0.2
_TOPIC, _POLICY = 2, "cleanup.policy"  # a kind of resource in Kafka's protocol, and a name there
FETCH_WAIT_MS = 50  # only existing records are read: a fetch never waits for new ones
AT_ONCE = 10_000  # offsets whose records are in memory at a time
MAX_LISTED = 20
"""Ranges or offsets listed in a result; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets from `first` to `last`, both included."""

    first: int
    last: int

    def __len__(self) -> int:
        """Return how many."""
        return self.last - self.first + 1

    def __str__(self) -> str:
        """Return `5` or `5-9`."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(slots=True)
class Tally:
    """Counts offsets added in rising order, and lists the first ranges they form."""

    count: int = 0
    ranges: list[Range] = field(default_factory=list)
    _last: int = -1
    _full: bool = False

    def add(self, offset: int) -> None:
        """Count one offset, higher than all before."""
        self.count += 1
        if offset == self._last + 1 and self.ranges and not self._full:
            self.ranges[-1] = Range(self.ranges[-1].first, offset)
        elif len(self.ranges) < MAX_LISTED:
            self.ranges.append(Range(offset, offset))
        else:
            self._full = True
        self._last = offset


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeScan:
    """The records in ranges of offsets, as far as they were read in time."""

    records: Tally  # offsets that carry a record, which the table should have
    unread: int  # offsets that were not read
    expired: int = 0  # records that are older than what the table keeps
    skipped: int = 0  # records that the table skips: without a value, or by a filter


LeftOut = Callable[[TopicPartition, Sequence[Record]], Awaitable[Collection[int]]]
"""Returns the offsets of these records that a table leaves out by its filters."""


async def none_left_out(_partition: TopicPartition, _records: Sequence[Record]) -> Collection[int]:
    """Fit `LeftOut`: the table has no filter."""
    return ()


def _parts(whole: Range) -> Iterator[Range]:
    """Yield a range in parts of which all records are in memory at once."""
    for first in range(whole.first, whole.last + 1, AT_ONCE):
        yield Range(first, min(first + AT_ONCE - 1, whole.last))


class TopicExtents:
    """Bounds and records of topics. See `open_topic_extents`."""

    def __init__(self, cluster: ClusterClient, consumer: AIOKafkaConsumer) -> None:
        self._cluster, self._consumer = cluster, consumer

    async def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return partition -> first offset kept, and end.

        With `read_committed` the end is that of the last completed transaction.

        Raises:
            TopicMissing: The topic does not exist.
            BrokerUnavailable: Kafka does not answer.
        """
        partitions = sorted(await self._cluster.leaders(topic))
        if not partitions:
            raise TopicMissing(f"there is no topic {topic}")
        wanted = [KafkaPartition(topic, number) for number in partitions]
        with translate_errors(f"ask for the offsets of {topic}"):
            ends = await self._consumer.end_offsets(wanted)
            starts = await self._consumer.beginning_offsets(wanted)
        # Retention may move the start to the end between the two requests.
        return {p.partition: (min(starts[p], ends[p]), ends[p]) for p in wanted}

    async def topic_id(self, topic: str) -> str | None:
        """Return the topic's id; None if this Kafka has none (before 2.8)."""
        return await self._cluster.topic_id(topic)

    async def compacted(self, topic: str) -> bool | None:
        """Whether the topic is compacted; None: Kafka does not return its policy.

        Raises:
            BrokerUnavailable: Kafka does not answer.
        """
        request = DescribeConfigsRequest([(_TOPIC, topic, [_POLICY])])
        response: Any = await self._cluster.send_to_controller(request)
        (code, _, _, _, entries) = response.resources[0]
        config = {name: value for name, value, *_ in entries}
        if code != NoError.errno or _POLICY not in config:
            return None
        return "compact" in config[_POLICY]

    async def scan_ranges(
        self,
        partition: TopicPartition,
        ranges: Iterable[Range],
        until: float,
        kept_since_ms: int | None = None,
        *,
        skips_tombstones: bool = False,
        left_out: LeftOut = none_left_out,
    ) -> RangeScan:
        """Read `ranges`, in rising order, until the loop's clock shows `until`.

        Markers of transactions, aborted records, and offsets that compaction or retention removed
        hold no record. Records from before `kept_since_ms` are counted apart, and so are those
        without a value if the table `skips_tombstones`, and those that are `left_out`.

        Raises:
            BrokerUnavailable: Kafka refuses. One that does not answer uses up the time.
        """
        tally, expired, skipped, unread = Tally(), Tally(), Tally(), 0
        wanted = list[Record]()

        def take(record: Any) -> None:
            # As in the table, where a timestamp that is none, or out of range, is NULL: it stays.
            old = kept_since_ms is not None and 0 <= record.timestamp < kept_since_ms
            is_skipped = skips_tombstones and record.value is None
            if old or is_skipped:
                (expired if old else skipped).add(record.offset)
            else:
                wanted.append(_record(record))

        for each in (part for whole in ranges for part in _parts(whole)):
            with translate_errors(f"read {partition}"):
                unread += await self._read(KafkaPartition(*partition), each, take, until)
            left = await left_out(partition, wanted)
            for record in wanted:
                (skipped if record.offset in left else tally).add(record.offset)
            wanted.clear()
        return RangeScan(records=tally, unread=unread, expired=expired.count, skipped=skipped.count)

    async def records(self, partition: TopicPartition, wanted: Range, until: float) -> list[Record]:
        """Return the records of a range.

        Raises:
            BrokerUnavailable: Kafka refuses, or they were not read by `until`, of the loop's clock.
        """
        records: list[Record] = []
        with translate_errors(f"read {partition}"):
            source = KafkaPartition(*partition)
            unread = await self._read(source, wanted, lambda r: records.append(_record(r)), until)
        if unread:
            raise BrokerUnavailable(f"{unread} records of {partition} were not read in time")
        return records

    async def _read(
        self, source: KafkaPartition, wanted: Range, take: Callable[[Any], None], until: float
    ) -> int:
        """Take the records of a range; return how many of its offsets were not read in time."""
        loop, position = asyncio.get_running_loop(), wanted.first
        if loop.time() >= until:
            return len(wanted)
        self._consumer.assign([source])
        self._consumer.seek(source, wanted.first)
        try:
            async with asyncio.timeout_at(until):
                while position <= wanted.last:
                    batches = await self._consumer.getmany(source, timeout_ms=round(POLL_S * 1000))
                    for record in batches.get(source, ()):
                        if position <= record.offset <= wanted.last:
                            take(record)
                    position = await self._consumer.position(source)
        except TimeoutError:
            return max(0, wanted.last + 1 - position)
        return 0


def _record(read: Any) -> Record:
    headers = tuple(read.headers)
    return Record(read.offset, read.timestamp, read.key, read.value, read.timestamp_type, headers)


@asynccontextmanager
async def open_topic_extents(kafka: KafkaSettings, isolation: str) -> AsyncIterator[TopicExtents]:
    """Connect to Kafka as a plain reader: no group, nothing committed.

    Args:
        kafka: How to reach it.
        isolation: `read_committed` or `read_uncommitted`.

    Raises:
        BrokerUnavailable: Kafka does not answer; says what to check.
    """
    async with ClusterClient(kafka) as cluster:
        # Created once Kafka answers: a consumer that is never started cannot be closed cleanly.
        consumer = AIOKafkaConsumer(
            **client_options(kafka),
            enable_auto_commit=False,
            auto_offset_reset="earliest",  # where retention has removed the offset meanwhile
            isolation_level=isolation,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        try:
            with translate_errors("connect to Kafka"):
                await consumer.start()
            yield TopicExtents(cluster, consumer)
        finally:
            await stop_client(consumer)
