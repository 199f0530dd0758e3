"""How to reach Kafka."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from binwright.shell.settings.section import Seconds, Section


class KafkaSettings(Section):
    """How to reach Kafka."""

    bootstrap_servers: str = "localhost:9092"
    """Brokers to begin with, HOST:PORT, separated by commas."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How connections are secured."""
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    """How the user is authenticated, with SASL."""
    sasl_username: str | None = None
    """Needed with SASL."""
    sasl_password: SecretStr | None = None
    """Needed with SASL."""
    ssl_ca_file: Path | None = None
    """PEM of who signed the brokers' certificates; unset: the system's."""
    ssl_certificate_file: Path | None = None
    """PEM of our own certificate, where brokers ask for one."""
    ssl_key_file: Path | None = None
    """PEM of its key."""
    request_timeout_s: Seconds = 30.0
    """How long one request may take."""
    replication_factor: Annotated[int, Field(ge=1, le=3)] | None = None
    """Of the topics we create; unset: 3, or as many as there are brokers if those are fewer."""

    @model_validator(mode="after")
    def _sasl_is_whole(self) -> Self:
        if self.security_protocol.startswith("SASL") and not (
            self.sasl_username and self.sasl_password
        ):
            raise ValueError(f"{self.security_protocol} needs sasl_username and sasl_password")
        return self
