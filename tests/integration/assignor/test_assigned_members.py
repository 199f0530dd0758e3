"""A group whose members somebody else runs is assigned, and goes on when the scaler dies."""

import asyncio
import contextlib
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence

import aiohttp
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from tests.integration.assignor.plans import DEADLINE_S, until
from tests.integration.topics import create_topic

from binwright.kafka.client import ClusterClient
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.server import HOST, reserve_port
from binwright.protocol.model import TopicPartition
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.assignor import follow_plans, planned_assignor
from binwright.scaler.decide.members import GroupDescription
from binwright.scaler.groups import ConsumerGroups
from binwright.scaler.plans_topic import PLANS_CONFIG, PLANS_PARTITIONS, PLANS_TOPIC

pytestmark = pytest.mark.integration

TOPIC = "assigned-orders"  # and the group that reads it
TICK_S = 1 / 12
PER_TICK = {0: 5, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}
"""Records for each partition: 60/s and five times 12/s, so three and three is 84 and 36."""
ASSIGNED = {
    "group": TOPIC,
    "assigns": True,
    "records_per_s": 75,
    "sla_s": 5,
    "rebalance_s": 0.5,
    "commit_interval_s": 0.2,
}
VALID_S = 12
EVEN = 1.15
"""The largest load of a member, in units of the mean, of a group whose loads are even."""


async def produce(servers: str, topic: str = TOPIC, value: bytes = b"order") -> None:
    """Write the skewed load, for ever."""
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        while True:
            for partition, count in PER_TICK.items():
                for _ in range(count):
                    await producer.send(topic, value, partition=partition)
            await asyncio.sleep(TICK_S)


@contextlib.asynccontextmanager
async def member(servers: str) -> AsyncIterator[AIOKafkaConsumer]:
    """Run a member as an application does: it reads, and commits now and then."""
    async with follow_plans(TOPIC, bootstrap_servers=servers) as plans:
        consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=servers,
            group_id=TOPIC,
            heartbeat_interval_ms=300,
            auto_commit_interval_ms=200,
            partition_assignment_strategy=[planned_assignor(plans)],
        )
        await consumer.start()

        async def poll() -> None:
            while True:
                await consumer.getmany(timeout_ms=200)

        try:
            async with background_tasks(must_not_end(poll())):
                yield consumer
        finally:
            await consumer.stop()


@contextlib.asynccontextmanager
async def scaler(
    servers: str, port: int, group: str = TOPIC
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `binwright scaler` for a group, which is killed at the end at the latest."""
    settings = {
        "KAFKA__BOOTSTRAP_SERVERS": servers,
        "HEALTH__PORT": str(port),
        "SCALER__PERIOD_S": "1",
        "SCALER__ZERO_POLL_S": "1",
        "SCALER__RATE_WINDOW_S": "10",
        "SCALER__PLANS_VALID_S": str(VALID_S),
        "SCALER__GROUPS": json.dumps([{**ASSIGNED, "group": group}]),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "binwright.cli", "scaler"),
        env={**os.environ, **{f"BINWRIGHT_{name}": value for name, value in settings.items()}},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def metrics(port: int) -> Mapping[str, float]:
    """Return what the process says of the group now."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{HOST}:{port}/metrics") as response,
    ):
        text = await response.text()
    found = re.findall(r"^binwright_scaled_group_(\w+){[^}]*} (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def numbers(members: Sequence[AIOKafkaConsumer]) -> list[list[int]]:
    """Return the partitions of each member, who reads the fewest first."""
    return sorted((sorted(p.partition for p in m.assignment()) for m in members), key=len)


def generations(members: Sequence[AIOKafkaConsumer]) -> list[int]:
    """Return the generation of the group in which each member is; every rebalance raises it."""
    return [each._coordinator.generation for each in members]


class Kafka:
    """The group as its coordinator sees it."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._groups = ConsumerGroups(cluster)

    async def describe(self) -> GroupDescription:
        return await self._groups.describe(TOPIC)

    async def committed(self) -> Mapping[TopicPartition, int]:
        return (await self._groups.committed([TOPIC])).offsets[TOPIC]

    async def is_read_on(self, records: int) -> None:
        """Wait until so many records more are committed in each partition."""
        before = await self.committed()
        async with asyncio.timeout(DEADLINE_S):
            while True:
                now = await self.committed()
                if all(now[each] >= offset + records for each, offset in before.items()):
                    return
                await asyncio.sleep(0.1)


@pytest.mark.nightly
async def test_a_group_is_assigned_and_nothing_changes_for_it_when_the_scaler_dies(
    broker: str,
) -> None:
    """One group through a scaler's life and death: each part starts from the one before."""
    kafka = KafkaSettings(bootstrap_servers=broker)
    await create_topic(kafka, TOPIC, len(PER_TICK))
    async with KafkaControlTopics(kafka) as bus:
        await bus.ensure(PLANS_TOPIC, PLANS_PARTITIONS, PLANS_CONFIG)
    with reserve_port() as port:
        pass
    async with (
        ClusterClient(kafka) as cluster,
        follow_plans(TOPIC, bootstrap_servers=broker) as plans,
        background_tasks(must_not_end(produce(broker))),
        member(broker) as one,
        member(broker) as two,
    ):
        group, members = Kafka(cluster), [one, two]

        def seen() -> object:
            return numbers(members), generations(members), plans.plan

        await until(lambda: [len(each) for each in numbers(members)] == [3, 3], seen)

        async with scaler(broker, port) as process:
            await until(lambda: numbers(members) == [[0], [1, 2, 3, 4, 5]], seen)
            await group.is_read_on(12)
            assert plans.plan is not None
            bins = sorted((sorted(p.partition for p in b) for b in plans.plan.bins), key=len)
            assert bins == numbers(members)
            async with asyncio.timeout(DEADLINE_S):  # one look may fall between two bursts
                while (served := await metrics(port)).get("imbalance", 9.0) > EVEN:  # noqa: ASYNC110 - as HTTP
                    await asyncio.sleep(0.1)
            assert (served["fault"], served["replicas"]) == (0, 2)
            assert served["rebalances_total"] >= 1
            assert served["plan_generation"] == plans.plan.generation
            before, generation = await group.describe(), generations(members)
            process.kill()
            await process.wait()

        assert plans.valid_plan() is not None
        await group.is_read_on(24)
        await until(lambda: plans.valid_plan() is None, seen)
        await group.is_read_on(24)
        assert await group.describe() == before
        assert generations(members) == generation

        async with member(broker) as three:
            members.append(three)
            await until(lambda: [len(each) for each in numbers(members)] == [2, 2, 2], seen)
