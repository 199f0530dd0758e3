"""How each fault is injected; an action ends when the faulted part is back, or is gone for good."""

import asyncio
import signal
import subprocess
from collections.abc import Callable, Mapping

import psutil
from tests.chaos.aimed_faults import inject_aimed_fault
from tests.chaos.fault_helpers import (
    CATCH_UP,
    VICTIM_TIMEOUT_S,
    FaultAction,
    FaultResult,
    controller_pid,
    new_leader,
    pause_process,
    pick_consumer,
    pick_topic,
    pick_writer,
    process_ended,
    send_signal,
    superseded,
    until,
)
from tests.chaos.fault_schedule import Fault, Kind
from tests.chaos.health import Condition
from tests.chaos.lasting_faults import bomb_record, freeze_spark, lose_leader, refuse_table
from tests.chaos.proxy import Proxy
from tests.chaos.servers import LAKE_SIZE
from tests.chaos.staged_file_faults import (
    empty,
    forge_announcement,
    halve,
    lose_announcements,
    lose_landing_topic,
    lose_lease,
    spoil_staged_file,
)
from tests.chaos.system import System

from binwright.protocol.errors import EmbeddedError
from binwright.protocol.model import Slot

LEADS_S = 30.0
FILLS = 10
CLAIMS_S = 60.0
HOUR_S = 3600.0


# --- processes -----------------------------------------------------------------------------------


def _signal_consumer(number: signal.Signals) -> FaultAction:
    async def inject(system: System, fault: Fault) -> FaultResult:
        pid = await pick_consumer(system, fault)
        send_signal(pid, number)
        return FaultResult(victim=pid)

    return inject


def _signal_writer(number: signal.Signals) -> FaultAction:
    async def inject(system: System, fault: Fault) -> FaultResult:
        _, pid = await pick_writer(system, fault)
        send_signal(pid, number)
        return FaultResult(victim=pid)

    return inject


def _signal_controller(number: signal.Signals, *, leading: bool) -> FaultAction:
    async def inject(system: System, _: Fault) -> FaultResult:
        pid = await controller_pid(system.leader if leading else system.standby)
        conditions = (new_leader(system),) if leading else ()
        send_signal(pid, number)
        return FaultResult(conditions=conditions, victim=pid)

    return inject


async def _pause(system: System, fault: Fault) -> FaultResult:
    return await pause_process(await pick_consumer(system, fault), fault.duration_s)


async def _zombie(system: System, fault: Fault) -> FaultResult:
    pid = await pick_consumer(system, fault)
    system.aimed_points.hide(pid)
    done = await pause_process(pid, fault.duration_s)
    return FaultResult(conditions=(process_ended(pid),), victim=done.victim)


async def _outlived(system: System, fault: Fault) -> FaultResult:
    """Wake the old writer only when the new one lands: whatever it still sends must be shut out."""
    topic = pick_topic(fault)
    _, pid = await pick_writer(system, fault)
    before = system.writer_epoch(topic)
    system.aimed_points.hide(pid)
    send_signal(pid, signal.SIGSTOP)
    try:
        await until(
            lambda: system.writer_epoch(topic) not in {None, before},
            CLAIMS_S,
            f"another writer lands {topic}",
        )
    finally:
        send_signal(pid, signal.SIGCONT)
    return FaultResult(conditions=(process_ended(pid),), victim=pid)


async def _twin(system: System, fault: Fault) -> FaultResult:
    await until(lambda: bool(system.consumers()), VICTIM_TIMEOUT_S, "there is a consumer")
    running = system.consumers()
    return _twinned(system, sorted(running)[fault.pick % len(running)])


async def _twin_writer(system: System, fault: Fault) -> FaultResult:
    slot, _ = await pick_writer(system, fault)
    return _twinned(system, slot)


def _twinned(system: System, slot: Slot) -> FaultResult:
    before = system.consumers().get(slot, [])
    twin = system.twin(slot)
    conditions = tuple(superseded(pid, twin) for pid in before)
    return FaultResult(conditions=conditions, victim=before[0] if before else None)


async def _two_leaders(system: System, _: Fault) -> FaultResult:
    pid = await controller_pid(system.leader)
    claimed = new_leader(system)[1]
    send_signal(pid, signal.SIGSTOP)
    try:
        await until(claimed, LEADS_S, "the standby claims")
    finally:
        send_signal(pid, signal.SIGCONT)
    return FaultResult(victim=pid)


async def _clock(system: System, fault: Fault) -> FaultResult:
    running = [pid for pids in system.consumers().values() for pid in pids]
    services = (*system.controllers, system.monitor)
    pids = [*running, *(watched.pid for watched in services if watched.pid is not None)]
    pid = pids[fault.pick % len(pids)]
    system.aimed_points.skew(pid, HOUR_S if fault.pick & 1 else -HOUR_S)
    try:
        await asyncio.sleep(fault.duration_s)
    finally:
        system.aimed_points.skew(pid, 0.0)
    return FaultResult(victim=pid)


# --- servers, lines, the disk --------------------------------------------------------------------


def _restart_broker(*, gently: bool) -> FaultAction:
    async def inject(system: System, _: Fault) -> FaultResult:
        chosen = system.brokers[0]
        await (chosen.stop() if gently else chosen.kill())
        await chosen.start()
        return FaultResult()

    return inject


