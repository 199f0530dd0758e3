"""A TCP proxy that can cut off one process, or all of them, as a network does: silently.

What is under way while it is cut is held, and goes on when it is healed, as TCP would send it
again; or the connections are gone then, as behind a firewall that forgot them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import psutil

HOST = "127.0.0.1"
CHUNK = 1 << 16


@dataclass(slots=True, eq=False)
class Line:
    """A connection: who called, and whether anything passes."""

    caller: int  # the port
    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    whole: asyncio.Event = field(default_factory=asyncio.Event)

    def hang_up(self) -> None:
        """Drop both ends at once."""
        for writer in self.writers:
            writer.transport.abort()


@dataclass(slots=True)
class Proxy:
    """Between the services and one port of a server."""

    target: int
    port: int = 0  # ours
    _lines: set[Line] = field(default_factory=set)
    _cut: set[int] = field(default_factory=set)  # processes
    _all: bool = False

    def cut(self, pid: int | None) -> None:
        """Let nothing pass of this process, or of anybody if None."""
        if pid is None:
            self._all = True
        else:
            self._cut.add(pid)
        self._gate()

    def heal(self, pid: int | None, *, reset: bool) -> None:
        """Let it pass again; what was under way goes on, or is forgotten."""
        held = [line for line in self._lines if not line.whole.is_set()]
        if pid is None:
            self._all = False
        else:
            self._cut.discard(pid)
        self._gate()
        for line in held:
            if reset and line.whole.is_set():
                line.hang_up()

    def _gate(self) -> None:
        ports = _ports(self._cut)
        for line in self._lines:
            if self._all or line.caller in ports:
                line.whole.clear()
            else:
                line.whole.set()

    async def serve(self, caller: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Carry one connection until an end of it closes."""
        try:
            server, on = await asyncio.open_connection(HOST, self.target)
        except OSError:
            back.transport.abort()
            return
        line = Line(back.get_extra_info("peername")[1], (back, on))
        self._lines.add(line)
        self._gate()
        try:
            await asyncio.gather(_carry(caller, on, line.whole), _carry(server, back, line.whole))
        except OSError:
            pass  # an end was reset: that is for the two ends to notice
        finally:
            self._lines.discard(line)
            line.hang_up()

    def close(self) -> None:
        """Drop every connection."""
        for line in list(self._lines):
            line.hang_up()


async def _carry(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, whole: asyncio.Event
) -> None:
    while data := await source.read(CHUNK):
        await whole.wait()
        if sink.is_closing():
            return
        sink.write(data)
        await sink.drain()
    await whole.wait()
    if not sink.is_closing() and sink.can_write_eof():
        with suppress(OSError):
            sink.write_eof()


def _ports(pids: set[int]) -> set[int]:
    found: set[int] = set()
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            found |= {c.laddr.port for c in psutil.Process(pid).net_connections("tcp") if c.laddr}
    return found


@asynccontextmanager
async def proxy(target: int, address: str = HOST) -> AsyncIterator[Proxy]:
    """Listen on a free port of `address` for connections to `target`, which is on the loopback."""
    between = Proxy(target)
    server = await asyncio.start_server(between.serve, address, 0)
    between.port = server.sockets[0].getsockname()[1]
    try:
        yield between
    finally:
        server.close()
        between.close()
