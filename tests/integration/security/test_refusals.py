"""Connections that cannot be: one sentence each, which names what to check, and no secret."""

import re
from typing import Any

import pytest
from tests.integration.security.commands import status
from tests.integration.security.secured_broker import PASSWORD, SecuredBroker

from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.recordings.load import run_load
from binwright.recordings.load_pacing import Load
from binwright.recordings.streams import PerCent
from binwright.runtime.settings import KafkaSettings

pytestmark = pytest.mark.integration

WRONG = "wrong-secret"
REFUSALS = {
    "wrong authority": "unable to get local issuer certificate.* Check that kafka.ssl_ca_file",
    "wrong host name": "not valid for '127.0.0.1'.* Check that the certificate names this host",
    "expired certificate": "has expired.* Check that the broker's certificate is renewed",
    "no client certificate": "wants a client certificate.* Check kafka.ssl_certificate_file and",
    "unknown client": r"certificate unknown.* Check that kafka.ssl_certificate_file \(.*eve.pem\)",
    "expired client": r"certificate unknown.* Check that kafka.ssl_certificate_file \(.*old.pem\)",
    "wrong password, PLAIN": "Invalid username or password. Check .* knows ann by PLAIN",
    "wrong password, SCRAM": "invalid credentials .* Check .* knows ann by SCRAM-SHA-512",
    "TLS to an open listener": "Check that a broker listens at .* speaks SSL",
}


def refused(secured: SecuredBroker, name: str) -> dict[str, Any]:
    """Return the section `kafka` of a connection that the broker or the client must refuse."""
    match name:
        case "wrong authority":
            return secured.settings("TLS", ssl_ca_file=secured.untrusted.ca_file)
        case "wrong host name":
            return secured.settings("MISNAMED")
        case "expired certificate":
            return secured.settings("EXPIRED")
        case "no client certificate":
            return secured.settings("MUTUAL", ssl_certificate_file=None, ssl_key_file=None)
        case "unknown client" | "expired client":
            signed_by_another = name == "unknown client"
            pair = (
                secured.untrusted.client("eve")
                if signed_by_another
                else secured.authority.client("old", valid_s=-5)
            )
            return secured.settings("MUTUAL", ssl_certificate_file=pair[0], ssl_key_file=pair[1])
        case "wrong password, PLAIN":
            return secured.settings("PLAIN", sasl_password=WRONG)
        case "wrong password, SCRAM":
            return secured.settings("SCRAM-SHA-512", sasl_password=WRONG)
        case "TLS to an open listener":
            open_listener = secured.owner().bootstrap_servers
            return secured.settings("TLS", bootstrap_servers=open_listener)
    raise AssertionError(name)


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_command_names_what_to_check_in_one_sentence(
    secured: SecuredBroker, name: str
) -> None:
    done = await status(refused(secured, name))
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert re.search(REFUSALS[name], line), line
    assert not done.stdout
    assert PASSWORD not in line
    assert WRONG not in line


@pytest.mark.parametrize("name", ["wrong authority", "unknown client", "wrong password, SCRAM"])
async def test_a_load_names_what_to_check_in_one_sentence(
    secured: SecuredBroker, name: str
) -> None:
    """librdkafka itself says that the transport has failed, and no more."""
    kafka = KafkaSettings.model_validate(refused(secured, name) | {"request_timeout_s": 1.0})
    load = Load(row_s=0.2, bytes_per_per_cent=10_000, record_bytes=500)
    with pytest.raises(BrokerUnavailable, match=REFUSALS[name]):
        await run_load([{TopicPartition("orders", 0): PerCent(5)}], kafka, load)


async def test_a_file_that_is_no_certificate_is_a_fault_of_the_settings(
    secured: SecuredBroker,
) -> None:
    done = await status(secured.settings("TLS", ssl_ca_file="/no/such/ca.pem"))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert re.search(r"kafka.ssl_ca_file.*\(/no/such/ca.pem\).* must be a PEM file", line), line
