"""Something answered over HTTP, as long as a body runs.

By ourselves: a web framework takes a consumer a fifth of a second and 13 MB, for three paths.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from binwright.core.errors import SettingsError

log = structlog.get_logger()

REQUEST_S = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a path is answered with."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


Paths = Mapping[str, Callable[[], Answer]]


@contextlib.asynccontextmanager
async def answering(paths: Paths, address: str, port: int, name: str) -> AsyncIterator[None]:
    """Answer GET on `paths` meanwhile.

    Args:
        paths: What is asked for each time that somebody asks.
        address: To listen on.
        port: To listen on.
        name: Whose port this is, for people.

    Raises:
        SettingsError: The port cannot be had.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                writer.write(_answer(paths, await reader.readuntil(b"\r\n\r\n")))
                await writer.drain()
        except (OSError, TimeoutError, EOFError, asyncio.LimitOverrunError) as exc:
            log.debug("request.unanswered", reason=repr(exc))
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(serve, address, port)
    except OSError as exc:
        raise SettingsError(f"{name}: {address}:{port}: {exc}") from exc
    async with server:
        yield


def _answer(paths: Paths, head: bytes) -> bytes:
    """Return a whole answer to one request; each connection has one."""
    verb, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode(errors="replace")
    if verb not in {b"GET", b"HEAD"}:
        told = Answer(b"only GET\n", "text/plain", HTTPStatus.METHOD_NOT_ALLOWED)
    elif ask := paths.get(path):
        told = ask()
    else:
        known = " ".join(sorted(paths)).encode()
        told = Answer(b"there is: " + known + b"\n", "text/plain", HTTPStatus.NOT_FOUND)
    lines = (
        f"HTTP/1.1 {told.status} {HTTPStatus(told.status).phrase}",
        f"Content-Type: {told.content_type}; charset=utf-8",
        f"Content-Length: {len(told.body)}",
        "Connection: close",
    )
    start = "\r\n".join((*lines, "", "")).encode()
    return start if verb == b"HEAD" else start + told.body
