"""Words keep their order within a partition, and wait for nobody else's."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from binwright.controller.voice import Voice
from binwright.core import wire
from binwright.core.messages import Leave, StateQuery
from binwright.testing.bus import FakeBus

pytestmark = pytest.mark.looptime

TOPIC = "g.metadata"


@contextlib.asynccontextmanager
async def speaking(bus: FakeBus) -> AsyncIterator[Voice]:
    voice = Voice(bus, TOPIC)
    running = asyncio.create_task(voice.run())
    try:
        yield voice
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def said(bus: FakeBus, partition: int) -> list[object]:
    return [wire.decode_command(r.value) for r in bus.records(TOPIC, partition)]


async def test_a_hundred_slots_take_no_longer_than_one() -> None:
    bus = FakeBus({TOPIC: 101}, latency_s=1.0)
    async with speaking(bus) as voice:
        for partition in range(1, 101):
            voice.say(partition, StateQuery(term=1))
        await asyncio.sleep(1.5)
        assert all(len(said(bus, partition)) == 1 for partition in range(1, 101))


async def test_order_holds_within_a_partition_also_when_the_broker_fails() -> None:
    bus = FakeBus({TOPIC: 3}, latency_s=0.1)
    words = [Leave(term=1, epoch=epoch) for epoch in range(20)]
    async with speaking(bus) as voice:
        bus.fail_next(3)
        for word in words:
            voice.say(2, word)
        await asyncio.sleep(30)
        assert said(bus, 2) == words


async def test_everybody_is_told_and_nobody_who_never_was() -> None:
    bus = FakeBus({TOPIC: 3})
    async with speaking(bus) as voice:
        await bus.go_down()
        telling = asyncio.create_task(voice.say_to_all(StateQuery(term=1)))
        await asyncio.sleep(10)
        await bus.come_up()
        await telling
        voice.say(7, StateQuery(term=1))
        await asyncio.sleep(10)
        assert [len(said(bus, partition)) for partition in range(3)] == [0, 1, 1]
