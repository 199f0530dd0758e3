"""A small HTTP server for a few paths.

Written here because a web framework has none of its bounds: see docs/decisions, number 11.
"""

import asyncio
import base64
import binascii
import contextlib
import hmac
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from binwright.protocol.errors import SettingsError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.addresses import is_address, is_loopback
from binwright.runtime.certificates import RenewedContext
from binwright.runtime.logs import log
from binwright.runtime.secret_files import read_secret, secret_at_start

REQUEST_FAILED = LogEvent.debug(
    "request.failed", "An HTTP client went away before it had its response."
)
REQUEST_UNANSWERED = LogEvent.error(
    "request.unanswered", "A page or its numbers failed by a fault of its own: please report it."
)
TOKEN_IN_CLEARTEXT = LogEvent.warning(
    "token.in_cleartext",
    "A port that others reach wants a token, and has no TLS: give it a certificate, or put a "
    "proxy with TLS before it.",
)

REQUEST_S, HANDSHAKE_S = 10.0, 5.0
CONNECTIONS = 64
"""At most at once; then a new one takes the place of the oldest, so that a probe always gets in."""
REQUEST_BYTES, DIGITS = 16 * 1024, 10
WRONG_TOKEN_S = 1.0
"""A guess takes as long."""
SHORTEST_TOKEN = 8
POSTED_S = 90.0
"""As long as what a client sent may be worked on."""


