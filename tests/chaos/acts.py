"""How each fault is done; an act ends when the faulted part is back, or is gone for good."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil
from tests.chaos.draw import Fault, Kind
from tests.chaos.health import Condition
from tests.chaos.proxy import Proxy
from tests.chaos.stage import LAKE_SIZE, Stage, Watched

from binwright.core.errors import EmbeddedError, WorldError
from binwright.embedded.process import Child
from binwright.embedded.server import Server

THERE_S = 40.0  # a victim must be there by then
LEADS_S = 30.0
HIT_S = 40.0  # an aimed fault that nobody came to by then is given up
PROVOKE_S = 6.0
STRUCK_S = 30.0  # "during" is some moments after the step began
POLL_S = 0.05
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an act."""

    happened: bool = True
    also: tuple[Condition, ...] = ()  # what recovery means besides
    victim: int | None = None


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


async def a_consumer(stage: Stage, fault: Fault) -> int:
    """Return the victim's process."""
    await until(lambda: bool(stage.consumers()), THERE_S, "there is a consumer")
    running = [pid for pids in stage.consumers().values() for pid in pids]
    return running[fault.pick % len(running)]


async def _pid(service: Callable[[], Watched]) -> int:
    await until(lambda: service().pid is not None, THERE_S, "the controller runs")
    pid = service().pid
    assert pid is not None
    return pid


def _reigned(stage: Stage) -> Condition:
    before = stage.picture.terms
    return ("a controller claims", lambda: stage.picture.terms > before)


def _gone(pid: int) -> Condition:
    """The process must end by itself: it is superseded."""

    def gone() -> bool:
        try:
            return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True

    return (f"the superseded process {pid} has ended", gone)


def stopped(pid: int) -> bool:
    """Whether a process sleeps or is gone; woken before it slept, it would sleep for good."""
    try:
        return psutil.Process(pid).status() in {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}
    except psutil.NoSuchProcess:
        return True


# --- processes -----------------------------------------------------------------------------------


def _signal_consumer(number: signal.Signals) -> Act:
    async def act(stage: Stage, fault: Fault) -> Done:
        pid = await a_consumer(stage, fault)
        send(pid, number)
        return Done(victim=pid)

    return act


def _signal_controller(number: signal.Signals, *, leading: bool) -> Act:
    async def act(stage: Stage, _: Fault) -> Done:
        pid = await _pid(stage.leader if leading else stage.standby)
        also = (_reigned(stage),) if leading else ()
        send(pid, number)
        return Done(also=also, victim=pid)

    return act


async def _pause(stage: Stage, fault: Fault) -> Done:
    pid = await a_consumer(stage, fault)
    return await _hold(pid, fault.hold_s)


