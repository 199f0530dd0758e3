"""Settings of the health endpoint of every service."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from binwright.protocol.section import Seconds, Section


class HealthSettings(Section):
    """Where `/live`, `/ready` and `/metrics` are served."""

    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the HTTP server; unset: none. Slot n of the process fleet has this port + 1 + n."""
    address: str = "127.0.0.1"
    """Address to listen on; in a pod its own, or 0.0.0.0 for all."""
    patience_s: Seconds = 120.0
    """A loop without progress for this long is stuck, and `/live` fails."""
    hosts: tuple[str, ...] = ()
    """Names by which clients address it, besides localhost and IP addresses; unset: on a loopback
    address no others, elsewhere all.
    """
    token_file: Path | None = None
    """File with the token that `/metrics` needs; unset: none. Probes need none."""
    certificate_file: Path | None = None
    """Certificate for HTTPS, PEM; unset: plain HTTP."""
    key_file: Path | None = None
    """The key of that certificate, PEM."""

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file need each other")
        return self
