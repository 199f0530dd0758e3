"""TLS in front of a server that has none, as a proxy of a cluster or a cloud has it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

HOST = "127.0.0.1"
CHUNK = 1 << 16


@asynccontextmanager
async def tls_proxy(target: int, context: ssl.SSLContext) -> AsyncIterator[int]:
    """Listen on a free port with TLS and HTTP/2, for `target` on the loopback; give the port."""
    context.set_alpn_protocols(["h2"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, out = await asyncio.open_connection(HOST, target)
        await asyncio.gather(_copy(reader, out), _copy(inner, writer))

    async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, ssl.SSLError):
            while data := await source.read(CHUNK):
                sink.write(data)
                await sink.drain()
        sink.close()

    server = await asyncio.start_server(serve, HOST, 0, ssl=context)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
