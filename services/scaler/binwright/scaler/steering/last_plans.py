"""Reads the plans that were published before: a new controller goes on from them."""

from collections.abc import Collection

import structlog

from binwright.protocol import wire
from binwright.protocol.errors import MalformedMessage
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.ports.kafka import ControlTopics
from binwright.scaler.groups.plans import plan_partition

log = structlog.get_logger()

READ_S = 5.0


async def last_plans(
    bus: ControlTopics, topic: str, groups: Collection[str]
) -> dict[str, GroupPlan]:
    """Return the last plan of each group that has one.

    Raises:
        BrokerUnavailable: Kafka does not answer.
        TopicMissing: The topic does not exist.
    """
    found: dict[str, GroupPlan] = {}
    count = await bus.partitions(topic)
    for partition in sorted({plan_partition(group, count) for group in groups}):
        end = await bus.end(topic, partition)
        reader = await bus.reader(topic, partition, 0)
        try:
            while reader.position < end:
                for record in await reader.read(READ_S):
                    if record.value is None:  # the steering of this group has ended
                        found.pop((record.key or b"").decode(errors="replace"), None)
                    else:
                        _take(found, record.value)
        finally:
            await reader.close()
    return {group: plan for group, plan in found.items() if group in groups}


def _take(found: dict[str, GroupPlan], value: bytes) -> None:
    try:
        plan = wire.decode_group_plan(value)
    except MalformedMessage as exc:  # an unknown kind is one, too
        log.warning("plan.malformed", group=None, reason=exc.reason)
    else:
        found[plan.group] = plan
