"""What asyncio reports of connections that are lost: nothing beside the requests that fail."""

import asyncio
from typing import Any

import aiokafka.conn

from binwright.kafka import aiokafka_patches


async def test_the_end_of_a_connection_is_not_reported_again() -> None:
    """A refused client certificate is one sentence, and no traceback behind it."""
    assert aiokafka.conn.AIOKafkaConnection is aiokafka_patches.AuthenticatedConnection
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    made: Any = aiokafka.conn.AIOKafkaProtocol
    protocol = made(loop.create_future(), reader, loop=loop)
    protocol.connection_lost(OSError("certificate unknown"))
    closed = protocol._get_close_waiter(None)
    assert closed.done()
    assert not closed._log_traceback
