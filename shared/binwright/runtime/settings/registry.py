"""The connection to the schema registry."""

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlparse

from pydantic import Field, model_validator

from binwright.protocol.section import Section, WebAddress
from binwright.runtime.addresses import is_loopback

APICURIO = "/apis/ccompat/"
"""In the address of Apicurio's registry, where it answers as Confluent's."""


class RegistrySettings(Section):
    """The schema registry, which has the schemas of values; one that speaks as Confluent's does."""

    url: Annotated[WebAddress | None, Field(repr=False)] = None
    """Its address, of https, or of http; required by tables of Avro and Protobuf, and by those of
    JSON without `columns`.
    """
    eight_byte_ids: Literal["globalId", "contentId"] | None = None
    """Which ids of eight bytes values have in front, as Apicurio's own serializers write them;
    `url` is then one of Apicurio's, with `/apis/ccompat/`. Unset: four bytes, as Confluent's.
    """
    username: str | None = None
    """User name, with password_file."""
    password_file: Path | None = None
    """A file with the user's password; read for each request, so that it can be renewed."""
    token_file: Path | None = None
    """A file with a bearer token, in place of a user; read for each request."""
    ca_file: Path | None = None
    """PEM file of the certificate authority; unset: the system's."""
    certificate_file: Path | None = None
    """PEM file of the client certificate, if the registry requires one."""
    key_file: Path | None = None
    """PEM file of the client certificate's key."""
    allow_cleartext_password: bool = False
    """Whether http may send a password or token to another machine as it is."""

    @property
    def is_apicurio(self) -> bool:
        """Return whether the registry is Apicurio's, by its address."""
        return APICURIO in (self.url or "")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if (self.username is None) != (self.password_file is None):
            raise ValueError("username and password_file go together: set both")
        if self.username is not None and self.token_file is not None:
            raise ValueError("username and token_file are set: leave one of them out")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file go together: set both")
        return self

    @model_validator(mode="after")
    def _has_own_ids_of_apicurio(self) -> Self:
        if self.eight_byte_ids is not None and not self.is_apicurio:
            raise ValueError(
                f"eight_byte_ids are Apicurio's: url is that of its registry, with {APICURIO}v7"
            )
        return self

    @model_validator(mode="after")
    def _nothing_is_readable_on_the_way(self) -> Self:
        url = urlparse(self.url or "")
        if url.scheme != "http":
            return self
        if self.ca_file or self.certificate_file:
            raise ValueError("ca_file and certificate_file would be ignored: url is not https")
        secret = self.password_file or self.token_file
        if secret and not is_loopback(url.hostname or "") and not self.allow_cleartext_password:
            raise ValueError(
                "http lets the network read the password or token: use https, or set "
                "allow_cleartext_password"
            )
        return self