@dataclass(frozen=True, slots=True)
class Response:
    """The response to a request."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)  # besides those of every response


def json_response(body: bytes, status: int = HTTPStatus.OK) -> Response:
    """Return a response of JSON, which nobody keeps or takes for something else."""
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return Response(body, status=status, headers=headers)


Paths = Mapping[str, Callable[[], Response]]
Below = Mapping[str, Callable[[str], Response]]
"""Beginning of paths, with a slash at its end -> function of what follows it, decoded."""


@dataclass(frozen=True, slots=True)
class Posted:
    """What a client sent by POST: JSON, as it says."""

    body: bytes
    user: str  # whose password the token was; empty: it came without a name. It proves nothing


Posts = Mapping[str, Callable[[Posted], Awaitable[Response]]]


@dataclass(frozen=True, slots=True)
class _Request:
    verb: str
    path: str
    headers: Mapping[str, str]

    @classmethod
    def parse(cls, head: bytes) -> "_Request":
        line, *lines = head.decode("latin-1").split("\r\n")
        verb, _, rest = line.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        pairs = (each.partition(":") for each in lines)
        return cls(verb, path, {name.lower(): value.strip() for name, _, value in pairs})

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    @property
    def length(self) -> int:
        """Return the length of the body, bytes; -1 where it is not given, or by no number."""
        text = self.header("content-length")
        return int(text) if text.isascii() and text.isdigit() and len(text) < DIGITS else -1

    @property
    def has_body(self) -> bool:
        """Whether its body is to be read."""
        return self.verb == "POST" and 0 <= self.length <= REQUEST_BYTES

    @property
    def is_foreign(self) -> bool:
        """Whether a page of another site has a browser send it, with the password that it keeps."""
        origin, site = self.header("origin"), self.header("sec-fetch-site")
        if site not in {"", "same-origin", "none"}:
            return True
        return bool(origin) and urlsplit(origin).netloc.lower() != self.header("host").lower()


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
        return hmac.compare_digest(_login(authorization)[1].encode(), token.encode())

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


@dataclass(frozen=True, slots=True)
class _Accepted(asyncio.Protocol):
    """Passes an accepted connection on as a socket, before anything is read of it.

    uvloop reads a connection at once: what a handshake begins with would not reach TLS.
    """

    take: Callable[[socket.socket], None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        try:
            self.take(socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())))
        except OSError as exc:  # the process has no more descriptors
            log(REQUEST_FAILED, reason=repr(exc))
        finally:
            transport.close()


@dataclass(frozen=True, slots=True)
class _Server:
    """Responds on connections, each of which carries one request."""

    paths: Paths
    listener: Listener
    below: Below
    posts: Posts
    tls: ssl.SSLContext | None
    _connections: dict[socket.socket, None] = field(default_factory=dict)  # the oldest first
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def take(self, connection: socket.socket) -> None:
        """Respond on a connection; it counts at once, whether or not it ever shakes hands."""
        if len(self._connections) >= CONNECTIONS:
            oldest = next(iter(self._connections))
            self._connections.pop(oldest)
            with contextlib.suppress(OSError):  # the client has just gone
                oldest.shutdown(socket.SHUT_RDWR)
        self._connections[connection] = None
        task = asyncio.ensure_future(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket) -> None:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(REQUEST_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport: asyncio.Transport | None = None
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=self.tls,
                ssl_handshake_timeout=HANDSHAKE_S if self.tls else None,
            )
            async with asyncio.timeout(REQUEST_S):
                request = _Request.parse(await reader.readuntil(b"\r\n\r\n"))
                body = await reader.readexactly(request.length) if request.has_body else b""
            response = await self._respond(request, body)
            async with asyncio.timeout(REQUEST_S):
                writer = asyncio.StreamWriter(transport, protocol, reader, loop)
                writer.write(_written(response, with_body=request.verb != "HEAD"))
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, EOFError, asyncio.LimitOverrunError) as exc:
            log(REQUEST_FAILED, reason=repr(exc))
            if transport is not None:
                transport.abort()  # `close` would wait for a client that reads nothing
        finally:
            self._connections.pop(connection, None)

    async def _respond(self, request: _Request, body: bytes) -> Response:
        post = self.posts.get(request.path) if request.verb == "POST" else None
        try:
            if refused := _refused(self.listener, request):
                if request.header("authorization"):
                    await asyncio.sleep(WRONG_TOKEN_S)
                return refused
            if post is None:
                return self._read_only_response(request)
            if refused := _post_refused(request):
                return refused
            async with asyncio.timeout(POSTED_S):
                return await post(Posted(body, _login(request.header("authorization"))[0]))
        except Exception as exc:  # noqa: BLE001 - the other paths go on
            log(REQUEST_UNANSWERED, path=request.path, reason=repr(exc), exc_info=True)
            return _text(HTTPStatus.INTERNAL_SERVER_ERROR, "the log of the service says why")

    def _read_only_response(self, request: _Request) -> Response:
        """Return the response to a request that changes nothing."""
        if request.verb not in {"GET", "HEAD"}:
            return _text(HTTPStatus.METHOD_NOT_ALLOWED, "only GET")
        if make := self.paths.get(request.path):
            return make()
        beginning, slash, rest = request.path.rpartition("/")
        if made := self.below.get(beginning + slash):
            return made(unquote(rest))
        return _text(HTTPStatus.NOT_FOUND, f"there is: {' '.join(sorted(self.paths))}")


@contextlib.asynccontextmanager
async def serve_http(
    paths: Paths,
    listener: Listener,
    below: Below = MappingProxyType({}),
    posts: Posts = MappingProxyType({}),
) -> AsyncIterator[int]:
    """Serve requests while the body runs; give the port.

    Args:
        paths: Path -> function that is called for each GET request.
        listener: Where to listen, and to whom to respond.
        below: Beginning of a path -> function of the rest.
        posts: Path -> function of what a client sends there. It must have the token and be JSON,
            and no page of another site can have a browser send it.

    Raises:
        SettingsError: The port cannot be opened, a file cannot be used, or there are `posts` and no
            token.
    """
    if posts and listener.token_file is None:
        raise SettingsError(f"{listener.name}: without a token nobody may change anything")
    tls = listener.tls()
    if listener.token_file is not None:
        token = secret_at_start(listener.token_file, f"{listener.name}: its token")
        if len(token) < SHORTEST_TOKEN:
            raise SettingsError(
                f"{listener.name}: the token in {listener.token_file} has fewer than "
                f"{SHORTEST_TOKEN} characters: whoever reaches the port could guess it"
            )
        if tls is None and not is_loopback(listener.address):
            log(TOKEN_IN_CLEARTEXT, listener=listener.name, address=listener.address)
    accepted = partial(_Accepted, _Server(paths, listener, below, posts, tls).take)
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(accepted, listener.address, listener.port)
    except OSError as exc:
        place = f"{listener.address}:{listener.port}"
        raise SettingsError(f"{listener.name}: {place}: {exc}") from exc
    async with server:
        yield int(server.sockets[0].getsockname()[1])


def _refused(listener: Listener, request: _Request) -> Response | None:
    """Return the response to a request of a sender that may not see its path.

    Raises:
        OSError: The token cannot be read.
    """
    if not listener.takes(request.header("host")):
        return _text(
            HTTPStatus.MISDIRECTED_REQUEST,
            "by this name nobody is served here; use an IP address, localhost, or a name that "
            "the server was given (health.hosts, --host)",
        )
    if not listener.admits(request.path, request.header("authorization")):
        challenge = {"WWW-Authenticate": 'Basic realm="binwright"'}
        return _text(HTTPStatus.UNAUTHORIZED, "a token is needed", challenge)
    return None


def _post_refused(request: _Request) -> Response | None:
    """Return the response to a request that may change nothing here."""
    if request.is_foreign:
        return _text(HTTPStatus.FORBIDDEN, "a page of another site may send nothing here")
    # A form of another site cannot have this type.
    if request.header("content-type").partition(";")[0].strip().lower() != "application/json":
        return _text(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "only application/json")
    if request.length < 0:
        return _text(HTTPStatus.LENGTH_REQUIRED, "a Content-Length is needed")
    if request.length > REQUEST_BYTES:
        return _text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{REQUEST_BYTES} bytes at most")
    return None


def _written(response: Response, *, with_body: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        f"Content-Type: {response.content_type}; charset=utf-8",
        f"Content-Length: {len(response.body)}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    head = "\r\n".join((*lines, "", "")).encode()
    return head + response.body if with_body else head


def _text(status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(f"{text}\n".encode(), "text/plain", status, headers or {})


def _login(authorization: str) -> tuple[str, str]:
    """Return user and token of a request: a bearer token, or the password of a user."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return "", value.strip()
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return user, password
