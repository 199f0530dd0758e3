"""Kafka's console consumer: a program of others that gets the assignor by its settings alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.assignor.java_members import ASSIGNOR, Programs, build_programs
from tests.integration.assignor.plans import publish, until
from tests.integration.topics import create_topic

from binwright.kafka.client import ClusterClient
from binwright.local.cache import cache_dir
from binwright.local.jars import ensure_jars, ivy_fetch, parse_lock
from binwright.local.java import find_java
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.decide.members import GroupDescription
from binwright.scaler.groups import ConsumerGroups

pytestmark = pytest.mark.integration

LOCK = Path(__file__).with_name("tools.lock")
MAIN = "org.apache.kafka.tools.consumer.ConsoleConsumer"


async def tools_jars() -> tuple[Path, ...]:
    """Return the jars of Kafka's console tools, fetched once."""
    jars = parse_lock(LOCK.read_text())
    directory = cache_dir() / "jars" / "kafka-tools"
    return await ensure_jars(jars, directory, ivy_fetch(await find_java(), "the test's", print))


@contextlib.asynccontextmanager
async def console_consumer(
    programs: Programs, servers: str, topic: str, name: str
) -> AsyncIterator[None]:
    properties = {
        "client.id": name,
        "heartbeat.interval.ms": "300",
        "partition.assignment.strategy": ASSIGNOR,
    }
    more = [f"--command-property={key}={value}" for key, value in properties.items()]
    arguments = ("--bootstrap-server", servers, "--topic", topic, "--group", topic, *more)
    process = await asyncio.create_subprocess_exec(
        *programs.command(MAIN, *arguments),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.nightly
async def test_console_consumers_read_what_is_planned(broker: str, tmp_path: Path) -> None:
    kafka, topic = KafkaSettings(bootstrap_servers=broker), "console-group"
    await create_topic(kafka, topic, 5)
    every = [TopicPartition(topic, number) for number in range(5)]
    plan = [every[:1], every[1:]]
    await publish(kafka, topic, plan)
    programs = await build_programs(tmp_path, await tools_jars())
    seen = [GroupDescription("", "")]

    def owned() -> list[frozenset[TopicPartition]]:
        return sorted((member.owned for member in seen[-1].members.values()), key=len)

    async def watch() -> None:
        async with ClusterClient(kafka) as cluster:
            while True:
                with contextlib.suppress(BrokerUnavailable):  # a new broker has no coordinator yet
                    seen.append(await ConsumerGroups(cluster).describe(topic))
                await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    async with (
        console_consumer(programs, broker, topic, "one"),
        console_consumer(programs, broker, topic, "two"),
    ):
        await until(lambda: owned() == [frozenset(each) for each in plan], lambda: seen[-1])
    watching.cancel()
    await asyncio.wait([watching])
    assert "binwright" in {description.protocol for description in seen}
