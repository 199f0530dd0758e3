"""Words keep their order within a partition, and wait for nobody else's."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from binwright.controller.voice import Voice
from binwright.core import wire
from binwright.core.messages import Dead, Leave, Planned, StateQuery
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.shell.letters import SMALLEST_RECORD_BYTES, Decoder
from binwright.testing.bus import FakeBus

pytestmark = pytest.mark.looptime

TOPIC = "g.metadata"
DEAD = Dead(slot=Slot(3), epoch=7, term=1)


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


def plan(partitions: int) -> Planned:
    moves = {TopicPartition("team-0001.events.v1", n): Slot(n % 1_000) for n in range(partitions)}
    rates = dict.fromkeys(moves, BytesPerSecond(1_234.5))
    return Planned(
        term=1,
        reasons=("overload",),
        consumers=1_000,
        moves=moves,
        rscore=1.0,
        rates=rates,
        targets=moves,
    )


async def test_a_plan_of_a_hundred_thousand_partitions_goes_out_in_parts() -> None:
    """C3: one record of 9 MB was refused and tried again for ever, and no `Dead` came after it."""
    bus, large = FakeBus({TOPIC: 1}), plan(100_000)
    async with speaking(bus) as voice:
        voice.say(0, large)
        voice.say(0, DEAD)
        await asyncio.sleep(1)
        decoder = Decoder(wire.decode_inbound)
        read = list(decoder.readable(bus.records(TOPIC, 0)))
    last = bus.records(TOPIC, 0)[-1].offset
    assert [(record.offset, message) for record, message in read] == [
        (last - 1, large),
        (last, DEAD),
    ]


async def test_what_a_topic_takes_in_no_size_holds_up_nothing() -> None:
    bus = FakeBus({TOPIC: 1})
    bus.largest_record = SMALLEST_RECORD_BYTES // 2
    async with speaking(bus) as voice:
        voice.say(0, plan(1_000))
        voice.say(0, DEAD)
        await asyncio.sleep(1)
        assert [wire.decode_inbound(r.value) for r in bus.records(TOPIC, 0)] == [DEAD]


async def test_a_topic_that_takes_less_than_brokers_do_by_default_gets_smaller_parts() -> None:
    bus, large = FakeBus({TOPIC: 1}), plan(5_000)
    bus.largest_record = 3 * SMALLEST_RECORD_BYTES
    async with speaking(bus) as voice:
        voice.say(0, large)
        await asyncio.sleep(1)
        decoder = Decoder(wire.decode_inbound)
        assert [said for _, said in decoder.readable(bus.records(TOPIC, 0))] == [large]
