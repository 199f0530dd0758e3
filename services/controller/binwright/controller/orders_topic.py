"""Opens a group's orders topic for a new leader: all that stands is read before it acts.

Versions before this topic had orders and approvals in `GROUP.metadata`, where consumers write.
Those are taken over once: a record says so, and after it none of that topic counts.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from binwright.kafka.control_records import (
    CONTROLLER_PARTITION,
    ORDERS_PARTITION,
    READ_S,
    Decoder,
)
from binwright.kafka.publishing import publish_message
from binwright.protocol import wire
from binwright.protocol.log_events import LogEvent
from binwright.protocol.orders import FormerOrders, OrderRecord, decode_order
from binwright.protocol.ports.kafka import ControlTopics, Reader, Record
from binwright.runtime.logs import log

ORDERS_MOVED = LogEvent.info(
    "orders.moved",
    "The orders and approvals that an older version kept in the group's metadata topic are in its"
    " orders topic now.",
)

FORMER = {b"approved", b"cordon", b"freeze", b"pin", b"savings", b"scale"}
"""First parts of the keys of what was in the metadata topic."""

OrderRecords = Sequence[tuple[Record, OrderRecord]]


@asynccontextmanager
async def open_orders(
    bus: ControlTopics, metadata: str, topic: str
) -> AsyncIterator[tuple[Reader, OrderRecords]]:
    """Give a reader of the orders topic, and all that it has read: up to the end by now.

    Args:
        bus: Of the topics, which exist.
        metadata: The group's metadata topic.
        topic: Its orders topic.

    Raises:
        BrokerUnavailable: Kafka does not answer, or this user lacks a right.
    """
    reader = await bus.reader(topic, ORDERS_PARTITION, 0)
    try:
        decoder = Decoder(decode_order)
        standing = await _read_to_end(bus, reader, topic, decoder)
        if not any(isinstance(message, FormerOrders) for _, message in standing):
            await _take_over(bus, metadata, topic)
            standing += await _read_to_end(bus, reader, topic, decoder)
        yield reader, standing
    finally:
        await reader.close()


async def _read_to_end(
    bus: ControlTopics,
    reader: Reader,
    topic: str,
    decoder: Decoder[OrderRecord],
    wanted: Callable[[Record], bool] = lambda _: True,
) -> list[tuple[Record, OrderRecord]]:
    """Read the only partition of a topic up to what is its end by now."""
    end, records = await bus.end(topic, ORDERS_PARTITION), list[tuple[Record, OrderRecord]]()
    while reader.position < end:
        records += decoder.decode(filter(wanted, await reader.read(READ_S)))
    return records


async def _take_over(bus: ControlTopics, metadata: str, topic: str) -> None:
    """Publish the newest record about each thing that the metadata topic has, then that it is done.

    A controller that dies meanwhile has done nothing that its successor does not repeat.
    """
    former = await bus.reader(metadata, CONTROLLER_PARTITION, 0)
    try:
        records = await _read_to_end(bus, former, metadata, Decoder(decode_order), _is_former_order)
    finally:
        await former.close()
    newest = {wire.key(message): message for _, message in records}
    for message in newest.values():
        await publish_message(bus, topic, ORDERS_PARTITION, message)
    await publish_message(bus, topic, ORDERS_PARTITION, FormerOrders(taken=len(newest)))
    if newest:
        log(ORDERS_MOVED, topic=topic, orders=len(newest))


def _is_former_order(record: Record) -> bool:
    return (record.key or b"").partition(b"/")[0] in FORMER
