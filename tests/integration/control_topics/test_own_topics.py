"""Topics of others, on a real broker, stay as they are when a group is named after them."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.control_topics.broker_helpers import (
    DEADLINE_S,
    delete_records_before,
    settings,
)

from binwright.controller.__main__ import control
from binwright.controller.settings import ControllerProgramSettings
from binwright.kafka.client import client_options
from binwright.kafka.control_records import LANDING_CONFIG, LANDING_PARTITIONS
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.own_topics import ensure_own
from binwright.kafka.publishing import publish_message
from binwright.protocol.errors import ForeignTopic
from binwright.protocol.metadata import Claim
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.settings.loading import load

pytestmark = pytest.mark.integration

CODECS = (None, "gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("codec", CODECS)
async def test_a_topic_of_others_is_not_grown(
    bus: KafkaControlTopics, broker: str, topic: str, codec: str | None
) -> None:
    topic = f"of-others-{codec}.landing"
    await bus.ensure(topic, 3, {})
    options = client_options(settings(broker))
    async with AIOKafkaProducer(**options, compression_type=codec) as producer:
        await producer.send_and_wait(topic, b'{"paid": 5}', b"a customer", partition=2)
    with pytest.raises(ForeignTopic, match="offset 0 of partition 2"):
        await ensure_own(bus, topic, LANDING_PARTITIONS, LANDING_CONFIG)
    assert await bus.partitions(topic) == 3
    assert await bus.end(topic, 2) == 1


async def test_binwright_s_own_topic_is_known_also_behind_deleted_records(
    bus: KafkaControlTopics, broker: str, topic: str
) -> None:
    await bus.ensure(topic, 2, {})
    for number in range(5):
        claim = Claim(controller=f"c{number}", limit=BytesPerSecond(1.0))
        await publish_message(bus, topic, 0, claim)
    await delete_records_before(broker, topic, 3)
    oldest = await bus.oldest(topic, 0)
    assert oldest is not None
    assert oldest[-1].offset == 4
    assert await bus.oldest(topic, 1) == []
    await ensure_own(bus, topic, 3, {})
    assert await bus.partitions(topic) == 3


async def test_an_empty_topic_that_was_made_halfway_is_completed_and_another_is_not(
    bus: KafkaControlTopics, topic: str
) -> None:
    await bus.ensure(topic, 2, LANDING_CONFIG)
    await ensure_own(bus, topic, LANDING_PARTITIONS, LANDING_CONFIG)
    assert await bus.partitions(topic) == LANDING_PARTITIONS
    await bus.ensure(f"{topic}.other", 2, {})
    with pytest.raises(ForeignTopic, match="no record of binwright's"):
        await ensure_own(bus, f"{topic}.other", LANDING_PARTITIONS, LANDING_CONFIG)
    assert await bus.partitions(f"{topic}.other") == 2


@pytest.mark.parametrize("suffix", ["metadata", "landing"])
async def test_a_controller_whose_group_is_named_like_others_topics_ends_with_the_reason(
    bus: KafkaControlTopics, broker: str, tmp_path: Path, suffix: str
) -> None:
    group = f"payments-{suffix}"
    topic = f"{group}.{suffix}"
    await bus.ensure(topic, 3, {})
    await bus.publish(topic, 0, b"a customer", b"a payment")
    made = load(
        ControllerProgramSettings,
        group=group,
        topics=["orders"],
        kafka=settings(broker),
        controller={"fleet": "fixed"},
        lake={"path": str(tmp_path)},
    )
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(BaseExceptionGroup) as raised:
            await control(made)
    assert raised.group_contains(ForeignTopic, match=f"topic {topic} has records")
    assert await bus.partitions(topic) == 3
    assert await bus.end(topic, 0) == 1
