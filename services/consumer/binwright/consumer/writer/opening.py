"""Opens the lake when it is first needed: pyspark takes a second and 100 MB in each process."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib import import_module

from binwright.core.ports import Lake
from binwright.shell.settings import LakeSettings


def lake_opener(
    stack: AsyncExitStack, lake: LakeSettings, staged: str, write_timeout_s: float
) -> Callable[[], Awaitable[Lake]]:
    """Return what opens a `SparkLake` with these arguments; `stack` closes it."""

    async def opened() -> Lake:
        module = await asyncio.to_thread(import_module, "binwright.consumer.writer.lake")
        found: Lake = await stack.enter_async_context(
            module.SparkLake(lake, staged, write_timeout_s)
        )
        return found

    return opened
