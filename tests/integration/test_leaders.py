"""Leaders that die, on three real brokers: what is read, and what is said on control topics."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.topics import create_topic

from binwright.consumer.read.data_reader import KafkaDataReader
from binwright.kafka.client import ClusterClient, client_options
from binwright.kafka.control_records import METADATA_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.kafka import EmbeddedBroker
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import NO_RECORDS, Reader
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.testing.records import in_rows

from .conftest import BackgroundLoop

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
RECORDS = 300
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def kafka(brokers: tuple[EmbeddedBroker, ...]) -> KafkaSettings:
    servers = ",".join(broker.bootstrap_servers for broker in brokers)
    return KafkaSettings(bootstrap_servers=servers, request_timeout_s=30)


@asynccontextmanager
async def without_leader(
    background_loop: BackgroundLoop,
    brokers: tuple[EmbeddedBroker, ...],
    kafka: KafkaSettings,
    topic: str,
) -> AsyncIterator[None]:
    """Kill the broker that leads partition 0, until another one leads; start it at the end."""
    async with ClusterClient(kafka) as cluster:
        was = (await cluster.leaders(topic))[0]
        await background_loop.run(brokers[was - 1].kill())
        try:
            while (await cluster.leaders(topic))[0] in {was, -1}:  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(0.1)
            yield
        finally:
            await background_loop.run(brokers[was - 1].start())


async def make(kafka: KafkaSettings, topic: str) -> None:
    await create_topic(kafka, topic, 1, 3, {"min.insync.replicas": "2"})


async def test_a_reader_continues_after_a_leader_dies(
    background_loop: BackgroundLoop, brokers: tuple[EmbeddedBroker, ...], kafka: KafkaSettings
) -> None:
    await make(kafka, ORDERS.topic)
    halfway = asyncio.Event()

    async def write() -> None:
        options = client_options(kafka)
        async with AIOKafkaProducer(**options, acks="all", enable_idempotence=True) as producer:
            for number in range(RECORDS):
                await producer.send_and_wait(ORDERS.topic, b"%d" % number, partition=0)
                if number == RECORDS // 2:
                    halfway.set()

    async with asyncio.timeout(DEADLINE_S), KafkaDataReader(kafka, "g") as intake:
        await intake.start(ORDERS, 0)
        writing = asyncio.create_task(write())
        read: list[tuple[int, bytes | None]] = []

        async def read_all() -> None:
            while len(read) < RECORDS:
                try:
                    found = await intake.fetch(1 << 20, 0.5)
                except BrokerUnavailable:
                    continue  # it has told; the next call goes on
                read.extend(
                    (record.offset, record.value)
                    for record in in_rows([found.get(ORDERS, NO_RECORDS)])
                )

        reading = asyncio.create_task(read_all())
        await halfway.wait()
        async with without_leader(background_loop, brokers, kafka, ORDERS.topic):
            await asyncio.gather(writing, reading)
        assert read == [(number, b"%d" % number) for number in range(RECORDS)]
        assert intake.jumps() == {}


async def test_a_control_topic_is_written_and_read_while_its_leader_dies_and_it_grows(
    background_loop: BackgroundLoop, brokers: tuple[EmbeddedBroker, ...], kafka: KafkaSettings
) -> None:
    topic = "group.metadata"
    async with asyncio.timeout(DEADLINE_S), KafkaControlTopics(kafka) as bus:
        await bus.ensure(topic, 2, METADATA_CONFIG)
        publish = partial(bus.publish, topic, 0, b"k")
        reader = await bus.reader(topic, 0, 0)
        first = [await publish(b"%d" % number) for number in range(20)]
        async with without_leader(background_loop, brokers, kafka, topic):
            then = [await publish(b"%d" % number) for number in range(20, 40)]
            await bus.ensure(topic, 5, METADATA_CONFIG)
            assert await bus.partitions(topic) == 5
            assert await bus.publish(topic, 4, b"k", b"to a new slot") == 0
        values = await read_until(reader, b"39")
        await reader.close()
    assert [*first, *then] == sorted({*first, *then})
    # One that is said again because its confirmation was lost stands twice, and in its place.
    once = [value for i, value in enumerate(values) if value not in values[:i]]
    assert once == [b"%d" % number for number in range(40)]


async def read_until(reader: Reader, last: bytes) -> list[bytes | None]:
    values: list[bytes | None] = []
    while last not in values:
        values += [record.value for record in await reader.read(1.0)]
    return values
