"""Connections that cannot be: one sentence each, which names what to check, and no secret."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.security.commands import status
from tests.integration.security.issuer import Issuer, run_token_endpoint
from tests.integration.security.secured_broker import PASSWORD, USER, SecuredBroker

from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

pytestmark = pytest.mark.integration

WRONG = "wrong-secret"


def changed(way: str, **changes: Any) -> "Section":
    """Return what gives the section `kafka` of one way to connect, with changes."""
    return lambda secured: secured.settings(way, **changes)


def as_client(name: str, *, valid_s: float = 3600.0, known: bool = True) -> "Section":
    """Return what gives the section of a client certificate that the broker must refuse."""

    def section(secured: SecuredBroker) -> dict[str, Any]:
        authority = secured.authority if known else secured.untrusted
        certificate, key = authority.client(name, valid_s=valid_s)
        return secured.settings("MUTUAL", ssl_certificate_file=certificate, ssl_key_file=key)

    return section


def by_token(*, valid_s: float = 3600.0, known: bool = True) -> "Section":
    """Return what gives the section of a token that the broker must refuse."""

    def section(secured: SecuredBroker) -> dict[str, Any]:
        file = secured.issuer.file.with_name("refused-token")
        issuer = secured.issuer if known else Issuer(file.with_name("other.json"))
        file.write_text(issuer.token(USER, valid_s=valid_s))
        return secured.settings("OAUTHBEARER", sasl_token_file=file)

    return section


def to_open_listener(secured: SecuredBroker) -> dict[str, Any]:
    """Return the section of TLS to a listener without it."""
    return secured.settings("TLS", bootstrap_servers=secured.owner().bootstrap_servers)


def other_authority(secured: SecuredBroker) -> dict[str, Any]:
    """Return the section with an authority that has not signed the broker's certificate."""
    return secured.settings("TLS", ssl_ca_file=secured.untrusted.ca_file)


Section = Callable[[SecuredBroker], dict[str, Any]]
REFUSALS: dict[str, tuple[Section, str]] = {
    "wrong authority": (
        other_authority,
        "unable to get local issuer certificate.* Check that kafka.ssl_ca_file",
    ),
    "wrong host name": (
        changed("MISNAMED"),
        "not valid for '127.0.0.1'.* Check that the certificate names this host",
    ),
    "expired certificate": (
        changed("EXPIRED"),
        "has expired.* Check that the broker's certificate is renewed",
    ),
    "no client certificate": (
        changed("MUTUAL", ssl_certificate_file=None, ssl_key_file=None),
        "wants a client certificate.* Check kafka.ssl_certificate_file and",
    ),
    "unknown client": (
        as_client("eve", known=False),
        r"certificate unknown.* Check that kafka.ssl_certificate_file \(.*eve.pem\)",
    ),
    "expired client": (
        as_client("old", valid_s=-5),
        r"certificate unknown.* Check that kafka.ssl_certificate_file \(.*old.pem\)",
    ),
    "wrong password, PLAIN": (
        changed("PLAIN", sasl_password=WRONG),
        "Invalid username or password. Check .* knows ann by PLAIN",
    ),
    "wrong password, SCRAM": (
        changed("SCRAM-SHA-512", sasl_password=WRONG),
        "invalid credentials .* Check .* knows ann by SCRAM-SHA-512",
    ),
    "expired token": (
        by_token(valid_s=-5),
        "invalid_token.* Check .* of tokens from .*/refused-token",
    ),
    "token of another issuer": (
        by_token(known=False),
        "invalid_token.* Check .* of tokens from .*/refused-token",
    ),
    "TLS to an open listener": (
        to_open_listener,
        "Check that a broker listens at .* speaks SSL",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_command_names_what_to_check_in_one_sentence(
    secured: SecuredBroker, name: str
) -> None:
    section, sentence = REFUSALS[name]
    done = await status(section(secured))
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert re.search(sentence, line), line
    assert not done.stdout
    assert PASSWORD not in line
    assert WRONG not in line


@pytest.mark.parametrize(
    "name", ["wrong authority", "unknown client", "wrong password, SCRAM", "expired token"]
)
async def test_a_load_names_what_to_check_in_one_sentence(
    secured: SecuredBroker, name: str
) -> None:
    """librdkafka itself says that the transport has failed, and no more."""
    section, sentence = REFUSALS[name]
    kafka = KafkaSettings.model_validate(section(secured) | {"request_timeout_s": 1.0})
    load = Pacing(row_s=0.2, bytes_per_per_cent=10_000, record_bytes=500)
    with pytest.raises(BrokerUnavailable, match=sentence):
        await run_load([{TopicPartition("orders", 0): PerCent(5)}], kafka, load)


async def test_an_endpoint_that_knows_no_such_client_is_named(secured: SecuredBroker) -> None:
    async with run_token_endpoint(secured.issuer, "ann", "another") as endpoint:
        client = {"sasl_username": "ann", "sasl_password": WRONG}
        done = await status(
            secured.settings(
                "OAUTHBEARER", sasl_token_file=None, sasl_token_url=endpoint.url, **client
            )
        )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"{endpoint.url} gives no token: 401 invalid_client. Check kafka.sasl_token_" in line
    assert WRONG not in line


async def test_a_file_that_is_no_certificate_is_a_fault_of_the_settings(
    secured: SecuredBroker,
) -> None:
    done = await status(secured.settings("TLS", ssl_ca_file="/no/such/ca.pem"))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert re.search(r"kafka.ssl_ca_file.*\(/no/such/ca.pem\).* must be a PEM file", line), line
