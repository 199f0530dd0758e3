"""A consumer's connection to the controllers: sends its Hello, and reads commands."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from binwright.kafka.control_records import CONTROLLER_PARTITION
from binwright.kafka.publishing import publish_message
from binwright.protocol.errors import TopicMissing
from binwright.protocol.messages import Hello
from binwright.protocol.model import Slot, metadata_partition
from binwright.protocol.ports.kafka import ControlTopics, Reader

POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The metadata topic as one process of a slot uses it."""

    bus: ControlTopics
    topic: str
    slot: Slot
    epoch: int
    reader: Reader


async def open_mailbox(  # noqa: PLR0913, PLR0917 - the process, the topic and a limit
    bus: ControlTopics,
    topic: str,
    slot: Slot,
    process: str,
    version: str,
    wall_ms: Callable[[], int],
    timeout_s: float = 60.0,
) -> Mailbox:
    """Send Hello; its offset is the epoch. Commands are read from just before the Hello on.

    `timeout_s` limits the wait for the slot's metadata partition.

    Raises:
        TopicMissing: The slot has no metadata partition: no controller created one in time.
        BrokerUnavailable: Kafka does not answer; whether Hello was sent is unknown.
    """
    partition = metadata_partition(slot)
    try:
        async with asyncio.timeout(timeout_s):
            while await bus.partitions(topic) <= partition:  # noqa: ASYNC110 - Kafka sends no event
                await asyncio.sleep(POLL_S)
    except TimeoutError as exc:
        raise TopicMissing(
            f"slot {slot} needs partition {partition} of {topic}, which is not there after "
            f"{timeout_s:g} s: is a controller of this group running?"
        ) from exc
    end = await bus.end(topic, partition)
    hello = Hello(slot=slot, process=process, version=version, sent_ms=wall_ms())
    epoch = await publish_message(bus, topic, CONTROLLER_PARTITION, hello)
    return Mailbox(bus, topic, slot, epoch, await bus.reader(topic, partition, end))
