"""Clients of ours prove who they are by tickets: what works, what is refused, what is renewed."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.deploy.kerberos.conftest import USER, KerberosBroker
from tests.deploy.kerberos.kdc import TICKET_S, Kdc
from tests.integration.authorization import TOPIC, CreateAcls, acl
from tests.integration.intake.data_topic import values
from tests.integration.security.commands import status
from tests.integration.topics import create_topic

from binwright.consumer.reading.data_reader import KafkaDataReader
from binwright.kafka.client import LATEST, ClusterClient
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.server import reserve_port
from binwright.protocol.errors import BrokerUnavailable, SettingsError
from binwright.protocol.model import TopicPartition
from binwright.recordings.load import run_load
from binwright.recordings.load_pacing import Load
from binwright.recordings.streams import PerCent

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

DEADLINE_S = 60.0
RECORDS = 50
ONE = TopicPartition("orders", 0)


@pytest.fixture
def become(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str]], None]:
    """Give this process the variables of a client."""

    def become(client: Mapping[str, str]) -> None:
        for name, value in client.items():
            monkeypatch.setenv(name, value)

    return become


async def allow(broker: KerberosBroker, user: str, topic: str) -> None:
    """Let a user write and read a topic, which is made."""
    rules = [acl(user, operation, TOPIC, topic) for operation in ("Read", "Write", "Describe")]
    await create_topic(broker.owner, topic, 1)
    async with ClusterClient(broker.owner) as cluster:
        await cluster.send_to_controller(CreateAcls(rules))


async def write_and_read(broker: KerberosBroker, topic: str) -> int:
    """Return how many records the topic has after one more was written and all were read."""
    async with KafkaControlTopics(broker.kafka) as bus:
        await bus.publish(topic, 0, b"key", b"value")
    partition = TopicPartition(topic, 0)
    async with ClusterClient(broker.kafka) as cluster:
        (node,) = (await cluster.leaders(topic)).values()
        end = (await cluster.offsets(node, {topic: [0]}, LATEST))[topic, 0]
        async with KafkaDataReader(broker.kafka, f"{topic}-readers") as intake:
            await intake.start(partition, 0)
            return len(await values(intake, partition, end))


async def test_a_keytab_writes_and_reads_what_its_principal_may(
    broker: KerberosBroker, become: Callable[[Mapping[str, str]], None]
) -> None:
    become(broker.kdc.client(broker.kdc.keytab(USER), "reader"))
    await allow(broker, USER, "of-ann")
    await create_topic(broker.owner, "of-bob", 1)
    async with asyncio.timeout(DEADLINE_S):
        assert await write_and_read(broker, "of-ann") == 1
        async with KafkaControlTopics(broker.kafka) as bus:
            with pytest.raises(BrokerUnavailable, match=r"[Aa]uthoriz"):
                await bus.publish("of-bob", 0, b"key", b"value")


async def test_a_ticket_that_ends_is_renewed_from_the_keytab(
    broker: KerberosBroker, become: Callable[[Mapping[str, str]], None]
) -> None:
    become(broker.kdc.client(broker.kdc.keytab("carl"), "renewed"))
    await allow(broker, "carl", "of-carl")
    began = time.monotonic()
    async with asyncio.timeout(DEADLINE_S):
        written = 0
        while time.monotonic() - began < 1.5 * TICKET_S:
            written += 1
            assert await write_and_read(broker, "of-carl") == written
            await asyncio.sleep(TICKET_S / 4)


def without_a_keytab(kdc: Kdc) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what changes of the settings, and the client's variables."""
    return {}, kdc.client(None, "nobody")


def with_old_keys(kdc: Kdc) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a keytab that was copied before its principal got new keys."""
    keytab = kdc.keytab("dora")
    old = keytab.rename(keytab.with_name("old.keytab"))
    kdc.keytab("dora")
    return {}, kdc.client(old, "dora")


def without_a_server(kdc: Kdc) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a client whose configuration names a server that is away."""
    with reserve_port() as port:
        away = {"KRB5_CONFIG": str(kdc.client_file(port))}
    return {}, kdc.client(kdc.keytab("emil"), "emil") | away


def of_another_service(kdc: Kdc) -> tuple[dict[str, Any], dict[str, str]]:
    """Return settings with a service that the server does not know."""
    return {"sasl_kerberos_service_name": "rabbit"}, kdc.client(kdc.keytab("fay"), "fay")


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (without_a_keytab, "no ticket: No Kerberos credentials"),
        (with_old_keys, "no ticket: (Preauthentication failed|Decrypt integrity)"),
        (without_a_server, "no ticket: Cannot contact any KDC"),
        (of_another_service, "no ticket: .* not found in Kerberos database"),
    ],
)
async def test_a_refusal_is_one_sentence(
    broker: KerberosBroker,
    client: Callable[[Kdc], tuple[dict[str, Any], dict[str, str]]],
    reason: str,
    become: Callable[[Mapping[str, str]], None],
) -> None:
    changes, variables = client(broker.kdc)
    become(variables)
    done = await status(broker.section | changes)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "Check the keytab (KRB5_CLIENT_KTNAME) or the ticket (KRB5CCNAME)" in line
    assert re.search(reason, line), line


async def test_a_load_is_refused(broker: KerberosBroker) -> None:
    load = Load(row_s=0.2, bytes_per_per_cent=10_000, record_bytes=500)
    with pytest.raises(SettingsError, match="librdkafka, whose wheels have no Kerberos"):
        await run_load([{ONE: PerCent(5)}], broker.kafka, load)
