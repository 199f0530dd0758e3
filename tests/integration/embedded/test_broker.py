"""A broker keeps its data and its address from one start to the next."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from confluent_kafka import Producer

from binwright.local.kafka import EmbeddedBroker, run_broker

pytestmark = pytest.mark.integration

TOPIC = "kept"
DEADLINE_S = 60.0


async def create(servers: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(TOPIC, 1, 1)])
    finally:
        await admin.close()


async def send(servers: str, value: bytes) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(TOPIC, value)


async def values(servers: str, count: int) -> list[bytes]:
    async with (
        asyncio.timeout(DEADLINE_S),
        AIOKafkaConsumer(
            TOPIC, bootstrap_servers=servers, auto_offset_reset="earliest"
        ) as consumer,
    ):
        return [(await consumer.getone()).value for _ in range(count)]


async def restarted(
    broker: EmbeddedBroker, end: Callable[[], Awaitable[None]], value: bytes
) -> None:
    before = broker.pid
    await end()
    assert not psutil.pid_exists(before or 0)
    await broker.start()
    assert broker.pid not in {None, before}
    await send(broker.bootstrap_servers, value)


@pytest.mark.usefixtures("hostile_environment")
async def test_records_outlive_a_stop_a_kill_and_a_new_broker(awkward: Path) -> None:
    async with run_broker(awkward) as broker:
        servers = broker.bootstrap_servers
        await create(servers)
        await send(servers, b"first")
        await restarted(broker, broker.stop, b"after a stop")
        await restarted(broker, broker.kill, b"after a kill")
        assert await values(servers, 3) == [b"first", b"after a stop", b"after a kill"]
    port = int(servers.rpartition(":")[2])
    async with run_broker(awkward, port=port) as again:
        assert again.bootstrap_servers == servers
        assert (await values(servers, 3))[2] == b"after a kill"


async def test_a_setting_of_the_callers_wins(tmp_path: Path) -> None:
    message: list[str] = []
    settings = {"auto.create.topics.enable": "true"}
    async with run_broker(tmp_path, settings=settings, progress=message.append) as broker:
        # Not by aiokafka: where the intake is loaded, it asks brokers to make no topics.
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("not-there", b"and made by this")
        assert await asyncio.to_thread(producer.flush, DEADLINE_S) == 0
    assert message[0] == "starting the Kafka broker"
    assert message[1].startswith("the Kafka broker is ready after ")
