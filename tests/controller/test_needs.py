"""A controller publishes its group's topics again and again, also after an outage."""

import asyncio

import pytest

from binwright.controller.needs import REPEAT_S, publish_needs
from binwright.protocol.metrics import Needs, decode_needs
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection
from binwright.runtime.run import background_tasks, must_not_end
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

TOPIC = "metrics.needs"
TOPICS = Selection(frozenset({"tea", "orders"}), (compile_pattern("cl.*"),))


def published(bus: FakeControlTopics) -> list[Needs]:
    return [decode_needs(record.value) for record in bus.records(TOPIC)]


async def test_names_and_patterns_are_published_at_once_and_every_minute() -> None:
    bus = FakeControlTopics()
    async with background_tasks(must_not_end(publish_needs(bus, TOPIC, "g", TOPICS))):
        await asyncio.sleep(1)
        (first,) = published(bus)
        assert (first.group, first.topics, first.patterns) == ("g", ("orders", "tea"), ("cl.*",))
        await asyncio.sleep(2 * REPEAT_S)
        assert len(published(bus)) == 3
    assert "compact" in bus.configs[TOPIC]["cleanup.policy"]


async def test_needs_are_published_after_an_outage() -> None:
    bus = FakeControlTopics(patience_s=5)
    await bus.go_down()
    async with background_tasks(must_not_end(publish_needs(bus, TOPIC, "g", TOPICS))):
        await asyncio.sleep(5 * REPEAT_S)
        await bus.come_up()
        await asyncio.sleep(2 * REPEAT_S)
        assert published(bus)
