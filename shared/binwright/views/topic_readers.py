"""Open the topics that a view is folded from: the metadata history, and the recent measurements."""

from binwright.kafka.control_records import CONTROLLER_PARTITION, METRICS_PARTITION
from binwright.protocol.ports.kafka import ControlTopics, Reader

RECENT = 500
"""Measurements read from the end of the metrics topic: enough for the latest of every topic."""


async def read_history(bus: ControlTopics, topic: str) -> tuple[Reader, int]:
    """Open a group's metadata topic at its beginning.

    Returns:
        A reader to be closed, and the end of the topic by now: the `history_end` of a `Decoder`.

    Raises:
        TopicMissing: The topic does not exist.
        BrokerUnavailable: Kafka does not answer.
    """
    end = await bus.end(topic, CONTROLLER_PARTITION)
    return await bus.reader(topic, CONTROLLER_PARTITION, 0), end


async def read_recent_measurements(
    bus: ControlTopics, topic: str, count: int = RECENT
) -> tuple[Reader, int]:
    """Open the metrics topic at its last `count` measurements.

    Returns:
        A reader to be closed, and the end of the topic by now.

    Raises:
        TopicMissing: The topic does not exist.
        BrokerUnavailable: Kafka does not answer.
    """
    end = await bus.end(topic, METRICS_PARTITION)
    return await bus.reader(topic, METRICS_PARTITION, max(0, end - count)), end
