"""Errors of connections in words; `tests/integration/security` has those of a real broker."""

import ssl
from pathlib import Path

import pytest
from aiokafka.errors import KafkaConnectionError

from binwright.kafka.connection_faults import connection_fault, general_checks
from binwright.runtime.settings.kafka import KafkaSettings

PLAIN = KafkaSettings()
MUTUAL = KafkaSettings(
    security_protocol="SSL", ssl_certificate_file=Path("/a.pem"), ssl_key_file=Path("/a.key")
)


def closed_by(reason: str | None) -> KafkaConnectionError:
    """Return what aiokafka raises when TLS fails after the handshake."""
    cause = ssl.SSLError(1, f"[SSL: {reason}]")
    cause.reason = reason  # type: ignore[assignment]  # None, where OpenSSL has no name for it
    error = KafkaConnectionError("Connection at a:1 closed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "alert",
    [
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "SSLV3_ALERT_CERTIFICATE_REVOKED",
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "TLSV1_ALERT_UNKNOWN_CA",
    ],
)
def test_an_alert_about_the_client_certificate_names_its_file(alert: str) -> None:
    fault = connection_fault(closed_by(alert), MUTUAL)
    assert "does not accept the client certificate" in fault.reason
    assert "kafka.ssl_certificate_file (/a.pem)" in fault.check


@pytest.mark.parametrize("reason", ["WRONG_VERSION_NUMBER", "TLSV1_ALERT_INTERNAL_ERROR", None])
def test_another_failure_of_tls_leaves_open_what_to_check(reason: str | None) -> None:
    fault = connection_fault(closed_by(reason), MUTUAL)
    assert "Connection at a:1 closed" in fault.reason
    assert not fault.check


def test_the_reason_has_the_cause_of_a_closed_connection() -> None:
    fault = connection_fault(closed_by("WRONG_VERSION_NUMBER"), MUTUAL)
    assert "[SSL: WRONG_VERSION_NUMBER]" in fault.reason


def test_without_a_user_none_is_to_be_checked() -> None:
    assert len(general_checks(PLAIN)) == 2
