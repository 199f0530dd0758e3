"""Faults at named steps: the process that comes to one first strikes itself, or gets a twin."""

import asyncio
import signal

from tests.chaos.fault_helpers import (
    POLL_S,
    FaultResult,
    controller_pid,
    new_leader,
    pause_process,
    pick_consumer,
    pick_topic,
    pick_writer,
    process_ended,
    send_signal,
    stopped,
    superseded,
    until,
)
from tests.chaos.fault_schedule import Fault
from tests.chaos.health import Condition
from tests.chaos.staged_file_faults import spoil_staged_file
from tests.chaos.system import System

from binwright.local.server import Server

HIT_S = 40.0  # an aimed fault that nobody came to by then is given up
PROVOKE_S = 6.0
STRUCK_S = 30.0  # "during" is some moments after the step began


async def inject_aimed_fault(system: System, fault: Fault) -> FaultResult:
    """Strike whoever comes to the step."""
    server = _server(system, fault)
    system.aimed_points.arm(fault, None if server is None else server.pid)
    asleep: list[int] = []  # put to sleep so that the step comes about
    try:
        await _struck(system, fault, asleep)
        hit = system.aimed_points.hit()
        if hit is None:
            return FaultResult(happened=False)
        conditions = [process_ended(one) for one in asleep]
        if fault.service == "controller":
            conditions.append(new_leader(system))
        conditions += await _suffer(system, fault, hit.pid)
        return FaultResult(victim=hit.pid, conditions=tuple(conditions), call=hit.call)
    finally:
        system.aimed_points.disarm()
        for one in asleep:
            send_signal(one, signal.SIGCONT)


async def _suffer(system: System, fault: Fault, pid: int) -> list[Condition]:
    """Go through what the deed is; return what recovery means besides."""
    if (server := _server(system, fault)) is not None:
        await until(lambda: server.pid is None, STRUCK_S, f"the server is killed {fault}")
        await _restart(system, server)
        return []
    if fault.failure_mode == "twin":
        return _twinned(system, pid)
    if fault.failure_mode == "zombie":
        system.aimed_points.hide(pid)
    if fault.failure_mode != "kill":
        await until(lambda: stopped(pid), STRUCK_S, f"process {pid} has stopped itself")
        await pause_process(pid, fault.duration_s)
    return [process_ended(pid)] if fault.failure_mode in {"kill", "zombie"} else []


def _server(system: System, fault: Fault) -> Server | None:
    """Return the server that is killed at a step, if not the process itself is."""
    match fault.failure_mode:
        case "kill_spark":
            return system.spark_of(pick_topic(fault))
        case "kill_registry":
            assert system.evolving is not None
            return system.evolving.registry
    return None


async def _restart(system: System, server: Server) -> None:
    if system.evolving is not None and server is system.evolving.registry:
        await system.evolving.restart()
    else:
        await server.start()


def _twinned(system: System, pid: int) -> list[Condition]:
    for slot, pids in system.consumers().items():
        if pid in pids:
            twin = system.twin(slot)
            return [superseded(one, twin) for one in pids]
    return []  # it ended by itself


async def _struck(system: System, fault: Fault, asleep: list[int]) -> None:
    """Wait until somebody came to the step; where it is rare, make it happen."""
    loop = asyncio.get_running_loop()
    begun, provoked = loop.time(), False
    while system.aimed_points.hit() is None and loop.time() - begun < HIT_S:
        if not provoked and loop.time() - begun > PROVOKE_S:
            provoked = True
            await _provoke(system, fault, asleep)
        await asyncio.sleep(POLL_S)


async def _provoke(system: System, fault: Fault, asleep: list[int]) -> None:
    match fault.step:
        case "claim" | "state-query":
            send_signal(await controller_pid(system.leader), signal.SIGTERM)
        case "dead":
            asleep.append(await pick_consumer(system, fault))
            system.aimed_points.hide(asleep[0])
            send_signal(asleep[0], signal.SIGSTOP)
        case "gap":
            await spoil_staged_file(lambda file: file.unlink())(system, fault)
        case "goodbye" | "stop-writing" | "stop-reading" | "stopped":
            _, pid = await pick_writer(system, fault)
            send_signal(pid, signal.SIGTERM)
        case "hello" | "started" | "start-reading" | "split-reading" | "planned":
            send_signal(await pick_consumer(system, fault), signal.SIGKILL)
        case "start-writing" | "table.claimed" | "table.resolved":
            await _kill_a_writer(system, fault)
        case "lake.open" | "lake.claim" | "lake.history":
            await _kill_a_writer(system, fault)
        case "staging.write_lease" | "staging.delete_other_leases":
            await _kill_a_writer(system, fault)
        case _:
            pass  # comes about by itself


async def _kill_a_writer(system: System, fault: Fault) -> None:
    _, pid = await pick_writer(system, fault)
    send_signal(pid, signal.SIGKILL)
