"""The connection to Kafka."""

from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlparse

from pydantic import Field, SecretStr, field_validator, model_validator

from binwright.protocol.section import Seconds, Section
from binwright.runtime.addresses import is_loopback

_TOKENS = "sasl_token_file", "sasl_token_url", "sasl_token_provider"
_EITHER = (("sasl_password", "sasl_password_file"), *combinations(_TOKENS, 2))


class KafkaSettings(Section):
    """The connection to Kafka."""

    bootstrap_servers: str = "localhost:9092"
    """Bootstrap servers, HOST:PORT, separated by commas."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Encryption and authentication of connections."""
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"] = (
        "PLAIN"
    )
    """Authentication of the user, with SASL; GSSAPI is Kerberos, with `binwright[kerberos]`."""
    sasl_username: str | None = None
    """User name, or with sasl_token_url the client's id; required for PLAIN and SCRAM."""
    sasl_password: SecretStr | None = None
    """Password, or the client's secret; with a user this or sasl_password_file."""
    sasl_password_file: Path | None = None
    """A file with the password; read for every connection, so that it can be renewed."""
    sasl_token_file: Path | None = None
    """A file with the token for OAUTHBEARER; read for every connection: it can be renewed."""
    sasl_token_url: Annotated[str | None, Field(repr=False)] = None
    """Where tokens for OAUTHBEARER come from, by the client's id and secret: https, or loopback."""
    sasl_token_scope: str | None = None
    """Scope that tokens are requested for."""
    sasl_token_ca_file: Path | None = None
    """PEM file of the authority of sasl_token_url; unset: the system's."""
    sasl_token_provider: Annotated[str | None, Field(min_length=1)] = None
    """Name of what gives tokens for OAUTHBEARER, of a package that is installed beside binwright:
    `aws-msk-iam` with `binwright[aws]`, or your own."""
    sasl_kerberos_service_name: Annotated[str, Field(min_length=1)] = "kafka"
    """Service in the brokers' principals SERVICE/HOST, for GSSAPI."""
    sasl_kerberos_domain_name: Annotated[str | None, Field(min_length=1)] = None
    """Host in the brokers' principals, if all have the same; unset: that of their address."""
    allow_cleartext_password: bool = False
    """Whether SASL_PLAINTEXT may send a password or token to another machine as it is."""
    ssl_ca_file: Path | None = None
    """PEM file of the certificate authority, read again when it changes; unset: the system's."""
    ssl_certificate_file: Path | None = None
    """PEM file of the client certificate, if brokers require one; read again when it changes."""
    ssl_key_file: Path | None = None
    """PEM file of the client certificate's key; read again when it changes."""
    ssl_key_password_file: Path | None = None
    """A file with the password of the key, if it is encrypted."""
    request_timeout_s: Seconds = 30.0
    """Timeout of one request."""
    replication_factor: Annotated[int, Field(ge=1, le=3)] | None = None
    """Replicas of topics that binwright creates; unset: 3, or the number of brokers if fewer."""

    @field_validator("sasl_token_url")
    @classmethod
    def _keeps_the_secret(cls, value: str | None) -> str | None:
        if value is not None:
            url = urlparse(value)
            if url.scheme != "https" and not (
                url.scheme == "http" and is_loopback(url.hostname or "")
            ):
                raise ValueError("must be an https address, or http on this machine")
            if url.username or url.password:
                raise ValueError("must hold no user: set sasl_username and sasl_password")
        return value

    @model_validator(mode="after")
    def _credentials_are_complete(self) -> Self:
        for one, other in _EITHER:
            if getattr(self, one) and getattr(self, other):
                raise ValueError(f"{one} and {other} are set: leave one of them out")
        if not self.security_protocol.startswith("SASL") or self.sasl_mechanism == "GSSAPI":
            return self
        by_token = self.sasl_mechanism == "OAUTHBEARER"
        if by_token and not any(getattr(self, name) for name in _TOKENS):
            raise ValueError(f"OAUTHBEARER needs one of {', '.join(_TOKENS)}")
        if not (by_token and not self.sasl_token_url) and not (
            self.sasl_username and (self.sasl_password or self.sasl_password_file)
        ):
            raise ValueError(
                f"{self.security_protocol} needs sasl_username, and sasl_password or "
                "sasl_password_file"
            )
        return self

    @model_validator(mode="after")
    def _nothing_is_ignored(self) -> Self:
        protocol, mechanism = self.security_protocol, self.sasl_mechanism
        self._refuse("sasl_", protocol.startswith("SASL"), f"security_protocol is {protocol}")
        self._refuse("ssl_", protocol.endswith("SSL"), f"security_protocol is {protocol}")
        certificate = self.ssl_certificate_file is not None
        self._refuse("ssl_key_", certificate, "ssl_certificate_file is unset")
        by_token = mechanism == "OAUTHBEARER"
        self._refuse("sasl_token_", by_token, f"sasl_mechanism is {mechanism}")
        by_kerberos = mechanism == "GSSAPI"
        self._refuse("sasl_kerberos_", by_kerberos, f"sasl_mechanism is {mechanism}")
        for name in ("sasl_username", "sasl_password"):
            self._refuse(name, not by_kerberos, "sasl_mechanism is GSSAPI")
        for source in ("sasl_token_file", "sasl_token_provider"):
            for name in (
                "sasl_username",
                "sasl_password",
                "sasl_token_scope",
                "sasl_token_ca_file",
            ):
                self._refuse(name, not getattr(self, source), f"{source} is set")
        return self

    @model_validator(mode="after")
    def _no_password_is_readable_on_the_way(self) -> Self:
        if (
            self.security_protocol == "SASL_PLAINTEXT"
            and self.sasl_mechanism in {"PLAIN", "OAUTHBEARER"}
            and not self.allow_cleartext_password
            and not all(map(_stays_here, self.bootstrap_servers.split(",")))
        ):
            raise ValueError(
                f"{self.sasl_mechanism} over SASL_PLAINTEXT lets the network read the password or "
                "token: use SASL_SSL or SCRAM, or set allow_cleartext_password"
            )
        return self

    def _refuse(self, prefix: str, used: bool, why: str) -> None:
        """Raise `ValueError` for settings that are set and not used."""
        fields = type(self).model_fields
        named = [
            n for n in fields if n.startswith(prefix) and getattr(self, n) != fields[n].default
        ]
        if named and not used:
            raise ValueError(f"{', '.join(named)} would be ignored, because {why}")


def _stays_here(server: str) -> bool:
    return is_loopback(server.strip().rpartition(":")[0].strip("[]"))
