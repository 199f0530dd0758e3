"""A consumer's connection to the controllers: its Hello, its commands, its messages."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.messages import Hello, Inbound
from binwright.core.model import Slot, metadata_partition
from binwright.core.ports import Bus, Reader
from binwright.shell.letters import INBOX, post

log = structlog.get_logger()

LOOK_S, RETRY_S = 0.2, 1.0


@dataclass(frozen=True, slots=True)
class Mailbox:
    """What one process of a slot reads and publishes."""

    bus: Bus
    topic: str
    slot: Slot
    epoch: int
    reader: Reader

    async def publish(self, message: Inbound) -> None:
        """Append to partition 0, however long that takes: an acknowledgement is owed.

        One that was sent twice, because its confirmation was lost, changes nothing.
        """
        while True:
            try:
                await self.publish_once(message)
            except BrokerUnavailable as exc:
                log.warning("reply.delayed", kind=message.kind, reason=str(exc))
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def publish_once(self, message: Inbound) -> None:
        """Append to partition 0; raise `BrokerUnavailable` if that is not confirmed in time."""
        await post(self.bus, self.topic, INBOX, message)


async def open_mailbox(  # noqa: PLR0913, PLR0917 - who, where and how long
    bus: Bus,
    topic: str,
    slot: Slot,
    process: str,
    version: str,
    wall_ms: Callable[[], int],
    patience_s: float = 60.0,
) -> Mailbox:
    """Send Hello; its offset is the epoch. Commands are read from before the Hello on.

    Raises:
        TopicMissing: The slot has no metadata partition: no controller made one in time.
        BrokerUnavailable: Kafka does not answer; whether Hello was sent is not known.
    """
    mine = metadata_partition(slot)
    try:
        async with asyncio.timeout(patience_s):
            while await bus.partitions(topic) <= mine:  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(LOOK_S)
    except TimeoutError as exc:
        raise TopicMissing(
            f"slot {slot} needs partition {mine} of {topic}, which is not there after "
            f"{patience_s:g} s: is a controller of this group running?"
        ) from exc
    end = await bus.end(topic, mine)
    hello = Hello(slot=slot, process=process, version=version, sent_ms=wall_ms())
    epoch = await post(bus, topic, INBOX, hello)
    return Mailbox(bus, topic, slot, epoch, await bus.reader(topic, mine, end))
