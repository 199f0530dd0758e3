"""The topic of plans for ordinary consumer groups: its partitions, and how plans are published."""

from aiokafka.partitioner import murmur2

from binwright.protocol import wire
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.ports.kafka import ControlTopics

PLANS_TOPIC = "binwright.plans"
PLANS_PARTITIONS = 8
"""Of a new topic: an assignor reads one, with the plans of an eighth of the groups."""
PLANS_CONFIG = {
    "cleanup.policy": "compact,delete",  # a day after a group is steered no more, its plan goes
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
