"""What tests of control topics do to a broker and its readers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from binwright.kafka.client import client_options
from binwright.protocol.ports.kafka import Reader, Record
from binwright.runtime.settings.kafka import KafkaSettings

DEADLINE_S = 60.0


def settings(bootstrap: str, patience_s: float = 30.0) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=bootstrap, request_timeout_s=patience_s)


@asynccontextmanager
async def admin_client(broker: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(**client_options(settings(broker)))
    await admin.start()
    yield admin
    await admin.close()


async def delete_records_before(broker: str, topic: str, offset: int) -> None:
    """Have retention take what is below `offset`."""
    async with admin_client(broker) as admin:
        below = RecordsToDelete(before_offset=offset)
        await admin.delete_records({TopicPartition(topic, 0): below})


async def read(reader: Reader, count: int) -> list[Record]:
    records: list[Record] = []
    while len(records) < count:
        records += await reader.read(1.0)
    return records
