"""Opens the lake on first use: importing pyspark takes a second and 100 MB in each process."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib import import_module

from binwright.protocol.ports.lake import Lake
from binwright.runtime.settings import LakeSettings


def lake_opener(
    stack: AsyncExitStack, lake: LakeSettings, staged: str, write_timeout_s: float
) -> Callable[[], Awaitable[Lake]]:
    """Return a function that opens a `SparkLake` with these arguments; `stack` closes it."""

    async def open_lake() -> Lake:
        module = await asyncio.to_thread(import_module, "binwright.consumer.lake.spark_lake")
        opened: Lake = await stack.enter_async_context(
            module.SparkLake(lake, staged, write_timeout_s)
        )
        return opened

    return open_lake
