"""The `Bus` over Kafka: one idempotent producer, one consumer for all partitions read."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Self

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.ports import TopicFacts
from binwright.shell.broker import (
    CLOSE_S,
    EARLIEST,
    LATEST,
    Cluster,
    client_options,
    stop_client,
    translated,
    unreachable,
)
from binwright.shell.log_offsets import LogOffsets
from binwright.shell.reader import KafkaReader, check_within
from binwright.shell.settings import KafkaSettings
from binwright.shell.shared_consumer import SharedConsumer
from binwright.shell.topics import describe_topic, ensure_topic

log = structlog.get_logger()

LARGEST_RECORD = 1 << 20
"""Before compression. What is larger is cut into parts (`core.parts`) before it comes here."""
RETRY_S = 0.1
FETCH_WAIT_MS = 100
"""So long a new reader may wait: what is being fetched for the others ends first."""
GATHERED_BYTES = 1 << 20  # enough to answer a fetch that gathers


class KafkaBus:
    """Control topics on Kafka; see `Bus`. An async context manager.

    A record whose `publish` timed out is still being sent: it may appear later, yet before all
    that this bus publishes after it. Only the rare faults that break a producer (a record refused,
    the brokers forgot who it is) cost a new producer, and then even that order.
    """

    def __init__(self, kafka: KafkaSettings, *, gather_ms: int = 0) -> None:
        """Use these connection settings.

        Args:
            kafka: Where and how.
            gather_ms: How long a fetch waits for more than it has. For who reads hundreds of
                partitions: each fetch names them all.
        """
        self._kafka = kafka
        self._gather_ms = gather_ms
        self._options = client_options(kafka)
        self._cluster = Cluster(kafka)
        self._offsets = LogOffsets(self._cluster, kafka.request_timeout_s)
        self._producer: AIOKafkaProducer | None = None
        self._broken: AIOKafkaProducer | None = None
        self._opening = asyncio.Lock()
        self._shared: list[SharedConsumer] = []
        self._sharing = asyncio.Lock()
        self._turns: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            BrokerUnavailable: Kafka cannot be reached; says why and what to check.
        """
        try:
            await self._sender()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send what is pending, for some seconds at most, and let go of connections."""
        for shared in self._shared:
            await shared.close()
        self._shared.clear()
        if self._producer:
            await _let_go(self._producer)
        await self._cluster.close()

    async def publish(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        """Append durably, in the order of calls, and return the offset; see `Bus.publish`."""
        with translated(f"publish to {topic}-{partition}"):
            async with asyncio.timeout(self._kafka.request_timeout_s):
                offset = await self._published(topic, partition, key, value)
        if offset < 0:  # Kafka knows the record as a repetition, but no longer where it put it
            raise BrokerUnavailable(f"publish to {topic}-{partition}: done, its offset is unknown")
        return offset

    async def _published(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        producer = None
        try:
            # `send` may wait, for metadata or for room: without turns later calls could pass.
            async with self._turns[topic, partition]:
                producer = await self._sender()
                await self._found(producer, topic, partition)
                sent = await producer.send(topic, value, key, partition)
            return int((await sent).offset)
        except KafkaError:
            # What failed has left a gap in the sequence: Kafka would refuse all that follows.
            self._broken = producer
            raise

    async def _sender(self) -> AIOKafkaProducer:
        async with self._opening:
            if self._producer and self._producer is self._broken:
                log.warning("producer.replaced")
                await _let_go(self._producer)
                self._producer = None
            if not self._producer:
                producer = AIOKafkaProducer(
                    **self._options,
                    enable_idempotence=True,
                    compression_type="lz4",
                    max_request_size=LARGEST_RECORD,
                )
                await _start(producer, self._kafka)
                self._producer = producer
            return self._producer

    async def _found(self, producer: AIOKafkaProducer, topic: str, partition: int) -> None:
        """Make the producer know the partition; it may be younger than what it knows."""
        cluster = producer.client.cluster
        if partition in (cluster.partitions_for_topic(topic) or ()):
            return
        # Asked by ourselves first: a producer that asks about a topic may thereby create it.
        if partition not in await self._cluster.leaders(topic):
            raise TopicMissing(f"there is no partition {topic}-{partition}")
        while partition not in await producer.partitions_for(topic):
            await producer.client.force_metadata_update()
            await asyncio.sleep(RETRY_S)

    async def end(self, topic: str, partition: int) -> int:
        """Return the offset of the next record; see `Bus.end`."""
        return await self._offsets.look_up(topic, partition, LATEST)

    async def reader(self, topic: str, partition: int, offset: int) -> KafkaReader:
        """Read on from `offset`, or from the oldest record if that is later; see `Bus.reader`.

        Raises:
            BrokerUnavailable: Kafka does not answer.
            TopicMissing: There is no such partition, or it ends before `offset`.
        """

        async def bounds() -> tuple[int, int]:
            return (
                await self._offsets.look_up(topic, partition, EARLIEST),
                await self._offsets.look_up(topic, partition, LATEST),
            )

        first, end = await bounds()
        theirs = TopicPartition(topic, partition)
        check_within(theirs, offset, end)
        async with self._sharing:
            shared = next((each for each in self._shared if each.takes(theirs)), None)
            if shared is None:
                shared = SharedConsumer(self._started_consumer)
                await shared.open()
                self._shared.append(shared)
            place = shared.add(theirs, max(first, offset))
        patience_s = self._kafka.request_timeout_s
        return KafkaReader(shared, theirs, place, bounds, patience_s, self._unused)

    @property
    def clients(self) -> int:
        """How many clients read: one, unless they are many or a partition has two readers."""
        return len(self._shared)

    async def _started_consumer(self) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            **self._options,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=self._gather_ms or FETCH_WAIT_MS,
            fetch_min_bytes=GATHERED_BYTES if self._gather_ms else 1,
        )
        await _start(consumer, self._kafka)
        return consumer

    async def _unused(self, shared: SharedConsumer) -> None:
        if not shared and shared in self._shared:
            self._shared.remove(shared)
            await shared.close()

    async def partitions(self, topic: str) -> int:
        """Return how many partitions the topic has, 0 without a topic; see `Bus.partitions`."""
        return len(await self._cluster.leaders(topic))

    async def topic_id(self, topic: str) -> str | None:
        """Return which of all topics that ever had this name it is; see `Bus.topic_id`."""
        return await self._cluster.topic_id(topic)

    async def brokers(self) -> int:
        """Return how many brokers are alive; raise `BrokerUnavailable`."""
        return await self._cluster.brokers()

    async def ensure(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create the topic or grow it, and wait until every partition is led; see `Bus.ensure`.

        Raises:
            BrokerUnavailable: Kafka refuses, or is not done within the request timeout.
        """
        await ensure_topic(self._cluster, self._kafka, topic, partitions, config)

    async def describe(self, topic: str, names: Collection[str]) -> TopicFacts:
        """Return how a topic is set up; see `Bus.describe`."""
        return await describe_topic(self._cluster, topic, names)


async def _start(client: Any, kafka: KafkaSettings) -> None:
    try:
        async with asyncio.timeout(kafka.request_timeout_s):
            await client.start()
    except BaseException as exc:
        await stop_client(client)
        if isinstance(exc, (KafkaError, OSError)):  # a time-out is an OSError
            raise await unreachable(kafka, exc) from exc
        raise


async def _let_go(producer: AIOKafkaProducer) -> None:
    try:
        async with asyncio.timeout(CLOSE_S):
            await producer.stop()
    except TimeoutError:
        # An idempotent batch never expires by itself: its sender would wait for Kafka for ever.
        # Sender first: a batch it still holds must not fail under its hands.
        log.warning("producer.abandoned", waited_s=CLOSE_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await producer._sender.close()  # noqa: SLF001
        producer._message_accumulator.fail_all(KafkaError("given up at the end"))  # noqa: SLF001
        await producer.client.close()
