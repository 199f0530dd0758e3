"""The `Bus` over Kafka: one idempotent producer, one consumer per partition read."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as Partition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.errors import (
    InvalidPartitionsError,
    KafkaConnectionError,
    KafkaError,
    NoError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    for_code,
)

from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.ports import Record
from binwright.shell.broker import (
    EARLIEST,
    LATEST,
    NOBODY,
    Cluster,
    client_options,
    translated,
    unreachable,
)
from binwright.shell.settings import KafkaSettings

log = structlog.get_logger()

REPLICATION = 3
"""Of the topics we create, where there are so many brokers."""
STEP = 4000
"""Partitions made in one request: Kafka refuses requests that would append too much at once."""
LARGEST_RECORD = 32 << 20
"""Before compression: the measurement of a topic with 100,000 partitions. The broker's own limit
(1 MiB unless set) is on what is left after it."""
READ_RECORDS = 1000
CLOSE_S = 5.0
RETRY_S = 0.1


class KafkaBus:
    """Control topics on Kafka; see `Bus`. An async context manager.

    `publish` keeps its callers' order. A record whose `publish` timed out is still being sent: it
    may appear later, before whatever this bus publishes after it. The rare faults that break a
    producer (its broker forgot it, a record was refused) cost a new producer; only then might a
    record that was given up on appear after newer ones.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._options = client_options(kafka)
        self._cluster = Cluster(kafka)
        self._producer: AIOKafkaProducer | None = None
        self._broken = False
        self._opening = asyncio.Lock()
        self._turns: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            BrokerUnavailable: Kafka cannot be reached; says why and what to check.
        """
        await self._cluster.__aenter__()
        try:
            await self._sender()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send what is pending, for some seconds at most, and let go of connections."""
        if self._producer:
            await _stop(self._producer)
        await self._cluster.close()

    # --- writing -------------------------------------------------------------------------------

    async def publish(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        """Append durably, in the order of calls, and return the offset; see `Bus.publish`."""
        with translated(f"publish to {topic}-{partition}"):
            async with asyncio.timeout(self._kafka.request_timeout_s):
                # `send` may wait (for metadata, for room): without turns, later calls could pass.
                async with self._turns[topic, partition]:
                    producer = await self._sender()
                    await self._found(producer, topic, partition)
                    sent = await producer.send(topic, value, key, partition)
                try:
                    offset: int = (await sent).offset
                except KafkaError:
                    self._broken = True  # the sequence has a gap now: all that follows would fail
                    raise
        if offset < 0:
            raise BrokerUnavailable(f"publish to {topic}-{partition}: done, but the offset is lost")
        return offset

    async def _sender(self) -> AIOKafkaProducer:
        async with self._opening:
            if self._producer and self._broken:
                log.warning("producer.replaced")
                await _stop(self._producer)
                self._producer = None
            if self._producer is None:
                self._broken = False
                producer = AIOKafkaProducer(
                    **self._options,
                    enable_idempotence=True,
                    compression_type="lz4",
                    max_request_size=LARGEST_RECORD,
                )
                self._producer = await _started(producer, self._kafka)
            return self._producer

    async def _found(self, producer: AIOKafkaProducer, topic: str, partition: int) -> None:
        known = producer.client.cluster.partitions_for_topic(topic) or ()
        while partition not in known:
            # Asked first by ourselves: a producer that asks about a topic may thereby create it.
            if partition >= await self.partitions(topic):
                raise TopicMissing(f"there is no partition {topic}-{partition}")
            known = await producer.partitions_for(topic)
            if partition not in known:
                await producer.client.force_metadata_update()

    # --- reading -------------------------------------------------------------------------------

    async def end(self, topic: str, partition: int) -> int:
        """Return the offset of the next record; see `Bus.end`."""
        return await self._offset(topic, partition, LATEST)

    async def _offset(self, topic: str, partition: int, when: int) -> int:
        with translated(f"look up the offsets of {topic}-{partition}"):
            async with asyncio.timeout(self._kafka.request_timeout_s):
                while True:
                    leaders = await self._leaders(topic)
                    if partition not in leaders:
                        raise TopicMissing(f"there is no partition {topic}-{partition}")
                    if (leader := leaders[partition]) != NOBODY:
                        found = await self._cluster.offsets(leader, {topic: [partition]}, when)
                        if found:
                            return found[topic, partition]
                    await asyncio.sleep(RETRY_S)  # a leader is being elected

    async def reader(self, topic: str, partition: int, offset: int) -> "KafkaReader":
        """Read on from `offset`, or from the oldest record if that is later; see `Bus.reader`.

        Raises:
            BrokerUnavailable: Kafka does not answer.
            TopicMissing: There is no such partition, or it ends before `offset`.
        """
        first = await self._offset(topic, partition, EARLIEST)
        end = await self._offset(topic, partition, LATEST)
        if offset > end:
            raise TopicMissing(f"{topic}-{partition} ends at {end}, before offset {offset}")
        consumer = AIOKafkaConsumer(
            **self._options, enable_auto_commit=False, auto_offset_reset="none"
        )
        await _started(consumer, self._kafka)
        consumer.assign([Partition(topic, partition)])
        consumer.seek(Partition(topic, partition), max(offset, first))
        return KafkaReader(self, consumer, Partition(topic, partition), max(offset, first))

    # --- topics --------------------------------------------------------------------------------

    async def partitions(self, topic: str) -> int:
        """Return how many partitions the topic has, 0 without a topic; see `Bus.partitions`."""
        return len(await self._leaders(topic))

    async def _leaders(self, topic: str) -> Mapping[int, int]:
        topics = await self._cluster.topics([topic])
        if why := topics.refused.get(topic):
            raise BrokerUnavailable(f"Kafka tells nothing about topic {topic}: {why}")
        return topics.leaders.get(topic, {})

    async def brokers(self) -> int:
        """Return how many brokers are alive; raise `BrokerUnavailable`."""
        return await self._cluster.brokers()

    async def replication(self) -> int:
        """Return how many replicas the topics get that we create here."""
        return self._kafka.replication_factor or min(REPLICATION, await self.brokers())

    async def ensure(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create the topic or grow it, and wait until each partition has a leader; `Bus.ensure`.

        With three replicas a write needs two of them, unless `config` says otherwise.

        Raises:
            BrokerUnavailable: Kafka refuses, or is not done within the request timeout.
        """
        with translated(f"create topic {topic} with {partitions} partitions"):
            async with asyncio.timeout(self._kafka.request_timeout_s):
                while (there := await self.partitions(topic)) < partitions:
                    await self._grow(topic, there, min(partitions, there + STEP), config)
                while NOBODY in (await self._leaders(topic)).values():
                    await asyncio.sleep(RETRY_S)

    async def _grow(self, topic: str, old: int, new: int, config: Mapping[str, str]) -> None:
        admin = await _started(AIOKafkaAdminClient(**self._options), self._kafka)
        try:
            if old:
                await admin.create_partitions({topic: NewPartitions(new)})
            else:
                await self._create(admin, topic, new, config)
            log.info("topic.grown" if old else "topic.created", topic=topic, partitions=new)
        except (TopicAlreadyExistsError, InvalidPartitionsError):
            # Somebody else was quicker, or the broker we asked has not heard of our own last step.
            await asyncio.sleep(RETRY_S)
        finally:
            await admin.close()

    async def _create(
        self, admin: AIOKafkaAdminClient, topic: str, partitions: int, config: Mapping[str, str]
    ) -> None:
        replicas = await self.replication()
        safe = {"min.insync.replicas": "2"} if replicas == REPLICATION else {}
        new = NewTopic(topic, partitions, replicas, topic_configs={**safe, **config})
        answer = await admin.create_topics([new])
        for _, code, *message in answer.topic_errors:  # it does not raise
            if code != NoError.errno:
                raise for_code(code)(*message)


class KafkaReader:
    """One partition read in order; see `Reader`.

    Broker restarts and leader moves pass silently: `read` returns nothing meanwhile. Only when the
    brokers have been silent through a request timeout's worth of waiting, `read` raises; it may be
    called again, and goes on where it was. Records that retention took first are skipped, and the
    log says so.
    """

    def __init__(
        self, bus: KafkaBus, consumer: AIOKafkaConsumer, partition: Partition, offset: int
    ) -> None:
        self._bus, self._consumer, self._partition, self._next = bus, consumer, partition, offset
        self._patience_s = bus._kafka.request_timeout_s
        self._silent_s = 0.0
