"""How clients are opened, and what their errors become."""

import ssl
from pathlib import Path

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError, UnknownTopicOrPartitionError
from pydantic import SecretStr

from binwright.kafka.client import client_options, translate_errors
from binwright.protocol.errors import BrokerUnavailable, SettingsError, TopicMissing
from binwright.runtime.settings.kafka import KafkaSettings

SASL = {"sasl_username": "ann", "sasl_password": SecretStr("xyzzy")}


async def test_plain_options_are_address_name_and_patience() -> None:
    options = client_options(KafkaSettings(bootstrap_servers="a:1,b:2", request_timeout_s=1.5))
    assert options["bootstrap_servers"] == "a:1,b:2"
    assert options["client_id"] == "binwright"
    assert options["request_timeout_ms"] == 1500
    assert options["security_protocol"] == "PLAINTEXT"
    assert options["ssl_context"] is options["sasl_plain_password"] is None


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl_options_hold_user_and_password(mechanism: str) -> None:
    kafka = KafkaSettings.model_validate(
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism, **SASL}
    )
    options = client_options(kafka)
    assert options["sasl_mechanism"] == mechanism
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("ann", "xyzzy")
    assert options["ssl_context"] is None


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_tls_checks_the_broker_by_name(protocol: str) -> None:
    user = SASL if protocol == "SASL_SSL" else {}
    kafka = KafkaSettings.model_validate({"security_protocol": protocol, **user})
    context = client_options(kafka)["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_certificate_that_cannot_be_used_is_the_settings_fault(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if text:
        file.write_text(text)
    with pytest.raises(SettingsError, match=r"ssl_ca_file.*ca\.pem"):
        client_options(KafkaSettings(security_protocol="SSL", ssl_ca_file=file))


@pytest.mark.parametrize(
    ("foreign", "ours", "result"),
    [
        (UnknownTopicOrPartitionError(), TopicMissing, "no such topic"),
        (KafkaConnectionError("gone"), BrokerUnavailable, "gone"),
        (KafkaError(), BrokerUnavailable, "KafkaError"),
        (ConnectionResetError(), BrokerUnavailable, "ConnectionResetError"),
        (TimeoutError(), BrokerUnavailable, "no answer in time"),
    ],
)
def test_errors_of_aiokafka_are_translated_with_their_cause(
    foreign: Exception, ours: type[Exception], result: str
) -> None:
    with pytest.raises(ours, match=f"try it: .*{result}") as caught, translate_errors("try it"):
        raise foreign
    assert caught.value.__cause__ is foreign


def test_our_own_bugs_are_not_translated() -> None:
    with pytest.raises(ZeroDivisionError), translate_errors("try it"):
        raise ZeroDivisionError
