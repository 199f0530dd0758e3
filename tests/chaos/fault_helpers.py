"""What fault actions share: victims, signals, and conditions to wait for."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil
from tests.chaos.fault_schedule import Fault
from tests.chaos.health import Condition
from tests.chaos.system import LoggedService, System
from tests.chaos.system_settings import TOPICS

from binwright.local.child import Child
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import Slot

VICTIM_TIMEOUT_S = 40.0  # a victim must be there by then
POLL_S = 0.05
CATCH_UP = 0.25  # of the time in which nothing landed: what was staged meanwhile must land, too


@dataclass(frozen=True, slots=True)
class FaultResult:
    """The outcome of a fault action."""

    happened: bool = True
    conditions: tuple[Condition, ...] = ()  # what recovery means besides
    victim: int | None = None
    extra_recovery_s: float = 0.0  # how much longer than usual recovery may take
    others_s: float | None = None  # how long the records of all others took to land, at most
    call: str = ""  # in which it struck, if it was aimed at a step


FaultAction = Callable[[System, Fault], Coroutine[Any, Any, FaultResult]]


async def until(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Wait for `condition`; raise `ExternalError` at the deadline."""
    try:
        async with asyncio.timeout(deadline_s):
            while not condition():  # noqa: ASYNC110 - processes send no event
                await asyncio.sleep(POLL_S)
    except TimeoutError as exc:
        raise ExternalError(f"after {deadline_s:g} s it is not so that {what}") from exc


def send_signal(pid: int, number: signal.Signals) -> None:
    """Signal a process, unless it is gone already."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


# --- victims -------------------------------------------------------------------------------------


async def pick_consumer(system: System, fault: Fault) -> int:
    """Return the victim's process."""
    await until(lambda: bool(system.consumers()), VICTIM_TIMEOUT_S, "there is a consumer")
    running = [pid for pids in system.consumers().values() for pid in pids]
    return running[fault.pick % len(running)]


def pick_topic(fault: Fault) -> str:
    """Return the topic whose table a fault is about."""
    return TOPICS[fault.pick % len(TOPICS)]


async def pick_writer(system: System, fault: Fault) -> tuple[Slot, int]:
    """Return slot and process of the table's writer, once it lands."""
    topic = pick_topic(fault)
    await until(
        lambda: system.writer(topic) is not None, VICTIM_TIMEOUT_S, f"the table {topic} is written"
    )
    writer = system.writer(topic)
    assert writer is not None
    return writer


async def controller_pid(service: Callable[[], LoggedService]) -> int:
    """Return the process of a controller, once it runs."""
    await until(lambda: service().pid is not None, VICTIM_TIMEOUT_S, "the controller runs")
    pid = service().pid
    assert pid is not None
    return pid


# --- conditions ----------------------------------------------------------------------------------


def new_leader(system: System) -> Condition:
    """Another controller must claim."""
    before = system.view.terms
    return ("a controller claims", lambda: system.view.terms > before)


def process_ended(pid: int) -> Condition:
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
    result, ended = process_ended(pid)
    return result, lambda: ended() or twin.returncode == -signal.SIGKILL


async def pause_process(pid: int, duration_s: float) -> FaultResult:
    """Pause a process for so long."""
    send_signal(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(duration_s)
    finally:
        send_signal(pid, signal.SIGCONT)
    return FaultResult(victim=pid)
