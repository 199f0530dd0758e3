"""A reserved port is ours, and still free for the server."""

import asyncio
import socket
from contextlib import ExitStack

import pytest

from binwright.local.process.ports import HOST, accepts_connections, reserve_port
from binwright.protocol.errors import EmbeddedError


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def test_no_port_is_given_twice() -> None:
    with ExitStack() as stack:
        ports = [stack.enter_context(reserve_port()) for _ in range(200)]
    assert len(set(ports)) == len(ports)


async def test_a_server_can_listen_on_a_reserved_port() -> None:
    with reserve_port() as port:
        assert not await accepts_connections(port)
        async with await asyncio.start_server(hang_up, HOST, port):
            assert await accepts_connections(port)
        assert not await accepts_connections(port)


def test_a_port_that_is_taken_is_refused_with_a_way_out() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(EmbeddedError, match=f"port {port} .*name no port"), reserve_port(port):
            pass


@pytest.mark.parametrize("port", [-1, 70_000])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(EmbeddedError, match=str(port)), reserve_port(port):
        pass
