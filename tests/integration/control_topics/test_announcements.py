"""Tables of one landing partition at positions of their own, on a real broker."""

import asyncio

import pytest
from tests.integration.control_topics.broker_helpers import DEADLINE_S

from binwright.consumer.writer.announcements import (
    Announced,
    LandingTopic,
    Subscription,
    landing_partition,
)
from binwright.kafka.control_records import LANDING_PARTITIONS
from binwright.protocol import wire
from binwright.protocol.messages import OffsetRange, Staged
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.ports.kafka import ControlTopics

pytestmark = pytest.mark.integration

TABLES = [t for t in (f"t{n}" for n in range(99)) if landing_partition(t) == 0][:3]
FILES = 40


async def announce(bus: ControlTopics, landing: str, topic: str, first: int) -> None:
    staged = Staged(
        topic=topic,
        topic_id=None,
        file="0-1-1-0a1b2c3d.parquet",
        rows=1,
        bytes=9,
        ranges={TopicPartition(topic, 0): OffsetRange(first, first + 1)},
        slot=Slot(0),
        epoch=1,
    )
    await bus.publish(landing, 0, wire.key(staged), wire.encode(staged))


class Got:
    """What one table got, and whether that is all."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.firsts: list[int] = []
        self.all = asyncio.Event()

    async def apply(self, announced: Announced, _: int) -> None:
        for _, staged in announced:
            self.firsts += [first for first, _ in staged.ranges.values()]
        if self.firsts and self.firsts[-1] == FILES - 1:
            self.all.set()

    def subscription(self, offset: int) -> Subscription:
        return Subscription(self.topic, offset, self.apply, lambda: True, pytest.fail)


async def test_tables_at_different_positions_all_get_their_announcements(
    bus: ControlTopics, topic: str
) -> None:
    """None seeks away what the broker sends another."""
    await bus.ensure(topic, LANDING_PARTITIONS, {})
    for first in range(FILES):
        for name in TABLES:
            await announce(bus, topic, name, first)

    landing, tables = LandingTopic(bus, topic), [Got(name) for name in TABLES]
    for n, table in enumerate(tables):
        landing.subscribe(table.subscription(n * FILES))
    async with asyncio.timeout(DEADLINE_S / 2):
        await asyncio.gather(*(table.all.wait() for table in tables))
    for table in tables:
        await landing.unsubscribe(table.topic)

    assert tables[0].firsts == list(range(FILES))
