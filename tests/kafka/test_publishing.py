"""Messages are published until confirmed; within a partition they keep their order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import count

import pytest
from structlog.testing import capture_logs

from binwright.kafka.control_records import Decoder
from binwright.kafka.publishing import SMALLEST_RECORD_BYTES, Publisher, QueuedPublisher
from binwright.protocol.commands import Leave, StateQuery, decode_command
from binwright.protocol.errors import TopicMissing
from binwright.protocol.metadata import Dead, Planned, decode_inbound
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

TOPIC = "g.commands"
DEAD = Dead(slot=Slot(3), epoch=7, term=1)


@contextlib.asynccontextmanager
async def running_publisher(bus: FakeControlTopics) -> AsyncIterator[QueuedPublisher]:
    publisher = QueuedPublisher(bus, TOPIC)
    running = asyncio.create_task(publisher.run())
    try:
        yield publisher
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def sent(bus: FakeControlTopics, partition: int) -> list[object]:
    return [decode_command(r.value) for r in bus.records(TOPIC, partition)]


async def test_sending_to_a_hundred_slots_takes_no_longer_than_to_one() -> None:
    bus = FakeControlTopics({TOPIC: 100}, latency_s=1.0)
    async with running_publisher(bus) as publisher:
        for partition in range(100):
            publisher.send(partition, StateQuery(term=1))
        await asyncio.sleep(1.5)
        assert all(len(sent(bus, partition)) == 1 for partition in range(100))


async def test_messages_keep_their_order_within_a_partition_when_the_broker_fails() -> None:
    bus = FakeControlTopics({TOPIC: 3}, latency_s=0.1)
    messages = [Leave(term=1, epoch=epoch) for epoch in range(20)]
    async with running_publisher(bus) as publisher:
        bus.fail_next(3)
        for message in messages:
            publisher.send(2, message)
        await asyncio.sleep(30)
        assert sent(bus, 2) == messages


async def test_a_broadcast_reaches_all_slots_and_a_slot_without_a_partition_none() -> None:
    bus = FakeControlTopics({TOPIC: 3})
    async with running_publisher(bus) as publisher:
        await bus.go_down()
        publisher.send_to_all(StateQuery(term=1))
        await asyncio.sleep(10)
        await bus.come_up()
        publisher.send(7, StateQuery(term=1))
        await asyncio.sleep(10)
        assert [len(sent(bus, partition)) for partition in range(3)] == [1, 1, 1]


async def test_what_is_sent_after_a_broadcast_stays_behind_it() -> None:
    bus = FakeControlTopics({TOPIC: 3}, latency_s=1.0)
    async with running_publisher(bus) as publisher:
        publisher.send_to_all(StateQuery(term=1))
        publisher.send(2, Leave(term=1, epoch=5))
        await asyncio.sleep(10)
        assert sent(bus, 2) == [StateQuery(term=1), Leave(term=1, epoch=5)]


async def test_an_outage_is_logged_when_it_begins_and_when_it_ends() -> None:
    bus = FakeControlTopics({TOPIC: 1})
    bus.fail_next(5)
    with capture_logs() as logs:
        await Publisher(bus, TOPIC, 0).publish(DEAD)
    assert [line["event"] for line in logs] == ["message.delayed", "message.recovered"]


async def test_a_message_is_built_again_for_each_attempt() -> None:
    bus, terms = FakeControlTopics({TOPIC: 1}), count(1)
    bus.fail_next(2)
    await Publisher(bus, TOPIC, 0).publish(lambda: StateQuery(term=next(terms)))
    assert sent(bus, 0) == [StateQuery(term=3)]


async def test_an_attempt_that_fails_is_not_repeated() -> None:
    bus = FakeControlTopics({TOPIC: 1})
    bus.fail_next(1)
    publisher = Publisher(bus, TOPIC, 0)
    assert not await publisher.attempt(DEAD)
    assert not bus.records(TOPIC, 0)
    assert await publisher.attempt(DEAD)


async def test_a_missing_topic_is_created_if_the_publisher_can() -> None:
    bus = FakeControlTopics()
    with pytest.raises(TopicMissing):
        await Publisher(bus, TOPIC, 0).publish(DEAD)
    await Publisher(bus, TOPIC, 0, create=lambda: bus.ensure(TOPIC, 1, {})).publish(DEAD)
    assert len(bus.records(TOPIC, 0)) == 1


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


async def test_a_plan_of_a_hundred_thousand_partitions_is_sent_in_parts() -> None:
    """C3: one record of 9 MB was refused and retried for ever, so no `Dead` was sent after it."""
    bus, large = FakeControlTopics({TOPIC: 1}), plan(100_000)
    async with running_publisher(bus) as publisher:
        publisher.send(0, large)
        publisher.send(0, DEAD)
        await asyncio.sleep(1)
        decoder = Decoder(decode_inbound)
        read = list(decoder.decode(bus.records(TOPIC, 0)))
    last = bus.records(TOPIC, 0)[-1].offset
    assert [(record.offset, message) for record, message in read] == [
        (last - 1, large),
        (last, DEAD),
    ]


async def test_a_message_that_the_topic_refuses_in_any_size_delays_no_other() -> None:
    bus = FakeControlTopics({TOPIC: 1})
    bus.largest_record = SMALLEST_RECORD_BYTES // 2
    async with running_publisher(bus) as publisher:
        publisher.send(0, plan(1_000))
        publisher.send(0, DEAD)
        await asyncio.sleep(1)
        assert [decode_inbound(r.value) for r in bus.records(TOPIC, 0)] == [DEAD]


async def test_a_topic_with_a_smaller_record_limit_than_the_default_gets_smaller_parts() -> None:
    bus, large = FakeControlTopics({TOPIC: 1}), plan(5_000)
    bus.largest_record = 3 * SMALLEST_RECORD_BYTES
    async with running_publisher(bus) as publisher:
        publisher.send(0, large)
        await asyncio.sleep(1)
        decoder = Decoder(decode_inbound)
        assert [message for _, message in decoder.decode(bus.records(TOPIC, 0))] == [large]
