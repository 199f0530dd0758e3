"""A controller repeats what its group needs, whatever becomes of Kafka meanwhile."""

import asyncio
import re

import pytest

from binwright.controller.needs import publish_needs
from binwright.core import wire
from binwright.core.messages import Needs
from binwright.core.needs import REPEAT_S
from binwright.core.selection import Selection
from binwright.shell.run import endless, meanwhile
from binwright.testing.bus import FakeBus

pytestmark = pytest.mark.looptime

TOPIC = "metrics.needs"
TOPICS = Selection(frozenset({"tea", "orders"}), (re.compile("cl.*"),))


def said(bus: FakeBus) -> list[Needs]:
    return [wire.decode_needs(record.value) for record in bus.records(TOPIC)]


async def test_names_and_patterns_are_said_at_once_and_every_minute() -> None:
    bus = FakeBus()
    async with meanwhile(endless(publish_needs(bus, TOPIC, "g", TOPICS))):
        await asyncio.sleep(1)
        (first,) = said(bus)
        assert (first.group, first.topics, first.patterns) == ("g", ("orders", "tea"), ("cl.*",))
        await asyncio.sleep(2 * REPEAT_S)
        assert len(said(bus)) == 3
    assert "compact" in bus.configs[TOPIC]["cleanup.policy"]


async def test_an_outage_delays_it_and_no_more() -> None:
    bus = FakeBus(patience_s=5)
    await bus.go_down()
    async with meanwhile(endless(publish_needs(bus, TOPIC, "g", TOPICS))):
        await asyncio.sleep(5 * REPEAT_S)
        await bus.come_up()
        await asyncio.sleep(2 * REPEAT_S)
        assert said(bus)
