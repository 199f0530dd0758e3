"""Data topics, made as a person would."""

import asyncio
from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAlreadyExistsError, for_code

from binwright.kafka.client import NO_LEADER, ClusterClient, client_options
from binwright.runtime.settings.kafka import KafkaSettings

DEADLINE_S = 60.0


async def create_topic(
    kafka: KafkaSettings,
    topic: str,
    partitions: int,
    replicas: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create the topic, and wait until the brokers know who leads it: they answer before that.

    One of this name that Kafka is just deleting is waited for.
    """
    made = NewTopic(topic, partitions, replicas, topic_configs=dict(config or {}))
    admin = AIOKafkaAdminClient(**client_options(kafka))
    await admin.start()
    try:
        async with asyncio.timeout(DEADLINE_S), ClusterClient(kafka) as cluster:
            while error := (await admin.create_topics([made])).topic_errors[0][1]:
                assert for_code(error) is TopicAlreadyExistsError, for_code(error)
                await asyncio.sleep(0.05)
            while True:
                leaders = await cluster.leaders(topic)
                if len(leaders) == partitions and NO_LEADER not in leaders.values():
                    return
                await asyncio.sleep(0.05)
    finally:
        await admin.close()
