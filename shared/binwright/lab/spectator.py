"""Keeps a `Picture` up to date from the two topics."""

import asyncio

from binwright.core.ports import Bus, Reader
from binwright.lab.picture import Picture
from binwright.shell.letters import INBOX, METRICS_PARTITION, inbound, measurements


async def spectate(bus: Bus, metadata_topic: str, metrics_topic: str, picture: Picture) -> None:
    """Fold both topics into `picture`, from their beginning and for ever.

    Raises:
        TopicMissing: One of the topics is not there.
        BrokerUnavailable: Kafka does not answer.
    """
    heard = await bus.reader(metadata_topic, INBOX, 0)
    measured = await bus.reader(metrics_topic, METRICS_PARTITION, 0)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_hear(heard, picture))
            tasks.create_task(_measure(measured, picture))
    finally:
        await heard.close()
        await measured.close()


async def _hear(reader: Reader, picture: Picture) -> None:
    async for record, message in inbound(reader):
        picture.heard(record.offset, record.timestamp_ms, message)


async def _measure(reader: Reader, picture: Picture) -> None:
    async for _, measurement in measurements(reader):
        picture.measured(measurement)