async def _hold(pid: int, hold_s: float) -> Done:
    send(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(hold_s)
    finally:
        send(pid, signal.SIGCONT)
    return Done(victim=pid)


async def _zombie(stage: Stage, fault: Fault) -> Done:
    pid = await a_consumer(stage, fault)
    stage.aims.hide(pid)
    done = await _hold(pid, fault.hold_s)
    return Done(also=(_gone(pid),), victim=done.victim)


async def _twin(stage: Stage, fault: Fault) -> Done:
    await until(lambda: bool(stage.consumers()), THERE_S, "there is a consumer")
    running = stage.consumers()
    slot = sorted(running)[fault.pick % len(running)]
    twin = stage.twin(slot)
    return Done(also=tuple(superseded(pid, twin) for pid in running[slot]), victim=running[slot][0])


def superseded(pid: int, twin: Child) -> Condition:
    """The older process must end, unless a fault beside this one killed the twin at its start."""
    told, gone = _gone(pid)
    return told, lambda: gone() or twin.returncode == -signal.SIGKILL


async def _two_leaders(stage: Stage, _: Fault) -> Done:
    pid = await _pid(stage.leader)
    reigned = _reigned(stage)[1]
    send(pid, signal.SIGSTOP)
    try:
        await until(reigned, LEADS_S, "the standby claims")
    finally:
        send(pid, signal.SIGCONT)
    return Done(victim=pid)


async def _clock(stage: Stage, fault: Fault) -> Done:
    running = [pid for pids in stage.consumers().values() for pid in pids]
    services = (*stage.controllers, stage.monitor)
    everybody = [*running, *(watched.pid for watched in services if watched.pid is not None)]
    pid = everybody[fault.pick % len(everybody)]
    stage.aims.skew(pid, HOUR_S if fault.pick & 1 else -HOUR_S)
    try:
        await asyncio.sleep(fault.hold_s)
    finally:
        stage.aims.skew(pid, 0.0)
    return Done(victim=pid)


# --- servers, lines, the disk --------------------------------------------------------------------


def _restart(server: Callable[[Stage], Server], *, gently: bool) -> Act:
    async def act(stage: Stage, _: Fault) -> Done:
        chosen = server(stage)
        await (chosen.stop() if gently else chosen.kill())
        await chosen.start()
        return Done()

    return act


def _cut(line: Callable[[Stage], Proxy], victim: str) -> Act:
    async def act(stage: Stage, fault: Fault) -> Done:
        pid = None
        also: tuple[Condition, ...] = ()
        if victim == "consumer":
            pid = await a_consumer(stage, fault)
        elif victim == "leader":
            pid, also = await _pid(stage.leader), (_reigned(stage),)
        line(stage).cut(pid)
        try:
            await asyncio.sleep(fault.hold_s)
        finally:
            line(stage).heal(pid, forget=bool(fault.pick & 1))
        return Done(also=also, victim=pid)

    return act


async def _disk_full(stage: Stage, fault: Fault) -> Done:
    assert stage.lake_mount is not None
    used = psutil.disk_usage(str(stage.lake_mount)).used
    try:
        # What the file system may hold is what it holds: cheaper than a file that fills memory.
        await _resize(stage, str(used + (1 << 16)))
        await asyncio.sleep(fault.hold_s)
    finally:
        await _resize(stage, LAKE_SIZE)
    return Done()


async def _resize(stage: Stage, size: str) -> None:
    command = ("mount", "-o", f"remount,size={size}", str(stage.lake_mount))
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
    if done.returncode:
        raise EmbeddedError(f"{' '.join(command)}: {done.stderr.decode(errors='replace')}")


# --- aimed ---------------------------------------------------------------------------------------


async def _aimed(stage: Stage, fault: Fault) -> Done:
    stage.aims.arm(fault)
    asleep: list[int] = []  # put to sleep so that the step comes about
    try:
        await _struck(stage, fault, asleep)
        pid = stage.aims.hit()
        if pid is None:
            return Done(happened=False)
        also = [_gone(one) for one in asleep]
        if fault.whose == "controller":
            also.append(_reigned(stage))
        if fault.deed == "zombie":
            stage.aims.hide(pid)
        if fault.deed in {"kill", "zombie"}:
            also.append(_gone(pid))
        if fault.deed != "kill":
            await until(lambda: stopped(pid), STRUCK_S, f"process {pid} has stopped itself")
            await _hold(pid, fault.hold_s)
        return Done(victim=pid, also=tuple(also))
    finally:
        stage.aims.disarm()
        for one in asleep:
            send(one, signal.SIGCONT)


async def _struck(stage: Stage, fault: Fault, asleep: list[int]) -> None:
    """Wait until somebody came to the step; where it is rare, make it happen."""
    loop = asyncio.get_running_loop()
    begun, provoked = loop.time(), False
    while stage.aims.hit() is None and loop.time() - begun < HIT_S:
        if not provoked and loop.time() - begun > PROVOKE_S:
            provoked = True
            await _provoke(stage, fault, asleep)
        await asyncio.sleep(POLL_S)


async def _provoke(stage: Stage, fault: Fault, asleep: list[int]) -> None:
    match fault.step:
        case "goodbye":
            send(await a_consumer(stage, fault), signal.SIGTERM)
        case "claim" | "state-query":
            send(await _pid(stage.leader), signal.SIGTERM)
        case "dead" | "fenced":
            asleep.append(await a_consumer(stage, fault))
            stage.aims.hide(asleep[0])
            send(asleep[0], signal.SIGSTOP)
        case "hello" | "started" | "lake.claim" | "lake.history" | "start-consuming" | "planned":
            send(await a_consumer(stage, fault), signal.SIGKILL)
        case _:
            pass  # comes about by itself


ACTS: Mapping[Kind, Act] = {
    Kind.KILL_CONSUMER: _signal_consumer(signal.SIGKILL),
    Kind.TERM_CONSUMER: _signal_consumer(signal.SIGTERM),
    Kind.PAUSE_CONSUMER: _pause,
    Kind.HANG_CONSUMER: _pause,
    Kind.ZOMBIE: _zombie,
    Kind.TWIN: _twin,
    Kind.KILL_LEADER: _signal_controller(signal.SIGKILL, leading=True),
    Kind.KILL_STANDBY: _signal_controller(signal.SIGKILL, leading=False),
    Kind.TERM_LEADER: _signal_controller(signal.SIGTERM, leading=True),
    Kind.TWO_LEADERS: _two_leaders,
    Kind.BROKER_RESTART: _restart(lambda stage: stage.broker, gently=True),
    Kind.BROKER_KILL: _restart(lambda stage: stage.broker, gently=False),
    Kind.SPARK_KILL: _restart(lambda stage: stage.spark, gently=False),
    Kind.CUT_CONSUMER_KAFKA: _cut(lambda stage: stage.kafka_line, "consumer"),
    Kind.CUT_CONSUMER_SPARK: _cut(lambda stage: stage.spark_line, "consumer"),
    Kind.CUT_LEADER: _cut(lambda stage: stage.kafka_line, "leader"),
    Kind.CUT_KAFKA: _cut(lambda stage: stage.kafka_line, "everybody"),
    Kind.CUT_SPARK: _cut(lambda stage: stage.spark_line, "everybody"),
    Kind.DISK_FULL: _disk_full,
    Kind.CLOCK_JUMP: _clock,
    Kind.AIMED: _aimed,
}
