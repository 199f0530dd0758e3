"""Tokens that an identity provider gives to the client's id and secret."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.security.issuer import run_token_endpoint
from tests.integration.security.secured_broker import SecuredBroker
from tests.integration.topics import create_topic

from binwright.kafka.client import LATEST, ClusterClient, client_options
from binwright.kafka.token_providers import ENTRY_POINTS
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

pytestmark = pytest.mark.integration

DEADLINE_S = 60.0
USER, SECRET = "ann", "secret of ann"
CLIENT = {"sasl_username": USER, "sasl_password": SECRET}
TOPIC, SCOPE = "secured-by-tokens", "kafka"


def connection(secured: SecuredBroker, url: str) -> KafkaSettings:
    return secured.connection(
        "OAUTHBEARER", sasl_token_file=None, sasl_token_url=url, sasl_token_scope=SCOPE, **CLIENT
    )


@pytest.fixture
async def topic(secured: SecuredBroker) -> str:
    await create_topic(secured.owner(), TOPIC, 1)
    return TOPIC


async def test_records_are_confirmed_while_tokens_expire_and_are_renewed(
    secured: SecuredBroker, topic: str
) -> None:
    """The broker ends a connection when its token expires; librdkafka renews it before that."""
    async with (
        asyncio.timeout(DEADLINE_S),
        run_token_endpoint(secured.issuer, USER, SECRET) as endpoint,
    ):
        endpoint.valid_s = 2.0
        kafka = connection(secured, endpoint.url)
        load = Pacing(row_s=4.0, bytes_per_per_cent=1_000, record_bytes=500)
        loading = asyncio.create_task(
            run_load([{TopicPartition(topic, 0): PerCent(20)}], kafka, load)
        )
        sent = 0
        async with AIOKafkaProducer(**client_options(kafka), enable_idempotence=True) as producer:
            while len(endpoint.scopes) < 6 or not loading.done():
                await producer.send_and_wait(topic, b"value", partition=0)
                sent += 1
                await asyncio.sleep(0.01)
        result = await loading
        async with ClusterClient(secured.owner()) as cluster:
            (broker,) = (await cluster.leaders(topic)).values()
            end = (await cluster.offsets(broker, {topic: [0]}, LATEST))[topic, 0]
    assert end == sent + result.partitions[TopicPartition(topic, 0)].records
    assert set(endpoint.scopes) == {SCOPE}


PROVIDER = """
import time
def token(servers):
    with open({file!r}) as file:
        return file.read(), time.time() + 60
"""


async def test_the_broker_accepts_the_tokens_of_an_installed_provider(
    secured: SecuredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "secured-by-a-provider"
    await create_topic(secured.owner(), topic, 1)
    file, described = tmp_path / "token", tmp_path / "ours-1.dist-info"
    file.write_text(secured.issuer.token(USER))
    (tmp_path / "provider_of_a_file.py").write_text(PROVIDER.format(file=str(file)))
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    (described / "entry_points.txt").write_text(
        f"[{ENTRY_POINTS}]\nof-a-file = provider_of_a_file:token\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    kafka = secured.connection("OAUTHBEARER", sasl_token_file=None, sasl_token_provider="of-a-file")  # noqa: S106 - a name
    async with asyncio.timeout(DEADLINE_S), AIOKafkaProducer(**client_options(kafka)) as producer:
        await producer.send_and_wait(topic, b"value", partition=0)
