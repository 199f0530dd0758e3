"""The connection to Kafka."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from binwright.runtime.settings.section import Seconds, Section


class KafkaSettings(Section):
    """The connection to Kafka."""

    bootstrap_servers: str = "localhost:9092"
    """Bootstrap servers, HOST:PORT, separated by commas."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Encryption and authentication of connections."""
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    """Authentication of the user, with SASL."""
    sasl_username: str | None = None
    """User name; required with SASL."""
    sasl_password: SecretStr | None = None
    """Password; with SASL this or sasl_password_file."""
    sasl_password_file: Path | None = None
    """A file with the password; read for every connection, so that it can be renewed."""
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

    @model_validator(mode="after")
    def _sasl_is_complete(self) -> Self:
        if self.sasl_password and self.sasl_password_file:
            raise ValueError("sasl_password and sasl_password_file are set: leave one of them out")
        if self.security_protocol.startswith("SASL") and not (
            self.sasl_username and (self.sasl_password or self.sasl_password_file)
        ):
            raise ValueError(
                f"{self.security_protocol} needs sasl_username, and sasl_password or "
                "sasl_password_file"
            )
        return self
