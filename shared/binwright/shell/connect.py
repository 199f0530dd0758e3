"""Spark Connect's addresses, sc://HOST:PORT/;KEY=VALUE;…: what follows may be a secret token."""

from urllib.parse import urlparse

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
