"""What the Kubernetes client does when the server closes the connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kubernetes_asyncio.client.configuration import Configuration

from binwright.kubernetes.api import ATTEMPTS, Api
from binwright.protocol.errors import ClusterUnavailable

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
PATH = "/api/v1/namespaces/here/configmaps/it"


@asynccontextmanager
async def server_that_disconnects(times: int) -> AsyncIterator[tuple[Api, list[str]]]:
    """Run a server that does not respond to its first requests; yield a client and its requests."""
    requests: list[str] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        requests.append(head.split()[0])
        if len(requests) > times:
            writer.write(RESPONSE)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    chosen: Any = Configuration(host=f"http://{host}:{port}")
    api = Api(chosen, 10.0)
    try:
        yield api, requests
    finally:
        await api.close()
        server.close()
        await server.wait_closed()


async def test_an_idempotent_request_is_repeated() -> None:
    async with server_that_disconnects(2) as (api, requests):
        assert await api.merge(PATH, {}) == {}
    assert requests == ["PATCH"] * 3


async def test_a_create_is_not_repeated() -> None:
    async with server_that_disconnects(1) as (api, requests):
        with pytest.raises(ClusterUnavailable):
            await api.create(PATH, {})
    assert requests == ["POST"]


async def test_a_request_is_not_repeated_for_ever() -> None:
    async with server_that_disconnects(100) as (api, requests):
        with pytest.raises(ClusterUnavailable):
            await api.merge(PATH, {})
    assert len(requests) == ATTEMPTS
