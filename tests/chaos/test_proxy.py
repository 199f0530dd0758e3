"""The proxy that cuts lines."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.chaos.proxy import HOST, Proxy, proxy

PATIENCE_S = 20.0
MOMENT_S = 0.2


@asynccontextmanager
async def echoing() -> AsyncIterator[Proxy]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, HOST, 0)
    async with server, proxy(server.sockets[0].getsockname()[1]) as between:
        yield between


class Caller:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def received(self, number: int) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readexactly(number)

    async def silent(self) -> bool:
        try:
            async with asyncio.timeout(MOMENT_S):
                await self.reader.readexactly(1)
        except TimeoutError:
            return True
        return False


@asynccontextmanager
async def calling(between: Proxy) -> AsyncIterator[Caller]:
    caller = Caller(*await asyncio.open_connection(HOST, between.port))
    try:
        yield caller
    finally:
        caller.writer.close()


async def test_what_is_sent_arrives() -> None:
    async with echoing() as between, calling(between) as caller:
        caller.writer.write(b"there")
        assert await caller.received(5) == b"there"


async def test_data_sent_while_cut_off_arrive_once_healed() -> None:
    async with echoing() as between, calling(between) as caller:
        caller.writer.write(b"a")
        assert await caller.received(1) == b"a"
        between.cut(os.getpid())
        caller.writer.write(b"b")
        assert await caller.silent()
        between.heal(os.getpid(), reset=False)
        assert await caller.received(1) == b"b"


async def test_another_process_is_not_cut_off() -> None:
    async with echoing() as between, calling(between) as caller:
        between.cut(os.getppid())
        caller.writer.write(b"a")
        assert await caller.received(1) == b"a"


@pytest.mark.parametrize("others", [True, False])
async def test_a_connection_while_cut_off_gets_no_answer_and_may_be_dropped(
    others: bool,
) -> None:
    pid = None if others else os.getpid()
    async with echoing() as between:
        between.cut(pid)
        async with calling(between) as caller:
            caller.writer.write(b"a")
            assert await caller.silent()
            between.heal(pid, reset=True)
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await caller.received(1)