async def _spark_killed(system: System, fault: Fault) -> FaultResult:
    chosen = system.sparks[fault.pick % len(system.sparks)]
    await chosen.kill()
    await chosen.start()
    return FaultResult()


async def _registry_killed(system: System, fault: Fault) -> FaultResult:
    assert system.evolving is not None
    await system.evolving.restart(fault.duration_s)
    return FaultResult()


async def _spark_away(system: System, fault: Fault) -> FaultResult:
    """Consumers go on reading and staging meanwhile."""
    for spark in system.sparks:
        await spark.kill()
    try:
        await asyncio.sleep(fault.duration_s)
    finally:
        for spark in system.sparks:
            await spark.start()
    return FaultResult(extra_recovery_s=CATCH_UP * fault.duration_s)


def _cut(lines: Callable[[System], tuple[Proxy, ...]], victim: str) -> FaultAction:
    async def inject(system: System, fault: Fault) -> FaultResult:
        pid: int | None = None
        conditions: tuple[Condition, ...] = ()
        if victim == "consumer":
            pid = await pick_consumer(system, fault)
        elif victim == "writer":
            _, pid = await pick_writer(system, fault)
        elif victim == "leader":
            pid, conditions = await controller_pid(system.leader), (new_leader(system),)
        for line in lines(system):
            line.cut(pid)
        try:
            await asyncio.sleep(fault.duration_s)
        finally:
            for line in lines(system):
                line.heal(pid, reset=bool(fault.pick & 1))
        return FaultResult(conditions=conditions, victim=pid)

    return inject


async def _disk_full(system: System, fault: Fault) -> FaultResult:
    try:
        await _fill(system)
        await asyncio.sleep(fault.duration_s)
    finally:
        await _resize(system, LAKE_SIZE)
    return FaultResult()


async def _fill(system: System) -> None:
    """Let the file system hold what it holds: cheaper than a file that fills memory."""
    assert system.lake_mount is not None
    for left in reversed(range(FILLS)):
        used = psutil.disk_usage(str(system.lake_mount)).used
        try:
            await _resize(system, str(used + (1 << 16)))
        except EmbeddedError:  # what was written meanwhile does not fit
            if not left:
                raise
        else:
            return


async def _resize(system: System, size: str) -> None:
    command = ("mount", "-o", f"remount,size={size}", str(system.lake_mount))
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
    if done.returncode:
        raise EmbeddedError(f"{' '.join(command)}: {done.stderr.decode(errors='replace')}")


FAULT_ACTIONS: Mapping[Kind, FaultAction] = {
    Kind.KILL_CONSUMER: _signal_consumer(signal.SIGKILL),
    Kind.TERM_CONSUMER: _signal_consumer(signal.SIGTERM),
    Kind.PAUSE_CONSUMER: _pause,
    Kind.HANG_CONSUMER: _pause,
    Kind.ZOMBIE: _zombie,
    Kind.TWIN: _twin,
    Kind.KILL_WRITER: _signal_writer(signal.SIGKILL),
    Kind.TERM_WRITER: _signal_writer(signal.SIGTERM),
    Kind.REPLACED_WRITER: _outlived,
    Kind.TWIN_WRITER: _twin_writer,
    Kind.KILL_LEADER: _signal_controller(signal.SIGKILL, leading=True),
    Kind.KILL_STANDBY: _signal_controller(signal.SIGKILL, leading=False),
    Kind.TERM_LEADER: _signal_controller(signal.SIGTERM, leading=True),
    Kind.TWO_LEADERS: _two_leaders,
    Kind.BROKER_RESTART: _restart_broker(gently=True),
    Kind.BROKER_KILL: _restart_broker(gently=False),
    Kind.SPARK_KILL: _spark_killed,
    Kind.REGISTRY_KILL: _registry_killed,
    Kind.SPARK_AWAY: _spark_away,
    Kind.CUT_CONSUMER_KAFKA: _cut(lambda system: system.kafka_proxies, "consumer"),
    Kind.CUT_WRITER_SPARK: _cut(lambda system: system.spark_proxies, "writer"),
    Kind.CUT_LEADER: _cut(lambda system: system.kafka_proxies, "leader"),
    Kind.CUT_KAFKA: _cut(lambda system: system.kafka_proxies, "all processes"),
    Kind.CUT_SPARK: _cut(lambda system: system.spark_proxies, "all processes"),
    Kind.STAGED_LOST: spoil_staged_file(lambda file: file.unlink()),
    Kind.STAGED_TORN: spoil_staged_file(halve),
    Kind.STAGED_EMPTY: spoil_staged_file(empty),
    Kind.LEASE_LOST: lose_lease,
    Kind.FORGED: forge_announcement,
    Kind.ANNOUNCED_LOST: lose_announcements,
    Kind.LANDING_TOPIC_DELETED: lose_landing_topic,
    Kind.DISK_FULL: _disk_full,
    Kind.TABLE_REFUSED: refuse_table,
    Kind.SPARK_FROZEN: freeze_spark,
    Kind.LEADERLESS: lose_leader,
    Kind.BOMB: bomb_record,
    Kind.CLOCK_JUMP: _clock,
    Kind.AIMED: inject_aimed_fault,
}
