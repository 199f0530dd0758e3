"""What acts are made of: victims, signals, and what is waited for."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil
from tests.chaos.draw import Fault
from tests.chaos.health import Condition
from tests.chaos.stage import TOPICS, Stage, Watched

from binwright.core.errors import WorldError
from binwright.core.model import Slot
from binwright.embedded.process import Child

THERE_S = 40.0  # a victim must be there by then
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an act."""

    happened: bool = True
    also: tuple[Condition, ...] = ()  # what recovery means besides
    victim: int | None = None
    extra_s: float = 0.0  # how much longer than usual recovery may take


Act = Callable[[Stage, Fault], Coroutine[Any, Any, Done]]


async def until(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Wait for `condition`; raise `WorldError` at the deadline."""
    try:
        async with asyncio.timeout(deadline_s):
            while not condition():  # noqa: ASYNC110 - processes tell nobody
                await asyncio.sleep(POLL_S)
    except TimeoutError as exc:
        raise WorldError(f"after {deadline_s:g} s it is not so that {what}") from exc


def send(pid: int, number: signal.Signals) -> None:
    """Signal a process, unless it is gone already."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


# --- victims -------------------------------------------------------------------------------------


async def a_consumer(stage: Stage, fault: Fault) -> int:
    """Return the victim's process."""
    await until(lambda: bool(stage.consumers()), THERE_S, "there is a consumer")
    running = [pid for pids in stage.consumers().values() for pid in pids]
    return running[fault.pick % len(running)]


def its_topic(fault: Fault) -> str:
    """Return the topic whose table a fault is about."""
    return TOPICS[fault.pick % len(TOPICS)]


async def a_writer(stage: Stage, fault: Fault) -> tuple[Slot, int]:
    """Return slot and process of the table's writer, once it lands."""
    topic = its_topic(fault)
    await until(lambda: stage.writer(topic) is not None, THERE_S, f"the table {topic} is written")
    writer = stage.writer(topic)
    assert writer is not None
    return writer


async def controller_pid(service: Callable[[], Watched]) -> int:
    """Return the process of a controller, once it runs."""
    await until(lambda: service().pid is not None, THERE_S, "the controller runs")
    pid = service().pid
    assert pid is not None
    return pid


# --- conditions ----------------------------------------------------------------------------------


def new_leader(stage: Stage) -> Condition:
    """Another controller must claim."""
    before = stage.picture.terms
    return ("a controller claims", lambda: stage.picture.terms > before)


def gone(pid: int) -> Condition:
    """The process must end by itself: it is superseded."""

    def ended() -> bool:
        try:
            return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True

    return (f"the superseded process {pid} has ended", ended)


def stopped(pid: int) -> bool:
    """Whether a process sleeps or is gone; woken before it slept, it would sleep for good."""
    try:
        return psutil.Process(pid).status() in {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}
    except psutil.NoSuchProcess:
        return True


def superseded(pid: int, twin: Child) -> Condition:
    """The older process must end, unless a fault beside this one killed the twin at its start."""
    told, ended = gone(pid)
    return told, lambda: ended() or twin.returncode == -signal.SIGKILL


async def hold(pid: int, hold_s: float) -> Done:
    """Pause a process for so long."""
    send(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(hold_s)
    finally:
        send(pid, signal.SIGCONT)
    return Done(victim=pid)
