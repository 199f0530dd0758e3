"""Spark Connect's addresses, sc://HOST:PORT/;KEY=VALUE;…: what follows may be a secret token."""

from pathlib import Path
from urllib.parse import quote, urlparse

DEFAULT_PORT = 15_002


def server_of(url: str) -> tuple[str, int]:
    """Return host and port; the host is "" if none is named.

    Raises:
        ValueError: The port is none.
    """
    parts = urlparse(url)
    return parts.hostname or "", parts.port or DEFAULT_PORT


def shown(url: str) -> str:
    """Return the address as logs and errors may name it."""
    return url.partition(";")[0].rstrip("/")


def has_token(url: str) -> bool:
    """Tell whether the address holds a token."""
    return any(part.strip().startswith("token=") for part in url.split(";")[1:])


def with_token(url: str, file: Path | None) -> str:
    """Return the address with the token that the file holds now; as it is if there is no file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is empty.
    """
    if file is None:
        return url
    if not (token := file.read_text(encoding="utf-8").strip()):
        raise ValueError(f"{file} (lake.token_file) is empty")
    server, _, given = url.partition(";")
    parts = (server.rstrip("/") + "/", given.strip(";"), f"token={quote(token, safe='')}")
    return ";".join(filter(None, parts))
