"""URLs of Spark Connect, sc://HOST:PORT/;KEY=VALUE;…: the parameters may hold a secret token."""

from pathlib import Path
from urllib.parse import quote, urlparse

DEFAULT_PORT = 15_002
CLEARTEXT = "allow_cleartext_token"
"""A parameter of ours: `true` lets a token cross the network without TLS."""
CA_FILE = "ca_file"
"""A parameter of ours: a PEM file of the certificate authority of a server behind TLS."""


def host_and_port(url: str) -> tuple[str, int]:
    """Return host and port; the host is "" if none is named.

    Raises:
        ValueError: The port is not a number from 0 to 65535.
    """
    parts = urlparse(url)
    return parts.hostname or "", parts.port or DEFAULT_PORT


def redacted_url(url: str) -> str:
    """Return the URL without its parameters, for logs and errors."""
    return url.partition(";")[0].rstrip("/")


def has_tls(url: str) -> bool:
    """Return whether the URL asks for TLS."""
    return any(part.strip().lower() == "use_ssl=true" for part in url.split(";")[1:])


def has_token(url: str) -> bool:
    """Return whether the URL holds a token."""
    return any(part.strip().startswith("token=") for part in url.split(";")[1:])


def with_token(url: str, file: Path | None) -> str:
    """Return the URL with the token that the file holds now; unchanged if `file` is None.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is empty.
    """
    if file is None:
        return url
    if not (token := file.read_text(encoding="utf-8").strip()):
        raise ValueError(f"{file} (lake.token_file) is empty")
    return with_parameters(url, token=token)


def with_parameters(url: str, **parameters: str) -> str:
    """Return the URL with these parameters behind its own; unchanged if there are none."""
    if not parameters:
        return url
    server, _, own = url.partition(";")
    more = (f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    return ";".join(filter(None, (server.rstrip("/") + "/", own.strip(";"), *more)))
