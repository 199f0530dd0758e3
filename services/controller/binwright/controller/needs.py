"""Which topics a group needs, for the monitors: nobody names them in a monitor's settings."""

import asyncio
import time

import structlog

from binwright.core.errors import WorldError
from binwright.core.messages import Needs
from binwright.core.needs import REPEAT_S
from binwright.core.ports import Bus
from binwright.core.selection import Selection
from binwright.shell.letters import NEEDS_CONFIG, NEEDS_PARTITION, post
from binwright.shell.pauses import Pause

log = structlog.get_logger()

RETRY_S = 1.0


async def publish_needs(bus: Bus, topic: str, group: str, topics: Selection) -> None:
    """Say which topics the group needs, at once and from time to time, for ever.

    Where that is not possible, the topics that the monitor's own settings name are measured.
    """
    pause, has_topic = Pause(REPEAT_S, first_s=RETRY_S), False
    while True:
        needs = Needs(
            group=group,
            at_ms=time.time_ns() // 1_000_000,
            topics=tuple(sorted(topics.topics)),
            patterns=tuple(pattern.pattern for pattern in topics.patterns),
        )
        try:
            if not has_topic:
                await bus.ensure(topic, 1, NEEDS_CONFIG)
            has_topic = True
            await post(bus, topic, NEEDS_PARTITION, needs)
        except WorldError as exc:
            has_topic = False  # it may be that which is gone
            log.warning("needs.unsent", group=group, topic=topic, reason=str(exc))
            await asyncio.sleep(pause.next())
        else:
            pause = Pause(REPEAT_S, first_s=RETRY_S)
            await asyncio.sleep(REPEAT_S)
