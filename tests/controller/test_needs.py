"""A controller publishes its group's topics again and again, also after an outage."""

import asyncio
import re

import pytest

from binwright.controller.needs import publish_needs
from binwright.core.protocol import wire
from binwright.core.protocol.measurements import Needs
from binwright.core.rates.needs import REPEAT_S
from binwright.core.selection import Selection
from binwright.runtime.run import background_tasks, must_not_end
from binwright.testing.bus import FakeBus

pytestmark = pytest.mark.looptime

TOPIC = "metrics.needs"
TOPICS = Selection(frozenset({"tea", "orders"}), (re.compile("cl.*"),))


def published(bus: FakeBus) -> list[Needs]:
    return [wire.decode_needs(record.value) for record in bus.records(TOPIC)]


async def test_names_and_patterns_are_published_at_once_and_every_minute() -> None:
    bus = FakeBus()
    async with background_tasks(must_not_end(publish_needs(bus, TOPIC, "g", TOPICS))):
        await asyncio.sleep(1)
        (first,) = published(bus)
        assert (first.group, first.topics, first.patterns) == ("g", ("orders", "tea"), ("cl.*",))
        await asyncio.sleep(2 * REPEAT_S)
        assert len(published(bus)) == 3
    assert "compact" in bus.configs[TOPIC]["cleanup.policy"]


async def test_needs_are_published_after_an_outage() -> None:
    bus = FakeBus(patience_s=5)
    await bus.go_down()
    async with background_tasks(must_not_end(publish_needs(bus, TOPIC, "g", TOPICS))):
        await asyncio.sleep(5 * REPEAT_S)
        await bus.come_up()
        await asyncio.sleep(2 * REPEAT_S)
        assert published(bus)
