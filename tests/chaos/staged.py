"""Faults of what is staged and announced. Spark is cut off meanwhile, so that it has not landed."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.chaos.doing import THERE_S, Act, Done, its_topic, send, until
from tests.chaos.draw import Fault
from tests.chaos.health import Condition
from tests.chaos.stage import TOPICS, Stage

GATHER_S = 1.5  # what is on its way to Spark when it is cut off arrives or does not


@asynccontextmanager
async def nothing_lands(stage: Stage) -> AsyncIterator[None]:
    """Cut everybody off from Spark; what is staged from now on waits."""
    stage.spark_line.cut(None)
    try:
        await asyncio.sleep(GATHER_S)
        yield
    finally:
        stage.spark_line.heal(None, forget=False)


def _read_again(stage: Stage) -> Condition:
    before = stage.picture.gaps
    return ("what was lost is read again", lambda: stage.picture.gaps > before)


def staged(spoil: Callable[[Path], object]) -> Act:
    """Return the act that spoils the next file of a table: its rows must be read again."""

    async def act(stage: Stage, fault: Fault) -> Done:
        topic = its_topic(fault)
        async with nothing_lands(stage):
            before = stage.staged_files(topic)
            again = _read_again(stage)
            await until(
                lambda: bool(stage.staged_files(topic) - before), THERE_S, f"{topic} is staged"
            )
            spoil(min(stage.staged_files(topic) - before))
        return Done(also=(again,))

    return act


def halve(file: Path) -> None:
    """Leave the first half of a file."""
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    """Leave nothing of a file but its name: Spark takes that for a table without rows."""
    os.truncate(file, 0)


async def announced_lost(stage: Stage, _: Fault) -> Done:
    """Delete what is announced and has not landed; who knew of it is killed."""
    async with nothing_lands(stage):
        again = _read_again(stage)
        await stage.forget_announcements()
        writers = {writer[1] for topic in TOPICS if (writer := stage.writer(topic)) is not None}
        for pid in writers:
            send(pid, signal.SIGKILL)
    return Done(also=(again,) if writers else (), victim=min(writers, default=None))


async def landing_anew(stage: Stage, _: Fault) -> Done:
    """Delete the landing topic; whoever announces next makes it anew."""
    await stage.delete_landing_topic()
    return Done()
