"""TCP ports of 127.0.0.1, kept for a server that is not there yet."""

import asyncio
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from binwright.protocol.errors import EmbeddedError

HOST = "127.0.0.1"
CONNECT_S = 1.0


@contextmanager
def reserve_port(port: int | None = None) -> Iterator[int]:
    """Keep a port, or a free one if None, from being handed to anybody who asks for a free one.

    On Linux a bound socket that does not listen leaves room for a server that binds the same port
    with SO_REUSEADDR, as Java does, while the kernel gives the number to nobody else: so it is ours
    before the server's start, and from its stop to its next start. Elsewhere the socket must go
    first, which leaves a moment to others.

    Raises:
        EmbeddedError: Somebody listens on `port`, or it is not ours to take.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((HOST, port or 0))
        except (OSError, OverflowError) as exc:
            raise EmbeddedError(
                f"port {port} of {HOST} cannot be had ({exc}): end whoever listens there, "
                "or name no port and get a free one"
            ) from exc
        number = int(holder.getsockname()[1])
        if sys.platform != "linux":
            holder.close()
        yield number


async def accepts_connections(port: int) -> bool:
    """Tell whether somebody accepts connections on `port`, within a second."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(HOST, port)
        writer.close()
        return True
    return False
