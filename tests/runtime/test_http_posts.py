"""What a client may send, and that no page of another site has a browser send it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType

import aiohttp
import pytest
from tests.runtime.test_http import ANSWER, TOKEN, free_port

from binwright.local.server import HOST
from binwright.protocol.errors import SettingsError
from binwright.runtime.http import REQUEST_BYTES, Listener, Posted, Response, serve_http
from binwright.runtime.web import basic_login

JSON = "application/json"
SAME = f"http://{HOST}"


@contextlib.asynccontextmanager
async def taking(token: Path, taken: list[Posted]) -> AsyncIterator[int]:
    """Serve a path that takes what is sent, and one that fails at it; give the port."""

    async def take(posted: Posted) -> Response:
        taken.append(posted)
        return Response(b"{}")

    async def fail(_: Posted) -> Response:
        raise ZeroDivisionError("a fault of ours")

    token.write_text(TOKEN)  # noqa: ASYNC240 - a few bytes
    listener = Listener(HOST, free_port(), "page", token_file=token)
    posts = {"/orders": take, "/fails": fail}
    async with serve_http({"/": lambda: ANSWER}, listener, posts=posts) as port:
        yield port


async def post(
    port: int,
    path: str = "/orders",
    body: bytes = b"{}",
    headers: Mapping[str, str] = MappingProxyType({}),
) -> int:
    given = {"Authorization": basic_login("ann", TOKEN), "Content-Type": JSON, **headers}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://{HOST}:{port}{path}", data=body, headers=given) as found,
    ):
        return found.status


async def test_who_has_the_token_may_send_json(tmp_path: Path) -> None:
    taken: list[Posted] = []
    body = json.dumps({"order": "freeze"}).encode()
    async with taking(tmp_path / "token", taken) as port:
        assert (
            await post(port, body=body, headers={"Content-Type": f"{JSON}; charset=utf-8"}) == 200
        )
        assert await post(port, body=body, headers={"Authorization": f"Bearer {TOKEN}"}) == 200
        same = {"Origin": f"{SAME}:{port}", "Sec-Fetch-Site": "same-origin"}
        assert await post(port, body=body, headers=same) == 200
    assert taken == [Posted(body, "ann"), Posted(body, ""), Posted(body, "ann")]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": basic_login("ann", "wrong")}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": SAME}, 403),  # another port is another site
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
async def test_others_may_send_nothing(
    tmp_path: Path, headers: dict[str, str], expected: int
) -> None:
    taken: list[Posted] = []
    async with taking(tmp_path / "token", taken) as port:
        assert await post(port, headers=headers) == expected
    assert not taken


async def test_what_is_too_long_is_refused_and_what_has_no_length_is(tmp_path: Path) -> None:
    taken: list[Posted] = []
    async with taking(tmp_path / "token", taken) as port:
        assert await post(port, body=b" " * (REQUEST_BYTES + 1)) == 413
        assert await post(port, body=b" " * REQUEST_BYTES) == 200
        for length in ("X: y", "Content-Length: -1", "Content-Length: ²"):
            assert await raw(port, length) == 411
    assert len(taken) == 1


async def raw(port: int, length: str) -> int:
    reader, writer = await asyncio.open_connection(HOST, port)
    login = basic_login("ann", TOKEN)
    lines = ("POST /orders HTTP/1.1", f"Authorization: {login}", f"Content-Type: {JSON}", length)
    head = "\r\n".join((*lines, "", ""))
    writer.write(head.encode("latin-1"))
    async with asyncio.timeout(20):
        line = await reader.readline()
    writer.close()
    return int(line.split()[1])


async def test_what_is_sent_elsewhere_or_fails_leaves_the_others(tmp_path: Path) -> None:
    taken: list[Posted] = []
    async with taking(tmp_path / "token", taken) as port:
        assert await post(port, "/") == 405
        assert await post(port, "/fails") == 500
        assert await post(port) == 200


async def test_without_a_token_nothing_may_be_taken() -> None:
    async def take(_: Posted) -> Response:
        return Response(b"{}")

    with pytest.raises(SettingsError, match="without a token"):
        async with serve_http({}, Listener(HOST, free_port(), "page"), posts={"/orders": take}):
            pass
