"""Control topics on Kafka: one idempotent producer, consumers that share the partitions read."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from binwright.kafka.aiokafka_patches import abandon_producer
from binwright.kafka.client import (
    CLOSE_S,
    EARLIEST,
    LATEST,
    ClusterClient,
    client_options,
    start_client,
    translate_errors,
)
from binwright.kafka.leaders import LogOffsets
from binwright.kafka.readers import KafkaReader, SharedConsumer, check_within
from binwright.kafka.topics import describe_topic, ensure_topic, oldest_records
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import Record, TopicDescription
from binwright.runtime.logs import log
from binwright.runtime.settings.kafka import KafkaSettings

PRODUCER_REPLACED = LogEvent.warning(
    "producer.replaced", "A Kafka producer failed and was replaced by a new one."
)
PRODUCER_ABANDONED = LogEvent.warning(
    "producer.abandoned", "A Kafka producer did not close in time and was left behind."
)

LARGEST_RECORD = 1 << 20
"""Largest record, bytes before compression; larger messages are split by `protocol.wire`."""
RETRY_S = 0.1
FETCH_WAIT_MS = 250
"""Longest wait of a fetch that finds nothing, ms; a new reader's first fetch may wait as long.

A fetch takes 0.5 ms of a consumer, and one with little to do does nothing dearer.
"""
GATHERED_BYTES = 1 << 20  # enough to answer a fetch that gathers


class KafkaControlTopics:
    """Control topics on Kafka; see the port `ControlTopics`. An async context manager.

    A record whose `publish` timed out is still being sent: it may be appended later, but before all
    that is published here after it. Rare faults (a refused record, an expired producer id) replace
    the producer; only then this order is lost.
    """

    def __init__(
        self, kafka: KafkaSettings, *, fetch_wait_ms: int = 0, read_only: bool = False
    ) -> None:
        """Use these connection settings.

        Args:
            kafka: The connection.
            fetch_wait_ms: How long a broker gathers records before it answers a fetch; 0: it
                answers at once. For readers of hundreds of partitions: each fetch names them all.
            read_only: Nothing is published, so no producer is opened: to open one takes the right
                to write to some topic.
        """
        self._kafka = kafka
        self._fetch_wait_ms = fetch_wait_ms
        self._read_only = read_only
        self._options = client_options(kafka)
        self._cluster = ClusterClient(kafka)
        self._offsets = LogOffsets(self._cluster, kafka.request_timeout_s)
        self._producer: AIOKafkaProducer | None = None
        self._broken: AIOKafkaProducer | None = None
        self._opening = asyncio.Lock()
        self._shared: list[SharedConsumer] = []
        self._sharing = asyncio.Lock()
        self._order: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            BrokerUnavailable: Kafka cannot be reached; the message says why and what to check.
        """
        try:
            await (self._cluster.__aenter__() if self._read_only else self._sender())
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send what is pending, within `CLOSE_S`, and close the connections."""
        for shared in self._shared:
            await shared.close()
        self._shared.clear()
        if self._producer:
            await _close_producer(self._producer)
        await self._cluster.close()

    async def publish(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        """Append durably, in the order of calls, and return the offset; see the port."""
        with translate_errors(f"publish to {topic}-{partition}"):
            async with asyncio.timeout(self._kafka.request_timeout_s):
                offset = await self._published(topic, partition, key, value)
        if offset < 0:  # Kafka recognises a repeated record, but no longer knows its offset
            raise BrokerUnavailable(f"publish to {topic}-{partition}: done, its offset is unknown")
        return offset

    async def _published(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        producer = None
        try:
            # `send` may wait for metadata or for room: without the lock a later call could pass.
            async with self._order[topic, partition]:
                producer = await self._sender()
                await self._await_metadata(producer, topic, partition)
                sent = await producer.send(topic, value, key, partition)
            return int((await sent).offset)
        except KafkaError:
            # The failed record left a gap in the sequence: Kafka would refuse all that follows.
            self._broken = producer
            raise

    async def _sender(self) -> AIOKafkaProducer:
        async with self._opening:
            if self._producer and self._producer is self._broken:
                log(PRODUCER_REPLACED)
                await _close_producer(self._producer)
                self._producer = None
            if not self._producer:
                producer = AIOKafkaProducer(
                    **self._options,
                    enable_idempotence=True,
                    compression_type="lz4",
                    max_request_size=LARGEST_RECORD,
                )
                await start_client(producer, self._kafka)
                self._producer = producer
            return self._producer

    async def _await_metadata(self, producer: AIOKafkaProducer, topic: str, partition: int) -> None:
        """Wait until the producer's metadata contains the partition, which may be new."""
        cluster = producer.client.cluster
        if partition in (cluster.partitions_for_topic(topic) or ()):
            return
        # Checked first: a metadata request of the producer could create the topic.
        if partition not in await self._cluster.leaders(topic):
            raise TopicMissing(f"there is no partition {topic}-{partition}")
        await producer.client.force_metadata_update()
        while partition not in await producer.partitions_for(topic):
            await asyncio.sleep(RETRY_S)
            await producer.client.force_metadata_update()

    async def end(self, topic: str, partition: int) -> int:
        """Return the offset of the next record; see the port."""
        return await self._offsets.look_up(topic, partition, LATEST)

    async def offset_at(self, topic: str, partition: int, at_ms: int) -> int:
        """Return the offset of the first record of this time or later, or the end; see the port."""
        offset = await self._offsets.look_up(topic, partition, max(0, at_ms))
        return await self.end(topic, partition) if offset < 0 else offset

    async def reader(self, topic: str, partition: int, offset: int) -> KafkaReader:
        """Read from `offset` on, or from the oldest record if that is later; see the port.

        Raises:
            BrokerUnavailable: Kafka does not answer.
            TopicMissing: There is no such partition, or it ends before `offset`.
        """

        async def bounds() -> tuple[int, int]:
            first = self._offsets.look_up(topic, partition, EARLIEST)
            return await asyncio.gather(first, self._offsets.look_up(topic, partition, LATEST))

        first, end = await bounds()
        key = TopicPartition(topic, partition)
        check_within(key, offset, end)
        async with self._sharing:
            shared = next((each for each in self._shared if each.has_room_for(key)), None)
            if shared is None:
                shared = SharedConsumer(self._start_consumer)
                await shared.open()
                self._shared.append(shared)
            buffer = shared.add(key, max(first, offset))
        patience_s = self._kafka.request_timeout_s
        return KafkaReader(shared, key, buffer, bounds, patience_s, self._close_unused)

    @property
    def clients(self) -> int:
        """How many clients read: more than one for many partitions, or two readers of the same."""
        return len(self._shared)

    async def _start_consumer(self) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            **self._options,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=self._fetch_wait_ms or FETCH_WAIT_MS,
            fetch_min_bytes=GATHERED_BYTES if self._fetch_wait_ms else 1,
        )
        await start_client(consumer, self._kafka)
        return consumer

    async def _close_unused(self, shared: SharedConsumer) -> None:
        if not shared and shared in self._shared:
            self._shared.remove(shared)
            await shared.close()

    async def oldest(self, topic: str, partition: int) -> Sequence[Record] | None:
        """Return some of a partition's oldest records; see the port."""
        first, end = await asyncio.gather(
            self._offsets.look_up(topic, partition, EARLIEST), self.end(topic, partition)
        )
        return [] if first >= end else await oldest_records(self._cluster, topic, partition, first)

    async def partitions(self, topic: str) -> int:
        """Return how many partitions the topic has, 0 without a topic; see the port."""
        return len(await self._cluster.leaders(topic))

    async def topic_id(self, topic: str) -> str | None:
        """Return the topic's id; see the port."""
        return await self._cluster.topic_id(topic)

    async def brokers(self) -> int:
        """Return how many brokers are alive; raise `BrokerUnavailable`."""
        return await self._cluster.brokers()

    async def ensure(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create the topic or add partitions, and wait for their leaders; see the port.

        Raises:
            BrokerUnavailable: Kafka refuses, or is not done within the request timeout.
        """
        await ensure_topic(self._cluster, self._kafka, topic, partitions, config)

    async def describe(self, topic: str, names: Collection[str]) -> TopicDescription:
        """Return how a topic is set up; see the port."""
        return await describe_topic(self._cluster, topic, names)


async def _close_producer(producer: AIOKafkaProducer) -> None:
    try:
        async with asyncio.timeout(CLOSE_S):
            await producer.stop()
    except TimeoutError:
        log(PRODUCER_ABANDONED, waited_s=CLOSE_S)
        await abandon_producer(producer, CLOSE_S)
