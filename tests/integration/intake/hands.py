"""What is done to a broker while the intake reads it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as Theirs
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from tests.integration.topics import created

from binwright.consumer.intake import KafkaIntake
from binwright.core.model import TopicPartition
from binwright.core.ports import Intake, Record
from binwright.shell.settings import KafkaSettings

DEADLINE_S = 30.0


class Hands:
    """Does to the broker what the intake must cope with."""

    def __init__(self, address: str, topic: str) -> None:
        self.address, self.topic = address, topic
        self.admin = AIOKafkaAdminClient(bootstrap_servers=address)
        self.producer = AIOKafkaProducer(bootstrap_servers=address)

    def partition(self, number: int) -> TopicPartition:
        return TopicPartition(self.topic, number)

    async def make(self, partitions: int) -> None:
        await created(KafkaSettings(bootstrap_servers=self.address), self.topic, partitions)

    async def produce(self, number: int, *values: bytes) -> None:
        for value in values:
            await self.producer.send(self.topic, value, partition=number, timestamp_ms=1_000)
        await self.producer.flush()

    async def forget(self, number: int, before: int) -> None:
        await self.admin.delete_records({Theirs(self.topic, number): RecordsToDelete(before)})


@asynccontextmanager
async def ready(address: str, topic: str) -> AsyncIterator[Hands]:
    hands = Hands(address, topic)
    await hands.admin.start()
    await hands.producer.start()
    try:
        await hands.make(2)
        yield hands
    finally:
        await hands.producer.stop()
        await hands.admin.close()


def intake_of(hands: Hands, *, group: str = "g", isolation: str = "read_committed") -> KafkaIntake:
    kafka = KafkaSettings(bootstrap_servers=hands.address, request_timeout_s=10)
    return KafkaIntake(kafka, group, isolation)


async def fetched(
    intake: Intake, enough: Callable[[dict[TopicPartition, list[Record]]], bool]
) -> dict[TopicPartition, list[Record]]:
    """Fetch until there is enough."""
    found: dict[TopicPartition, list[Record]] = {}
    async with asyncio.timeout(DEADLINE_S):
        while not enough(found):
            for partition, records in (await intake.fetch(1 << 20, 1.0)).items():
                found.setdefault(partition, []).extend(records)
    return found


async def values(intake: Intake, partition: TopicPartition, count: int) -> list[bytes | None]:
    found = await fetched(intake, lambda f: len(f.get(partition, ())) >= count)
    return [record.value for record in found[partition]]


def numbered(count: int, first: int = 0) -> Sequence[bytes]:
    return [b"%d" % number for number in range(first, first + count)]
