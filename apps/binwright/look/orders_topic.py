"""Publishes what people order and approve to a group's orders topic, where they alone may write."""

from binwright.kafka.control_records import ORDERS_PARTITION
from binwright.kafka.publishing import publish_message
from binwright.protocol.errors import TopicMissing
from binwright.protocol.orders import OrderRecord
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.selection import ORDERS_SUFFIX


async def publish_order(bus: ControlTopics, group: str, order: OrderRecord) -> None:
    """Publish an order or an approval: it stands in the topic once this returns.

    Raises:
        TopicMissing: No controller of this version has led the group yet.
        BrokerUnavailable: Kafka does not answer, or this user may not give orders.
    """
    topic = f"{group}{ORDERS_SUFFIX}"
    if not await bus.partitions(topic):
        raise TopicMissing(
            f"there is no topic {topic}: a controller creates it when it leads the group, and one "
            "of an older version takes no orders from there"
        )
    await publish_message(bus, topic, ORDERS_PARTITION, order)
