"""Publishes which topics a group needs, so that monitors measure them without settings."""

import asyncio

import structlog

from binwright.kafka.control_records import NEEDS_CONFIG, NEEDS_PARTITION, publish_message
from binwright.protocol.errors import ExternalError
from binwright.protocol.measurements import Needs
from binwright.protocol.needs import REPEAT_S
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.selection import Selection
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import wall_ms

log = structlog.get_logger()

RETRY_S = 1.0


async def publish_needs(bus: ControlTopics, topic: str, group: str, topics: Selection) -> None:
    """Publish which topics the group needs, at once and every `REPEAT_S` seconds, for ever.

    While that fails, monitors measure the topics of their own settings.
    """
    pause, has_topic = Backoff(REPEAT_S, first_s=RETRY_S), False
    while True:
        needs = Needs(
            group=group,
            at_ms=wall_ms(),
            topics=tuple(sorted(topics.topics)),
            patterns=tuple(pattern.pattern for pattern in topics.patterns),
        )
        try:
            if not has_topic:
                await bus.ensure(topic, 1, NEEDS_CONFIG)
            has_topic = True
            await publish_message(bus, topic, NEEDS_PARTITION, needs)
        except ExternalError as exc:
            has_topic = False  # the topic may have been deleted
            log.warning("needs.unsent", group=group, topic=topic, reason=str(exc))
            await asyncio.sleep(pause.next())
        else:
            pause.reset()
            await asyncio.sleep(REPEAT_S)
