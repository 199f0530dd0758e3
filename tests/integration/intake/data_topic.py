"""What is done to a broker while the intake reads it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from tests.integration.topics import create_topic

from binwright.consumer.read.data_reader import KafkaDataReader
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import DataReader, Record
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.testing.records import in_rows

DEADLINE_S = 30.0


class DataTopic:
    """Does to the broker what the intake must cope with."""

    def __init__(self, address: str, topic: str) -> None:
        self.address, self.topic = address, topic
        self.admin = AIOKafkaAdminClient(bootstrap_servers=address)
        self.producer = AIOKafkaProducer(bootstrap_servers=address)

    def partition(self, number: int) -> TopicPartition:
        return TopicPartition(self.topic, number)

    async def create(self, partitions: int) -> None:
        await create_topic(KafkaSettings(bootstrap_servers=self.address), self.topic, partitions)

    async def produce(self, number: int, *values: bytes) -> None:
        for value in values:
            await self.producer.send(self.topic, value, partition=number, timestamp_ms=1_000)
        await self.producer.flush()

    async def delete_before(self, number: int, before: int) -> None:
        await self.admin.delete_records(
            {KafkaPartition(self.topic, number): RecordsToDelete(before)}
        )


@asynccontextmanager
async def new_data_topic(address: str, topic: str) -> AsyncIterator[DataTopic]:
    data_topic = DataTopic(address, topic)
    await data_topic.admin.start()
    await data_topic.producer.start()
    try:
        await data_topic.create(2)
        yield data_topic
    finally:
        await data_topic.producer.stop()
        await data_topic.admin.close()


def new_intake(
    data_topic: DataTopic, *, group: str = "g", isolation: str = "read_committed"
) -> KafkaDataReader:
    kafka = KafkaSettings(bootstrap_servers=data_topic.address, request_timeout_s=10)
    return KafkaDataReader(kafka, group, isolation)


async def fetch_until(
    intake: DataReader, enough: Callable[[dict[TopicPartition, list[Record]]], bool]
) -> dict[TopicPartition, list[Record]]:
    """Fetch until there is enough."""
    found: dict[TopicPartition, list[Record]] = {}
    async with asyncio.timeout(DEADLINE_S):
        while not enough(found):
            for partition, records in (await intake.fetch(1 << 20, 1.0)).items():
                found.setdefault(partition, []).extend(in_rows([records]))
    return found


async def values(intake: DataReader, partition: TopicPartition, count: int) -> list[bytes | None]:
    found = await fetch_until(intake, lambda f: len(f.get(partition, ())) >= count)
    return [record.value for record in found[partition]]


def numbered_values(count: int, first: int = 0) -> Sequence[bytes]:
    return [b"%d" % number for number in range(first, first + count)]
