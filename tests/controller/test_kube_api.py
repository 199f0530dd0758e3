"""What the Kubernetes client does with a server that hangs up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kubernetes_asyncio.client.configuration import Configuration

from binwright.controller.kube.api import TRIES, Api
from binwright.core.errors import ClusterUnavailable

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
PATH = "/api/v1/namespaces/here/configmaps/it"


@asynccontextmanager
async def server_that_hangs_up(times: int) -> AsyncIterator[tuple[Api, list[str]]]:
    """Run a server that leaves its first requests unanswered; yield a client, and what it asked."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head.split()[0])
        if len(asked) > times:
            writer.write(ANSWER)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    chosen: Any = Configuration(host=f"http://{host}:{port}")
    api = Api(chosen, 10.0)
    try:
        yield api, asked
    finally:
        await api.close()
        server.close()
        await server.wait_closed()


async def test_what_may_be_done_twice_is_done_again() -> None:
    async with server_that_hangs_up(2) as (api, asked):
        assert await api.merge(PATH, {}) == {}
    assert asked == ["PATCH"] * 3


async def test_what_may_not_is_told() -> None:
    async with server_that_hangs_up(1) as (api, asked):
        with pytest.raises(ClusterUnavailable):
            await api.create(PATH, {})
    assert asked == ["POST"]


async def test_nobody_asks_for_ever() -> None:
    async with server_that_hangs_up(100) as (api, asked):
        with pytest.raises(ClusterUnavailable):
            await api.merge(PATH, {})
    assert len(asked) == TRIES
