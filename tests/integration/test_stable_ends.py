"""An open transaction on a real broker: where consumers that read committed records stop."""

import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.topics import create_topic

from binwright.kafka.stable_ends import stable_ends
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration


async def test_an_open_transaction_ends_what_is_stable_until_it_ends(broker: str) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker)
    await create_topic(kafka, "held", 2)
    first, second = (TopicPartition("held", number) for number in range(2))
    nowhere = TopicPartition("of.no.topic", 0)
    async with AIOKafkaProducer(bootstrap_servers=broker, transactional_id="held") as producer:
        async with producer.transaction():
            await producer.send_and_wait("held", b"a", partition=0)
        await producer.begin_transaction()
        await producer.send_and_wait("held", b"b", partition=0)
        asked = {first, second, nowhere}
        assert await stable_ends(kafka, asked) == {first: 2, second: 0}, "behind the first's marker"
        await producer.commit_transaction()
        assert (await stable_ends(kafka, asked))[first] == 4
