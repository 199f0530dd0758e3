"""What the Kubernetes client does when the server closes the connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kubernetes_asyncio.client.configuration import Configuration

from binwright.kubernetes.api import ATTEMPTS, NAMESPACE_PARALLEL, PARALLEL, Api
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


async def test_many_requests_of_one_namespace_leave_room_for_another_s() -> None:
    asked: list[str] = []
    enough = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reply to the namespace `other` alone."""
        path = (await reader.readuntil(b"\r\n\r\n")).decode().split()[1]
        asked.append(path)
        if "/other/" in path:
            writer.write(RESPONSE)
            await writer.drain()
        else:
            await enough.wait()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    chosen: Any = Configuration(host=f"http://{host}:{port}")
    api = Api(chosen, 30.0)
    flood = [asyncio.create_task(api.merge(f"{PATH}-{n}", {})) for n in range(4 * PARALLEL)]
    try:
        async with asyncio.timeout(20):
            while len(asked) < NAMESPACE_PARALLEL:  # noqa: ASYNC110 - the client tells nothing
                await asyncio.sleep(0.01)
            assert await api.merge(PATH.replace("/here/", "/other/"), {}) == {}
        assert len(asked) <= NAMESPACE_PARALLEL + 1
    finally:
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
        enough.set()
        await api.close()
        server.close()
        await server.wait_closed()
