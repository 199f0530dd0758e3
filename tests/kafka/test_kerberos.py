"""Kerberos without its package; `tests/deploy/kerberos` has a real KDC."""

import sys

import pytest

from binwright.kafka.client import client_options
from binwright.kafka.connection_faults import general_checks
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load import kafka_options

KERBEROS = KafkaSettings(security_protocol="SASL_SSL", sasl_mechanism="GSSAPI")


def test_what_has_to_be_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)  # as if it were not installed
    with pytest.raises(SettingsError, match=r"'binwright\[kerberos\]'.* compiler and libkrb5-dev"):
        client_options(KERBEROS)


def test_other_mechanisms_need_no_package_and_no_options() -> None:
    assert not [name for name in client_options(KafkaSettings()) if "kerberos" in name]


def test_a_load_is_refused_with_what_to_do() -> None:
    with pytest.raises(SettingsError, match=r"a load cannot use GSSAPI.* name a listener with"):
        kafka_options(KERBEROS)


@pytest.mark.parametrize(("host", "principal"), [(None, "kafka/HOST"), ("a.b", "kafka/a.b")])
def test_the_broker_s_principal_is_to_be_checked(host: str | None, principal: str) -> None:
    kafka = KERBEROS.model_copy(update={"sasl_kerberos_domain_name": host})
    assert f"GSSAPI and the current key of {principal}, that a KDC " in general_checks(kafka)[-1]
