"""What every answer has, whom a server answers, and that nobody keeps others from it."""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import aiohttp
import psutil
import pytest
import trustme
import uvloop
from structlog.testing import capture_logs
from tests.consumer.harness import until

from binwright.local.server import HOST, reserve_port
from binwright.protocol.errors import SettingsError
from binwright.runtime.http import CONNECTIONS, WRONG_TOKEN_S, Listener, Response, serve_http
from binwright.runtime.web import basic_login

ANSWER = Response(b"x", "text/plain", headers={"Cache-Control": "no-store"})
ELSEWHERE = "192.0.2.1"  # no address of this machine alone
P = ParamSpec("P")
HANDSHAKE = 22  # type of the first record of TLS
TOKEN = "one of them"  # noqa: S105 - of this test


def on_uvloop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on the loop that services have."""

    @wraps(test)
    def run(*args: P.args, **options: P.kwargs) -> None:
        uvloop.run(test(*args, **options))

    return run


def free_port() -> int:
    with reserve_port() as port:
        return port


@contextlib.asynccontextmanager
async def serving(**more: Any) -> AsyncIterator[int]:
    """Serve `/` and a path that fails; give the port."""

    def fail() -> Response:
        raise ZeroDivisionError("a fault of ours")

    paths = {"/": lambda: ANSWER, "/live": lambda: ANSWER, "/fails": fail}
    listener = Listener(**{"address": HOST, "port": free_port(), "name": "page", **more})
    async with serve_http(paths, listener) as port:
        yield port


async def status(
    port: int, path: str = "/", headers: Mapping[str, str] | None = None, **more: Any
) -> int:
    scheme = "https" if more else "http"
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{scheme}://{HOST}:{port}{path}", headers=headers, **more) as found,
    ):
        return found.status


async def test_an_answer_may_have_headers_of_its_own() -> None:
    async with (
        serving() as port,
        aiohttp.ClientSession() as session,
        session.get(f"http://{HOST}:{port}/") as found,
    ):
        assert found.headers["Cache-Control"] == "no-store"
        assert found.content_type == "text/plain"
        assert await found.text() == "x"


@pytest.mark.parametrize(
    ("address", "hosts", "host", "expected"),
    [
        (HOST, (), "localhost:8088", True),
        (HOST, (), "[::1]:8088", True),
        (HOST, (), "10.1.2.3", True),
        (HOST, (), "evil.example:8088", False),  # whose owner made it lead here
        (HOST, (), "127.0.0.1.evil.example", False),
        (HOST, (), "localhost.evil.example", False),
        (HOST, ("page.example",), "Page.Example.:443", True),
        (HOST, ("page.example",), "evil.example", False),
        ("localhost", (), "evil.example", False),
        (ELSEWHERE, (), "any.example", True),
        (ELSEWHERE, ("page.example",), "any.example", False),
    ],
)
def test_names_that_lead_here_are_addresses_and_those_that_it_was_given(
    address: str, hosts: tuple[str, ...], host: str, *, expected: bool
) -> None:
    assert Listener(address, 8088, "page", hosts).takes(host) is expected


async def test_a_page_of_another_site_cannot_read_it_by_a_name_of_its_own() -> None:
    async with serving() as port:
        assert await status(port, headers={"Host": f"evil.example:{port}"}) == 421
        assert await status(port, headers={"Host": f"localhost:{port}"}) == 200


@pytest.mark.parametrize(
    ("path", "authorization", "expected"),
    [
        ("/", None, 401),
        ("/", "Bearer wrong", 401),
        ("/", "Basic !", 401),
        ("/", f"Digest {TOKEN}", 401),
        ("/missing", None, 401),
        ("/live", None, 200),
        ("/", f"Bearer {TOKEN}", 200),
        ("/", basic_login("ann", TOKEN), 200),
        ("/", basic_login("ann", "wrong"), 401),
    ],
)
async def test_who_has_no_token_sees_what_is_open_and_nothing_else(
    tmp_path: Path, path: str, authorization: str | None, expected: int
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    headers = {"Authorization": authorization} if authorization else None
    async with serving(token_file=file, open_paths=frozenset({"/live"})) as port:
        assert await status(port, path, headers) == expected


async def test_a_renewed_token_counts_at_once_and_without_its_file_none_does(
    tmp_path: Path,
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    async with serving(token_file=file) as port:
        file.write_text("the next one")
        assert await status(port, headers={"Authorization": f"Bearer {TOKEN}"}) == 401
        assert await status(port, headers={"Authorization": "Bearer the next one"}) == 200
        file.unlink()
        assert await status(port, headers={"Authorization": "Bearer the next one"}) == 500


async def test_a_wrong_token_takes_a_second_and_keeps_no_other_waiting(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    clock = asyncio.get_running_loop().time
    async with serving(token_file=file) as port:
        began = clock()
        guess = asyncio.ensure_future(status(port, headers={"Authorization": "Bearer guess"}))
        assert await status(port, headers={"Authorization": f"Bearer {TOKEN}"}) == 200
        assert not guess.done()
        assert await guess == 401
        assert clock() - began >= WRONG_TOKEN_S


async def test_a_token_that_can_be_guessed_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("seven77\n")
    with pytest.raises(SettingsError, match="fewer than 8 characters"):
        async with serving(token_file=file):
            pass


@pytest.mark.parametrize("address", [HOST, ELSEWHERE])
async def test_a_token_that_crosses_a_network_in_clear_text_is_reported(
    tmp_path: Path, address: str
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    with capture_logs() as logs, contextlib.suppress(SettingsError):  # it cannot be opened there
        async with serving(token_file=file, address=address):
            pass
    reported = [entry["address"] for entry in logs if entry["event"] == "token.in_cleartext"]
    assert reported == ([ELSEWHERE] if address == ELSEWHERE else [])


async def test_a_token_that_is_not_there_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"page: its token: .*missing"):
        async with serving(token_file=tmp_path / "missing"):
            pass


@on_uvloop
async def test_a_certificate_that_is_renewed_serves_the_next_connection(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"

    def issue() -> ssl.SSLContext:
        ca, trusted = trustme.CA(), ssl.create_default_context()
        issued = ca.issue_cert(HOST)
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        ca.configure_trust(trusted)
        return trusted

    first = issue()
    async with serving(certificate_file=certificate, key_file=key) as port:
        assert await status(port, ssl=first) == 200
        second = issue()
        assert await status(port, ssl=second) == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await status(port, ssl=first)
        certificate.write_text("half written")
        assert await status(port, ssl=second) == 200


@on_uvloop
async def test_a_client_that_speaks_before_it_is_accepted_gets_its_handshake(
    tmp_path: Path,
) -> None:
    """uvloop reads a connection as soon as it is accepted: the first bytes were lost to TLS."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued = trustme.CA().issue_cert(HOST)
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    hello = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname=HOST)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    async with serving(certificate_file=certificate, key_file=key) as port:
        with socket.create_connection((HOST, port)) as connection:
            connection.sendall(hello.read())  # the loop has not run since it listens
            connection.settimeout(0)
            async with asyncio.timeout(4):
                answer = await asyncio.get_running_loop().sock_recv(connection, 1)
    assert answer == bytes([HANDSHAKE])


