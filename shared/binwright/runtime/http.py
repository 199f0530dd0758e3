"""A small HTTP server for a few GET paths.

Written here because importing a web framework costs a consumer 0.2 s and 13 MB, for three paths.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import structlog

from binwright.protocol.errors import SettingsError

log = structlog.get_logger()

REQUEST_S = 10.0


@dataclass(frozen=True, slots=True)
class Response:
    """The response to a GET request."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)  # besides those of every response


Paths = Mapping[str, Callable[[], Response]]


@contextlib.asynccontextmanager
async def serve_http(paths: Paths, address: str, port: int, name: str) -> AsyncIterator[int]:
    """Serve GET requests while the body runs; give the port.

    Args:
        paths: Path -> function that is called for each request.
        address: The address to listen on.
        port: The port to listen on; 0: one that is free.
        name: The setting that this port belongs to, for the error message.

    Raises:
        SettingsError: The port cannot be opened.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                writer.write(_respond(paths, await reader.readuntil(b"\r\n\r\n")))
                await writer.drain()
        except (OSError, TimeoutError, EOFError, asyncio.LimitOverrunError) as exc:
            log.debug("request.failed", reason=repr(exc))
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(serve, address, port)
    except OSError as exc:
        raise SettingsError(f"{name}: {address}:{port}: {exc}") from exc
    async with server:
        yield int(server.sockets[0].getsockname()[1])


def _respond(paths: Paths, head: bytes) -> bytes:
    """Return the bytes of the response; each connection carries one request."""
    verb, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode(errors="replace")
    if verb not in {b"GET", b"HEAD"}:
        response = Response(b"only GET\n", "text/plain", HTTPStatus.METHOD_NOT_ALLOWED)
    elif make := paths.get(path):
        response = make()
    else:
        known = " ".join(sorted(paths)).encode()
        response = Response(b"there is: " + known + b"\n", "text/plain", HTTPStatus.NOT_FOUND)
    lines = (
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        f"Content-Type: {response.content_type}; charset=utf-8",
        f"Content-Length: {len(response.body)}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    )
    start = "\r\n".join((*lines, "", "")).encode()
    return start if verb == b"HEAD" else start + response.body
