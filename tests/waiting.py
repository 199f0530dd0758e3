"""Waiting for what tells nobody: processes, files, logs, brokers."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable

WITHIN_S = 60.0
PAUSE_S = 0.05


async def until(
    condition: Callable[[], bool | Awaitable[bool]], within_s: float = WITHIN_S
) -> None:
    """Ask again and again until `condition` holds; raise `TimeoutError` after `within_s`."""
    async with asyncio.timeout(within_s):
        while True:
            held = condition()
            if await held if isawaitable(held) else held:
                return
            await asyncio.sleep(PAUSE_S)
