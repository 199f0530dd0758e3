"""A group of aiokafka members that have binwright's assignor."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest
from aiokafka import AIOKafkaConsumer
from tests.integration.assignor.plans import VALID_MS, names, publish, until
from tests.integration.topics import create_topic

from binwright.kafka.client import ClusterClient, client_options
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.assignor import follow_plans, planned_assignor
from binwright.scaler.decide.members import EAGER
from binwright.scaler.groups import ConsumerGroups
from binwright.scaler.rebalance_request import request_rebalance

pytestmark = pytest.mark.integration


@contextlib.asynccontextmanager
async def member(servers: str, group: str) -> AsyncIterator[AIOKafkaConsumer]:
    """Run a member as an application does, polling for ever."""
    async with follow_plans(group, bootstrap_servers=servers) as plans:
        consumer = AIOKafkaConsumer(
            group,
            bootstrap_servers=servers,
            group_id=group,
            heartbeat_interval_ms=300,
            enable_auto_commit=False,
            partition_assignment_strategy=[planned_assignor(plans)],
        )
        await consumer.start()

        async def poll() -> None:
            while True:
                await consumer.getmany(timeout_ms=200)

        polling = asyncio.create_task(poll())
        try:
            yield consumer
        finally:
            polling.cancel()
            await asyncio.wait([polling])
            await consumer.stop()


def owned(members: Sequence[AIOKafkaConsumer]) -> list[set[str]]:
    return [{f"{p.topic}-{p.partition}" for p in each.assignment()} for each in members]


async def test_members_read_what_is_planned_and_without_one_the_same_number_each(
    broker: str,
) -> None:
    kafka, topic = KafkaSettings(bootstrap_servers=broker), "aiokafka-group"
    await create_topic(kafka, topic, 6)
    every = [TopicPartition(topic, number) for number in range(6)]
    plan = [every[:1], every[1:]]
    await publish(kafka, topic, plan)
    async with member(broker, topic) as one, member(broker, topic) as two:
        members = [one, two]
        await until(lambda: sorted(owned(members), key=len) == names(plan), lambda: owned(members))

        await publish(kafka, topic, plan, age_ms=VALID_MS + 1000)
        await request_rebalance(client_options(kafka), topic, EAGER, topic)
        await until(
            lambda: [len(each) for each in owned(members)] == [3, 3], lambda: owned(members)
        )


async def test_a_group_that_uses_another_assignor_is_not_made_to_rebalance(broker: str) -> None:
    kafka, topic = KafkaSettings(bootstrap_servers=broker), "aiokafka-other"
    await create_topic(kafka, topic, 1)
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=broker, group_id=topic)
    await consumer.start()
    try:
        async with ClusterClient(kafka) as cluster:
            before = await ConsumerGroups(cluster).describe(topic)
            with pytest.raises(BrokerUnavailable, match="does not offer the assignor"):
                await request_rebalance(client_options(kafka), topic, EAGER, topic)
            after = await ConsumerGroups(cluster).describe(topic)
    finally:
        await consumer.stop()
    assert before.protocol == "roundrobin"
    assert after == before
