"""Faults at named steps: the process that comes to one first strikes itself, or gets a twin."""

import asyncio
import signal

from tests.chaos.doing import (
    POLL_S,
    Done,
    a_consumer,
    a_writer,
    controller_pid,
    gone,
    hold,
    new_leader,
    send,
    stopped,
    superseded,
    until,
)
from tests.chaos.draw import Fault
from tests.chaos.health import Condition
from tests.chaos.stage import Stage
from tests.chaos.staged import staged

HIT_S = 40.0  # an aimed fault that nobody came to by then is given up
PROVOKE_S = 6.0
STRUCK_S = 30.0  # "during" is some moments after the step began


async def aimed(stage: Stage, fault: Fault) -> Done:
    """Strike whoever comes to the step."""
    stage.aims.arm(fault)
    asleep: list[int] = []  # put to sleep so that the step comes about
    try:
        await _struck(stage, fault, asleep)
        pid = stage.aims.hit()
        if pid is None:
            return Done(happened=False)
        also = [gone(one) for one in asleep]
        if fault.whose == "controller":
            also.append(new_leader(stage))
        also += await _suffer(stage, fault, pid)
        return Done(victim=pid, also=tuple(also))
    finally:
        stage.aims.disarm()
        for one in asleep:
            send(one, signal.SIGCONT)


async def _suffer(stage: Stage, fault: Fault, pid: int) -> list[Condition]:
    """Go through what the deed is; return what recovery means besides."""
    if fault.deed == "twin":
        return _twinned(stage, pid)
    if fault.deed == "zombie":
        stage.aims.hide(pid)
    if fault.deed != "kill":
        await until(lambda: stopped(pid), STRUCK_S, f"process {pid} has stopped itself")
        await hold(pid, fault.hold_s)
    return [gone(pid)] if fault.deed in {"kill", "zombie"} else []


def _twinned(stage: Stage, pid: int) -> list[Condition]:
    for slot, pids in stage.consumers().items():
        if pid in pids:
            twin = stage.twin(slot)
            return [superseded(one, twin) for one in pids]
    return []  # it ended by itself


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
        case "claim" | "state-query":
            send(await controller_pid(stage.leader), signal.SIGTERM)
        case "dead":
            asleep.append(await a_consumer(stage, fault))
            stage.aims.hide(asleep[0])
            send(asleep[0], signal.SIGSTOP)
        case "gap":
            await staged(lambda file: file.unlink())(stage, fault)
        case "goodbye" | "stop-writing" | "stop-reading" | "stopped":
            _, pid = await a_writer(stage, fault)
            send(pid, signal.SIGTERM)
        case "hello" | "started" | "start-reading" | "planned":
            send(await a_consumer(stage, fault), signal.SIGKILL)
        case "start-writing" | "table.claimed" | "table.resolved":
            await _kill_a_writer(stage, fault)
        case "lake.open" | "lake.claim" | "lake.history":
            await _kill_a_writer(stage, fault)
        case _:
            pass  # comes about by itself


async def _kill_a_writer(stage: Stage, fault: Fault) -> None:
    _, pid = await a_writer(stage, fault)
    send(pid, signal.SIGKILL)
