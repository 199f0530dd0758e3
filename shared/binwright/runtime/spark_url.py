"""URLs of Spark Connect, sc://HOST:PORT/;KEY=VALUE;…: the parameters may hold a secret token."""

from pathlib import Path
from urllib.parse import quote, urlparse

DEFAULT_PORT = 15_002


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
    server, _, given = url.partition(";")
    parts = (server.rstrip("/") + "/", given.strip(";"), f"token={quote(token, safe='')}")
    return ";".join(filter(None, parts))
