"""Without the package for Kerberos its mechanism is a fault of the settings."""

import importlib.util

import pytest

from binwright.kafka.client import client_options
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings import KafkaSettings

KERBEROS = KafkaSettings(security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI")


def test_a_missing_package_is_named_with_what_it_takes_to_build_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"binwright\[kerberos\].*libkrb5-dev"):
        client_options(KERBEROS)
    assert client_options(KafkaSettings())["sasl_mechanism"] == "PLAIN"


def test_names_of_the_brokers_principals_reach_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    named = {"sasl_kerberos_service_name": "events", "sasl_kerberos_domain_name": "kafka.example"}
    options = client_options(KERBEROS.model_copy(update=named))
    assert options["sasl_mechanism"] == "GSSAPI"
    assert options.items() >= named.items()
