"""Keep a `GroupView` up to date from the group's metadata topic and the metrics topic."""

import asyncio

from binwright.kafka.control_records import (
    CONTROLLER_PARTITION,
    METRICS_PARTITION,
    inbound,
    measurements,
)
from binwright.protocol.ports.kafka import ControlTopics, Reader
from binwright.views.group_view import GroupView


async def watch_group(
    bus: ControlTopics, metadata_topic: str, metrics_topic: str, view: GroupView
) -> None:
    """Fold both topics into `view`, from their beginning, until cancelled.

    Raises:
        TopicMissing: One of the topics does not exist.
        BrokerUnavailable: Kafka does not answer.
    """
    metadata = await bus.reader(metadata_topic, CONTROLLER_PARTITION, 0)
    metrics = await bus.reader(metrics_topic, METRICS_PARTITION, 0)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_follow_metadata(metadata, view))
            tasks.create_task(_follow_metrics(metrics, view))
    finally:
        await metadata.close()
        await metrics.close()


async def _follow_metadata(reader: Reader, view: GroupView) -> None:
    async for record, message in inbound(reader):
        view.apply(record.offset, record.timestamp_ms, message)


async def _follow_metrics(reader: Reader, view: GroupView) -> None:
    async for _, measurement in measurements(reader):
        view.apply_measurement(measurement)
