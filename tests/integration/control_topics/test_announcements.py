"""Tables of one landing partition at positions of their own, on a real broker."""

import asyncio

import pytest
from tests.builders import staged
from tests.integration.control_topics.broker_helpers import DEADLINE_S

from binwright.consumer.land.announcements import (
    Announced,
    LandingTopic,
    Subscription,
)
from binwright.kafka.control_records import LANDING_PARTITIONS, landing_partition
from binwright.protocol import wire
from binwright.protocol.ports.kafka import ControlTopics

pytestmark = pytest.mark.integration

TABLES = [t for t in (f"t{n}" for n in range(99)) if landing_partition(t) == 0][:3]
FILES = 40


async def announce(bus: ControlTopics, landing: str, topic: str, first: int) -> None:
    announced = staged(topic, first)
    await bus.publish(landing, 0, wire.key(announced), wire.encode(announced))


class Got:
    """What one table got, and whether that is all."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.firsts: list[int] = []
        self.all = asyncio.Event()

    async def apply(self, announced: Announced, _: int) -> None:
        for _, message in announced:
            self.firsts += [first for first, _ in message.ranges.values()]
        if self.firsts and self.firsts[-1] == FILES - 1:
            self.all.set()

    def subscription(self, offset: int) -> Subscription:
        takes = {self.topic}.__contains__
        return Subscription(self.topic, takes, offset, self.apply, lambda: True, pytest.fail)


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
