"""Every client of ours writes and reads over TLS, with each way to prove who it is."""

import asyncio

import pytest
from tests.integration.intake.data_topic import values
from tests.integration.security.secured_broker import WAYS, SecuredBroker
from tests.integration.topics import create_topic

from binwright.consumer.read.data_reader import KafkaDataReader
from binwright.kafka.client import LATEST, ClusterClient, client_options
from binwright.kafka.control_records import METADATA_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.election import run_election
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.assignor import follow_plans
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0
LOAD = Pacing(row_s=0.2, bytes_per_per_cent=10_000, record_bytes=500)


@pytest.fixture(params=WAYS)
def kafka(request: pytest.FixtureRequest, secured: SecuredBroker) -> KafkaSettings:
    return secured.connection(request.param)


@pytest.fixture
async def topic(secured: SecuredBroker, kafka: KafkaSettings) -> str:
    """A topic for each way to connect."""
    name = f"secured-{kafka.bootstrap_servers.rpartition(':')[2]}-{kafka.sasl_mechanism}"
    owner = secured.owner()
    async with ClusterClient(owner) as cluster:
        if not await cluster.leaders(name):
            await create_topic(owner, name, 1)
    return name


async def test_control_topics_are_made_written_and_read(kafka: KafkaSettings, topic: str) -> None:
    async with asyncio.timeout(DEADLINE_S), KafkaControlTopics(kafka) as bus:
        metadata = f"{topic}.metadata"
        await bus.ensure(metadata, 1, METADATA_CONFIG)
        offset = await bus.publish(metadata, 0, b"key", b"value")
        reader = await bus.reader(metadata, 0, offset)
        try:
            records = await reader.read(DEADLINE_S)
        finally:
            await reader.close()
    assert [record.value for record in records] == [b"value"]


async def test_a_load_is_confirmed_counted_and_read(kafka: KafkaSettings, topic: str) -> None:
    """librdkafka writes, binwright's own requests ask for the end, the data reader reads."""
    partition = TopicPartition(topic, 0)
    async with asyncio.timeout(DEADLINE_S), ClusterClient(kafka) as cluster:
        (broker,) = (await cluster.leaders(topic)).values()
        begins = (await cluster.offsets(broker, {topic: [0]}, LATEST))[topic, 0]
        result = await run_load([{partition: PerCent(5)}], kafka, LOAD)
        ends = (await cluster.offsets(broker, {topic: [0]}, LATEST))[topic, 0]
        async with KafkaDataReader(kafka, f"{topic}-readers") as intake:
            await intake.start(partition, begins)
            read = await values(intake, partition, ends - begins)
    assert len(read) == ends - begins == result.partitions[partition].records > 0


async def test_a_controller_becomes_the_leader(kafka: KafkaSettings, topic: str) -> None:
    leads = asyncio.Event()

    async def lead() -> None:
        leads.set()
        await asyncio.Event().wait()

    election = asyncio.create_task(
        run_election(client_options(kafka), topic, f"{topic}-controllers", lead)
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            await leads.wait()
    finally:
        election.cancel()
        await asyncio.wait([election])


async def test_a_member_with_the_assignor_reads_plans(kafka: KafkaSettings, topic: str) -> None:
    async with follow_plans("orders", topic=topic, **client_options(kafka)) as plans:
        async with asyncio.timeout(DEADLINE_S):
            await plans.has_read.wait()
