"""The topic of plans for ordinary consumer groups: publishes plans, and reads the last ones."""

from collections.abc import Collection

from aiokafka.partitioner import murmur2

from binwright.protocol import wire
from binwright.protocol.errors import MalformedMessage
from binwright.protocol.group_plans import GroupPlan, decode_group_plan
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.logs import log

PLAN_MALFORMED = LogEvent.warning(
    "plan.malformed", "A record of the plans topic is not a plan; it is skipped."
)

READ_S = 5.0
PLANS_TOPIC = "binwright.plans"
PLANS_PARTITIONS = 8
"""Of a new topic: an assignor reads one, with the plans of an eighth of the groups."""
PLANS_CONFIG = {
    "cleanup.policy": "compact,delete",  # a day after a group is assigned no more, its plan goes
    "retention.ms": str(24 * 3600 * 1000),
    "segment.ms": str(3600 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
}
"""Configuration of the plans topic: one record for each group."""


def plan_partition(group: str, partitions: int) -> int:
    """Return the partition of a group's plans: what Kafka's own producers choose for this key."""
    hashed: int = murmur2(group.encode())
    return (hashed & 0x7FFFFFFF) % partitions


async def publish_plan(bus: ControlTopics, topic: str, plan: GroupPlan) -> None:
    """Append a plan durably, in one record: assignors join no parts.

    Raises:
        BrokerUnavailable: Not confirmed in time.
        RecordTooLarge: The group has too many partitions, some 50,000.
        TopicMissing: The topic does not exist.
    """
    partition = plan_partition(plan.group, await bus.partitions(topic) or PLANS_PARTITIONS)
    await bus.publish(topic, partition, wire.key(plan), wire.encode(plan))


async def last_plans(
    bus: ControlTopics, topic: str, groups: Collection[str]
) -> dict[str, GroupPlan]:
    """Return the last plan of each group that has one.

    Raises:
        BrokerUnavailable: Kafka does not answer.
        TopicMissing: The topic does not exist.
    """
    plans: dict[str, GroupPlan] = {}
    count = await bus.partitions(topic)
    for partition in sorted({plan_partition(group, count) for group in groups}):
        end = await bus.end(topic, partition)
        reader = await bus.reader(topic, partition, 0)
        try:
            while reader.position < end:
                for record in await reader.read(READ_S):
                    if record.value is None:  # this group is assigned no more
                        plans.pop((record.key or b"").decode(errors="replace"), None)
                    elif (plan := decoded_plan(record.value)) is not None:
                        plans[plan.group] = plan
        finally:
            await reader.close()
    return {group: plan for group, plan in plans.items() if group in groups}


def decoded_plan(value: bytes, group: str | None = None) -> GroupPlan | None:
    """Return the plan of a record; None: it is malformed or of an unknown kind, which is logged."""
    try:
        return decode_group_plan(value)
    except MalformedMessage as exc:
        log(PLAN_MALFORMED, group=group, reason=exc.reason)
        return None
