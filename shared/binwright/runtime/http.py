"""A small HTTP server for a few GET paths.

Written here because importing a web framework costs a consumer 0.2 s and 13 MB, for three paths.
"""

import asyncio
import base64
import binascii
import contextlib
import hmac
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

import structlog

from binwright.protocol.errors import SettingsError
from binwright.runtime.addresses import is_address, is_loopback
from binwright.runtime.certificates import RenewedContext
from binwright.runtime.secret_files import read_secret, secret_at_start

log = structlog.get_logger()

REQUEST_S = 10.0
CONNECTIONS = 64
"""At most at once; then a new one takes the place of the oldest, so that a probe always gets in."""
REQUEST_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Response:
    """The response to a GET request."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)  # besides those of every response


Paths = Mapping[str, Callable[[], Response]]
Below = Mapping[str, Callable[[str], Response]]
"""Beginning of paths, with a slash at its end -> function of what follows it, decoded."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Where a server listens, and to whom it responds.

    Attributes:
        address: To listen on.
        port: To listen on; 0: one that is free.
        name: The setting that the port belongs to, for messages.
        hosts: Names by which clients may address it, besides `localhost` and IP addresses. A page
            of another site can make its own name lead to this server, and read it in a browser
            (DNS rebinding), but the request has that name. None given: on a loopback address no
            other name is taken, elsewhere all are.
        token_file: With the token that requests must have, as a bearer token or as the password
            of a user of any name; read for each request.
        certificate_file: For TLS, PEM; read again for connections after it has changed.
        key_file: Its key, PEM.
        open_paths: Paths that need no token.
    """

    address: str
    port: int
    name: str
    hosts: tuple[str, ...] = ()
    token_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    open_paths: frozenset[str] = frozenset()

    def takes(self, host: str) -> bool:
        """Return whether a request with this `Host` (with or without a port) has a response."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if not name or is_address(name.strip("[]")) or name.lower() == "localhost":
            return True
        if not self.hosts and not is_loopback(self.address):
            return True
        return name.lower().rstrip(".") in {each.lower() for each in self.hosts}

    def admits(self, path: str, authorization: str) -> bool:
        """Return whether a request with this `Authorization` may have the path.

        Raises:
            OSError: The token cannot be read.
        """
        if self.token_file is None or path in self.open_paths:
            return True
        token = read_secret(self.token_file, f"{self.name}: its token")
        return hmac.compare_digest(_given_token(authorization).encode(), token.encode())

    def tls(self) -> ssl.SSLContext | None:
        """Return what connections need for TLS; None: they have none.

        Raises:
            SettingsError: A file cannot be used.
        """
        if self.certificate_file is None or self.key_file is None:
            return None
        certificate, key = self.certificate_file, self.key_file

        def read() -> ssl.SSLContext:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            # Without a function OpenSSL would ask for a password in the terminal.
            context.load_cert_chain(certificate, key, lambda: "")
            return context

        try:
            return RenewedContext(ssl.PROTOCOL_TLS_SERVER, (certificate, key), read)
        except OSError as exc:  # ssl.SSLError is one
            raise SettingsError(
                f"{self.name}: certificate or key cannot be used ({certificate}, {key}): {exc}"
            ) from exc


@contextlib.asynccontextmanager
async def serve_http(
    paths: Paths, listener: Listener, below: Below = MappingProxyType({})
) -> AsyncIterator[int]:
    """Serve GET requests while the body runs; give the port.

    Args:
        paths: Path -> function that is called for each request.
        listener: Where to listen, and to whom to respond.
        below: Beginning of a path -> function of the rest.

    Raises:
        SettingsError: The port cannot be opened, or a file cannot be used.
    """
    connections: dict[asyncio.StreamWriter, None] = {}  # the oldest first

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(connections) >= CONNECTIONS:
            next(iter(connections)).transport.abort()
            connections.pop(next(iter(connections)))
        connections[writer] = None
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_respond(paths, below, listener, head))
                await writer.drain()
        except (OSError, TimeoutError, EOFError, asyncio.LimitOverrunError) as exc:
            log.debug("request.failed", reason=repr(exc))
        finally:
            connections.pop(writer, None)
            writer.close()

    tls = listener.tls()
    if listener.token_file is not None:
        secret_at_start(listener.token_file, f"{listener.name}: its token")
    try:
        server = await asyncio.start_server(
            serve,
            listener.address,
            listener.port,
            limit=REQUEST_BYTES,
            ssl=tls,
            ssl_handshake_timeout=REQUEST_S if tls else None,
        )
    except OSError as exc:
        place = f"{listener.address}:{listener.port}"
        raise SettingsError(f"{listener.name}: {place}: {exc}") from exc
    async with server:
        yield int(server.sockets[0].getsockname()[1])


def _respond(paths: Paths, below: Below, listener: Listener, head: bytes) -> bytes:
    """Return the bytes of the response; each connection carries one request."""
    line, *lines = head.decode("latin-1").split("\r\n")
    verb, _, rest = line.partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    if verb not in {"GET", "HEAD"}:
        response = _text(HTTPStatus.METHOD_NOT_ALLOWED, "only GET")
    elif not listener.takes(headers.get("host", "")):
        response = _text(
            HTTPStatus.MISDIRECTED_REQUEST,
            "by this name nobody is served here; use an IP address, localhost, or a name that "
            "the server was given (health.hosts, --host)",
        )
    else:
        make = paths.get(path) or _made_below(below, path)
        response = _found(paths, make, listener, path, headers.get("authorization", ""))
    lines = [
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        f"Content-Type: {response.content_type}; charset=utf-8",
        f"Content-Length: {len(response.body)}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    start = "\r\n".join((*lines, "", "")).encode()
    return start if verb == "HEAD" else start + response.body


def _made_below(below: Below, path: str) -> Callable[[], Response] | None:
    """Return what responds to a path by its beginning."""
    beginning, slash, rest = path.rpartition("/")
    made = below.get(beginning + slash)
    return None if made is None else partial(made, unquote(rest))


def _found(
    paths: Paths,
    make: Callable[[], Response] | None,
    listener: Listener,
    path: str,
    authorization: str,
) -> Response:
    try:
        if not listener.admits(path, authorization):
            challenge = {"WWW-Authenticate": 'Basic realm="binwright"'}
            return _text(HTTPStatus.UNAUTHORIZED, "a token is needed", challenge)
        if make is not None:
            return make()
    except Exception as exc:  # the other paths go on
        log.exception("request.unanswered", path=path, reason=repr(exc))
        return _text(HTTPStatus.INTERNAL_SERVER_ERROR, "the log of the service says why")
    return _text(HTTPStatus.NOT_FOUND, f"there is: {' '.join(sorted(paths))}")


def _text(status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(f"{text}\n".encode(), "text/plain", status, headers or {})


def _given_token(authorization: str) -> str:
    """Return the token of a request: a bearer token, or the password of a user; empty: none."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""
