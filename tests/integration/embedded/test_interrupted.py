"""Whoever loses patience in the middle of a start leaves nothing behind."""

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psutil
import pytest
from tests.waiting import until

from binwright.local.kafka import run_broker
from binwright.local.server import reserve_port
from binwright.local.spark import run_spark

pytestmark = pytest.mark.integration

DEADLINE_S = 60.0

Run = Callable[..., AbstractAsyncContextManager[object]]


def family(home: Path) -> set[int]:
    """Return who works for `home`; the session's own servers start processes when they like."""
    found = set()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if str(home) in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


@pytest.mark.parametrize(
    ("run", "log"), [(run_broker, "broker.log"), (run_spark, "spark.log")], ids=["broker", "spark"]
)
async def test_a_cancelled_start_leaves_no_process_port_or_directory(
    run: Run, log: str, tmp_path: Path
) -> None:
    home = tmp_path / "made" / "here"
    with reserve_port() as port:
        pass

    async def start() -> None:
        async with run(home, port=port):
            raise AssertionError("it was to be cancelled before")

    task = asyncio.create_task(start())
    await until(lambda: (home / log).exists() and bool(family(home)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not family(home)
    assert not home.parent.exists()
    with reserve_port(port):
        pass


async def test_cancelled_while_it_formats_it_leaves_nothing(tmp_path: Path) -> None:
    home = tmp_path / "made"

    async def start() -> None:
        async with run_broker(home):
            raise AssertionError("it was to be cancelled before")

    task = asyncio.create_task(start())
    await until(lambda: (home / "format.log").exists() and bool(family(home)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (family(home), home.exists()) == (set(), False)
