"""A client that lives on connects with what its files hold now."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from tests.integration.security.commands import status
from tests.integration.security.secured_broker import PASSWORD, USER, SecuredBroker
from tests.integration.topics import create_topic

from binwright.kafka.aiokafka_patches import inner_client, keep_to_own_topics
from binwright.kafka.client import ClusterClient, client_options
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0
SESSION_S, SESSIONS = 3.0, 4
KEY_PASSWORD = "of the key"  # noqa: S105 - of keys that live as long as a test


@dataclass(frozen=True, slots=True)
class Renewal:
    """A connection with files, and what writes them."""

    kafka: KafkaSettings
    renew: Callable[[], object]
    spoil: Callable[[], object]
    """Writes what the broker or the client does not accept."""


def renewal(secured: SecuredBroker, directory: Path, name: str) -> Renewal:
    if name == "client certificate":
        kafka = secured.connection("MUTUAL")
        certificate, key = kafka.ssl_certificate_file, kafka.ssl_key_file
        assert certificate
        assert key

        def spoil() -> None:
            of_others = secured.untrusted.client("eve")
            certificate.write_bytes(of_others[0].read_bytes())
            key.write_bytes(of_others[1].read_bytes())

        return Renewal(kafka, lambda: secured.authority.client(USER), spoil)
    file = directory / "file"
    if name == "authority":
        good, bad = secured.authority.ca_file.read_text(), secured.untrusted.ca_file.read_text()
        kafka = secured.connection("TLS", ssl_ca_file=file)
    elif name == "OAUTHBEARER":
        good, bad = secured.issuer.token(USER), secured.issuer.token(USER, valid_s=-5)
        kafka = secured.connection(name, sasl_token_file=file)
    else:
        good, bad = f"{PASSWORD}\n", "another password"
        kafka = secured.connection(name, sasl_password=None, sasl_password_file=file)
    return Renewal(kafka, lambda: file.write_text(good), lambda: file.write_text(bad))


@pytest.mark.parametrize(
    "name", ["client certificate", "authority", "PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"]
)
async def test_a_new_connection_takes_renewed_files(
    secured: SecuredBroker, tmp_path: Path, name: str
) -> None:
    files = renewal(secured, tmp_path, name)
    files.renew()
    async with asyncio.timeout(DEADLINE_S):
        producer = AIOKafkaProducer(**client_options(files.kafka))
        keep_to_own_topics(producer)
        await producer.start()
        try:
            assert await answered(producer)
            files.spoil()
            assert await answered(producer), "open connections go on"
            await hang_up(producer)
            assert not await answered(producer)
            files.renew()
            assert await answered(producer)
        finally:
            await producer.stop()


async def answered(producer: AIOKafkaProducer) -> bool:
    """Return whether the broker answers, on the connection there is or on a new one."""
    return bool(await inner_client(producer).force_metadata_update())


async def test_requests_go_on_from_one_session_to_the_next(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    """A broker hangs up where a token has expired; clients move to another connection before."""
    file = tmp_path / "token"

    async def renew() -> None:
        while True:
            file.write_text(secured.issuer.token(USER, valid_s=SESSION_S))
            await asyncio.sleep(SESSION_S / 3)

    file.write_text(secured.issuer.token(USER, valid_s=SESSION_S))
    kafka = secured.connection("OAUTHBEARER", sasl_token_file=file)
    topic, sent = "sessions", 0
    await create_topic(secured.owner(), topic, 1)
    options = client_options(kafka)
    connections: set[object] = set()
    async with asyncio.timeout(DEADLINE_S), background_tasks(renew()):
        producer = AIOKafkaProducer(**options, retry_backoff_ms=60_000)
        consumer = AIOKafkaConsumer(topic, **options, auto_offset_reset="earliest")
        async with producer, consumer:
            while len(connections) < SESSIONS:
                assert await answered(producer)
                connections |= set(inner_client(producer)._conns.values())
                await producer.send_and_wait(topic, b"%d" % sent)
                assert (await consumer.getone()).value == b"%d" % sent
                sent += 1


async def hang_up(producer: AIOKafkaProducer) -> None:
    """Close the client's connections."""
    client = inner_client(producer)
    await asyncio.gather(*(each.close() for each in list(client._conns.values())))


async def test_files_that_do_not_fit_together_leave_the_last_in_use(secured: SecuredBroker) -> None:
    """A certificate is replaced before its key, or after it."""
    kafka = secured.connection("MUTUAL")
    assert kafka.ssl_certificate_file
    assert kafka.ssl_key_file
    async with asyncio.timeout(DEADLINE_S):
        async with AIOKafkaProducer(**client_options(kafka)) as producer:
            kafka.ssl_certificate_file.write_bytes(secured.untrusted.client("eve")[0].read_bytes())
            await hang_up(producer)
            assert await answered(producer)
            kafka.ssl_key_file.unlink()
            await hang_up(producer)
            assert await answered(producer)


async def test_a_key_may_have_a_password(secured: SecuredBroker, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{KEY_PASSWORD}\n")
    certificate, key = secured.authority.client("bob", password=KEY_PASSWORD)
    pair = {"ssl_certificate_file": certificate, "ssl_key_file": key}
    kafka = secured.connection("MUTUAL", **pair, ssl_key_password_file=file)
    async with asyncio.timeout(DEADLINE_S), ClusterClient(kafka) as cluster:
        assert await cluster.brokers() == 1


async def test_a_key_without_its_password_is_a_fault_of_the_settings(
    secured: SecuredBroker,
) -> None:
    """OpenSSL would ask the terminal for it."""
    certificate, key = secured.authority.client("bob", password=KEY_PASSWORD)
    done = await status(
        secured.settings("MUTUAL", ssl_certificate_file=certificate, ssl_key_file=key)
    )
    assert done.returncode == 2
    assert re.match("binwright: kafka.* ssl_key_password_file cannot be used", done.stderr)
