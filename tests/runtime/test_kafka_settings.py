"""Credentials of the connection to Kafka: complete, used, and not readable on the way."""

import pytest

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings

TLS = {"security_protocol": "SSL"}
LOGIN = {"security_protocol": "SASL_PLAINTEXT", "sasl_username": "a", "sasl_password": "b"}
KERBEROS = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}
OAUTH = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}


@pytest.mark.parametrize(
    ("values", "result"),
    [
        ({"security_protocol": "SASL_SSL"}, "needs sasl_username, and sasl_password or"),
        (OAUTH, "OAUTHBEARER needs one of sasl_token_file, sasl_token_url, sasl_token_provider"),
        (OAUTH | {"sasl_token_url": "https://a/t"}, "needs sasl_username, and"),
        ({"sasl_token_url": "http://a/t"}, "must be an https address, or http on this"),
        ({"sasl_token_url": "https://me:s@a/t"}, "must hold no user"),
        (OAUTH | {"sasl_token_url": "https://a/t", "sasl_token_file": "f"}, "leave one"),
        (OAUTH | {"sasl_token_provider": "p", "sasl_token_file": "f"}, "leave one"),
        (OAUTH | {"sasl_token_provider": "p", "sasl_username": "a"}, "_provider is set"),
        (LOGIN | {"sasl_token_provider": "p"}, "sasl_token_provider would .* is PLAIN$"),
        (KERBEROS | {"sasl_username": "a"}, "sasl_username would .* is GSSAPI$"),
        (KERBEROS | {"sasl_password_file": "f"}, "sasl_password_file would .* is GSSAPI$"),
        (KERBEROS | {"sasl_token_file": "f"}, "sasl_token_file would .* is GSSAPI$"),
        (LOGIN | {"sasl_kerberos_service_name": "a"}, "kerberos_service_name would .* is PLAIN$"),
        (OAUTH | {"sasl_token_file": "f", "sasl_kerberos_domain_name": "a"}, "domain_name would"),
        ({"sasl_password": "a", "sasl_password_file": "f"}, "leave one of them out"),
        ({"sasl_password": "a"}, "sasl_password would be ignored, .* is PLAINTEXT"),
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "sasl_mechanism would be ignored"),
        (TLS | {"sasl_username": "a"}, "sasl_username would be ignored, .* is SSL"),
        ({"ssl_ca_file": "f"}, "ssl_ca_file would be ignored, .* is PLAINTEXT"),
        (LOGIN | {"ssl_key_file": "f"}, "ssl_key_file would .* is SASL_PLAINTEXT"),
        (TLS | {"ssl_key_file": "f"}, "ssl_key_file would .*certificate_file is unset"),
        (LOGIN | {"sasl_token_file": "f"}, "sasl_token_file would .* is PLAIN$"),
        (OAUTH | {"sasl_token_file": "f", "sasl_username": "a"}, "sasl_username would"),
        (OAUTH | {"sasl_token_file": "f", "sasl_token_scope": "a"}, "scope would be"),
        (LOGIN | {"bootstrap_servers": "localhost:1,a:1"}, "lets the network read"),
        (LOGIN | {"bootstrap_servers": "127.evil.example:1"}, "lets the network read"),
    ],
)
def test_credentials_that_are_incomplete_or_unused_are_reported(
    values: dict[str, object], result: str
) -> None:
    with pytest.raises(SettingsError, match=result):
        load_settings(kafka=values)


@pytest.mark.parametrize(
    "values",
    [
        LOGIN | {"bootstrap_servers": "localhost:1,127.0.0.2:1, [::1]:1"},
        LOGIN | {"bootstrap_servers": "a:1", "allow_cleartext_password": True},
        LOGIN | {"bootstrap_servers": "a:1", "sasl_mechanism": "SCRAM-SHA-256"},
        LOGIN | {"bootstrap_servers": "a:1", "security_protocol": "SASL_SSL"},
        KERBEROS | {"bootstrap_servers": "a:1"},
    ],
)
def test_a_password_is_sent_where_the_network_cannot_read_it_or_may(
    values: dict[str, object],
) -> None:
    assert load_settings(kafka=values).kafka.bootstrap_servers == values["bootstrap_servers"]


def test_a_password_in_an_address_is_not_printed() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(kafka={"sasl_token_url": "https://me:s3cret@a/token"})
    assert "s3cret" not in str(caught.value)