async def test_a_certificate_that_cannot_be_read_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    with pytest.raises(SettingsError, match=r"page: certificate or key cannot be used .*missing"):
        async with serving(certificate_file=missing, key_file=missing):
            pass


async def test_a_path_that_fails_leaves_the_others() -> None:
    async with serving() as port:
        assert await status(port, "/fails") == 500
        assert await status(port, "/") == 200


@on_uvloop
async def test_slow_clients_keep_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that is kept out would end the service."""
    monkeypatch.setattr("binwright.runtime.http.REQUEST_S", 120.0)  # it closes none of them
    slow = []
    async with serving() as port, asyncio.timeout(60):
        for _ in range(500):
            slow.append(await asyncio.open_connection(HOST, port))
            slow[-1][1].write(b"GET / HT")
            if len(slow) % 50 == 0:
                assert await status(port) == 200
        closed = [await reader.read() for reader, _ in slow[: -CONNECTIONS * 2]]
        assert set(closed) == {b""}, "the oldest are closed"
        for _, writer in slow:
            writer.close()


@on_uvloop
async def test_those_who_never_shake_hands_take_no_descriptors_from_others(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    ca, trusted = trustme.CA(), ssl.create_default_context()
    issued = ca.issue_cert(HOST)
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    ca.configure_trust(trusted)
    async with serving(certificate_file=certificate, key_file=key) as port:
        before = psutil.Process().num_fds()
        idle = [await asyncio.open_connection(HOST, port) for _ in range(5 * CONNECTIONS)]
        assert await status(port, ssl=trusted) == 200
        ours = psutil.Process().num_fds() - before - len(idle)  # the server's ends
        assert ours <= CONNECTIONS + 1
        for _, writer in idle:
            writer.close()


@on_uvloop
async def test_a_client_that_does_not_read_what_it_asked_for_keeps_no_descriptor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("binwright.runtime.http.REQUEST_S", 0.2)
    large = Response(bytes(50_000_000))
    async with serve_http({"/": lambda: large}, Listener(HOST, free_port(), "page")) as port:
        before = psutil.Process().num_fds()
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read(1) == b"H"
        await until(lambda: psutil.Process().num_fds() == before + 1)  # the client's end
        writer.close()


@on_uvloop
async def test_without_a_descriptor_to_spare_a_connection_ends_and_the_next_is_served() -> None:
    def refuse(descriptor: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files", str(descriptor))

    async with serving() as port:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("binwright.runtime.http.os.dup", refuse)
            reader, writer = await asyncio.open_connection(HOST, port)
            async with asyncio.timeout(20):
                assert await reader.read() == b""
        writer.close()
        assert await status(port) == 200
