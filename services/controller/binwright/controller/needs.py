"""Publishes which topics a group needs, so that monitors measure them without settings."""

import asyncio

from binwright.kafka.control_records import NEEDS_CONFIG, NEEDS_PARTITION
from binwright.kafka.publishing import Publisher
from binwright.protocol.metrics import Needs
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.selection import Selection
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import wall_ms

REPEAT_S = 60.0  # from one publication to the next; a monitor forgets after an hour
RETRY_S = 1.0


async def publish_needs(bus: ControlTopics, topic: str, group: str, topics: Selection) -> None:
    """Publish which topics the group needs, at once and every `REPEAT_S` seconds, for ever.

    While that fails, monitors measure the topics of their own settings.
    """

    def needs() -> Needs:
        return Needs(
            group=group,
            at_ms=wall_ms(),
            topics=tuple(sorted(topics.topics)),
            patterns=tuple(pattern.text for pattern in topics.patterns),
        )

    publisher = Publisher(
        bus,
        topic,
        NEEDS_PARTITION,
        create=lambda: bus.ensure(topic, 1, NEEDS_CONFIG),
        pause=Backoff(REPEAT_S, first_s=RETRY_S),
    )
    while True:
        await publisher.publish_or_drop(needs)
        await asyncio.sleep(REPEAT_S)
