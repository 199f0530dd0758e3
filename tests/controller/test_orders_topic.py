"""A group's orders topic: what a former version had in the metadata topic is taken over once."""

import pytest

from binwright.controller.orders_topic import open_orders
from binwright.kafka.control_records import Decoder
from binwright.protocol import wire
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.metadata import Claim
from binwright.protocol.model import BytesPerSecond, Slot
from binwright.protocol.orders import (
    Approved,
    CordonOrder,
    FormerOrders,
    FreezeOrder,
    OrderRecord,
    decode_order,
)
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

METADATA, ORDERS = "g.metadata", "g.group-orders"
FREEZE = FreezeOrder(frozen=True, by="ann", reason="a release")
DRAIN = CordonOrder(slot=Slot(3), state="drained", by="bob")
OPEN = CordonOrder(slot=Slot(3), state="open", by="bob")
CLAIM = Claim(controller="c", limit=BytesPerSecond(1.0))
DONE = FormerOrders


def bus() -> FakeControlTopics:
    return FakeControlTopics({METADATA: 1, ORDERS: 1})


async def write(kafka: FakeControlTopics, topic: str, *messages: OrderRecord | Claim) -> None:
    for message in messages:
        await kafka.publish(topic, 0, wire.key(message), wire.encode(message))


async def given(kafka: FakeControlTopics) -> list[OrderRecord]:
    """Return what a new leader has read, and check that it reads on from there."""
    async with open_orders(kafka, METADATA, ORDERS) as (reader, found):
        assert reader.position == await kafka.end(ORDERS, 0)
        assert kafka.readers(ORDERS) == 1
        assert kafka.readers(METADATA) == 0
    assert kafka.readers(ORDERS) == 0
    return [message for _, message in found]


async def test_a_group_without_former_orders_begins_with_one_record() -> None:
    kafka = bus()
    await write(kafka, METADATA, CLAIM)
    assert await given(kafka) == [DONE(taken=0)]
    assert await given(kafka) == [DONE(taken=0)]
    assert len(kafka.records(ORDERS)) == 1


async def test_the_newest_former_order_about_each_thing_is_taken_over() -> None:
    kafka = bus()
    approved = Approved(plan=7, by="ann")
    await write(kafka, METADATA, DRAIN, CLAIM, FREEZE, OPEN, approved)
    assert await given(kafka) == [OPEN, FREEZE, approved, DONE(taken=3)]
    order = FreezeOrder(frozen=False, by="carl")
    await write(kafka, ORDERS, order)
    assert (await given(kafka))[-1] == order


async def test_what_is_written_among_reports_afterwards_does_not_count() -> None:
    kafka = bus()
    await write(kafka, METADATA, CLAIM)
    await given(kafka)
    await write(kafka, METADATA, FREEZE)
    kafka.compact(ORDERS, 0)
    assert await given(kafka) == [DONE(taken=0)]


async def test_a_controller_that_dies_between_two_records_leaves_the_rest_to_the_next() -> None:
    kafka = bus()
    await write(kafka, METADATA, FREEZE, DRAIN)
    kafka.fail_next(landed=True)
    with pytest.raises(BrokerUnavailable):
        await given(kafka)
    assert await given(kafka) == [FREEZE, FREEZE, DRAIN, DONE(taken=2)]


async def test_more_than_one_read_returns_is_read_to_its_end() -> None:
    kafka = bus()
    drains = [CordonOrder(slot=Slot(n), state="drained", by="bob") for n in range(1_200)]
    await write(kafka, METADATA, *drains)
    assert await given(kafka) == [*drains, DONE(taken=1_200)]
    async with open_orders(kafka, METADATA, ORDERS) as (reader, _):
        await write(kafka, ORDERS, FREEZE)
        found = Decoder(decode_order).decode(await reader.read(1.0))
        assert [message for _, message in found] == [FREEZE]
