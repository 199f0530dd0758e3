"""How each fault is done; an act ends when the faulted part is back, or is gone for good."""

import asyncio
import signal
import subprocess
from collections.abc import Callable, Mapping

import psutil
from tests.chaos.aimed import aimed
from tests.chaos.doing import (
    THERE_S,
    Act,
    Done,
    a_consumer,
    a_writer,
    controller_pid,
    gone,
    hold,
    its_topic,
    new_leader,
    send,
    superseded,
    until,
)
from tests.chaos.draw import Fault, Kind
from tests.chaos.health import Condition
from tests.chaos.proxy import Proxy
from tests.chaos.stage import LAKE_SIZE, Stage
from tests.chaos.staged import announced_lost, empty, halve, landing_anew, staged

from binwright.core.errors import EmbeddedError
from binwright.core.model import Slot
from binwright.embedded.server import Server

LEADS_S = 30.0
FILLS = 10
CLAIMS_S = 60.0
HOUR_S = 3600.0
CATCH_UP = 0.25  # of the time Spark was away: what was staged meanwhile must land, too


# --- processes -----------------------------------------------------------------------------------


def _signal_consumer(number: signal.Signals) -> Act:
    async def act(stage: Stage, fault: Fault) -> Done:
        pid = await a_consumer(stage, fault)
        send(pid, number)
        return Done(victim=pid)

    return act


def _signal_writer(number: signal.Signals) -> Act:
    async def act(stage: Stage, fault: Fault) -> Done:
        _, pid = await a_writer(stage, fault)
        send(pid, number)
        return Done(victim=pid)

    return act


def _signal_controller(number: signal.Signals, *, leading: bool) -> Act:
    async def act(stage: Stage, _: Fault) -> Done:
        pid = await controller_pid(stage.leader if leading else stage.standby)
        also = (new_leader(stage),) if leading else ()
        send(pid, number)
        return Done(also=also, victim=pid)

    return act


async def _pause(stage: Stage, fault: Fault) -> Done:
    return await hold(await a_consumer(stage, fault), fault.hold_s)


async def _zombie(stage: Stage, fault: Fault) -> Done:
    pid = await a_consumer(stage, fault)
    stage.aims.hide(pid)
    done = await hold(pid, fault.hold_s)
    return Done(also=(gone(pid),), victim=done.victim)


async def _outlived(stage: Stage, fault: Fault) -> Done:
    """Wake the old writer only when the new one lands: whatever it still sends must be shut out."""
    topic = its_topic(fault)
    _, pid = await a_writer(stage, fault)
    before = stage.writer_epoch(topic)
    stage.aims.hide(pid)
    send(pid, signal.SIGSTOP)
    try:
        await until(
            lambda: stage.writer_epoch(topic) not in {None, before},
            CLAIMS_S,
            f"another writer lands {topic}",
        )
    finally:
        send(pid, signal.SIGCONT)
    return Done(also=(gone(pid),), victim=pid)


async def _twin(stage: Stage, fault: Fault) -> Done:
    await until(lambda: bool(stage.consumers()), THERE_S, "there is a consumer")
    running = stage.consumers()
    return _twinned(stage, sorted(running)[fault.pick % len(running)])


async def _twin_writer(stage: Stage, fault: Fault) -> Done:
    slot, _ = await a_writer(stage, fault)
    return _twinned(stage, slot)


def _twinned(stage: Stage, slot: Slot) -> Done:
    before = stage.consumers().get(slot, [])
    twin = stage.twin(slot)
    also = tuple(superseded(pid, twin) for pid in before)
    return Done(also=also, victim=before[0] if before else None)


async def _two_leaders(stage: Stage, _: Fault) -> Done:
    pid = await controller_pid(stage.leader)
    claimed = new_leader(stage)[1]
    send(pid, signal.SIGSTOP)
    try:
        await until(claimed, LEADS_S, "the standby claims")
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


async def _spark_away(stage: Stage, fault: Fault) -> Done:
    """Consumers go on reading and staging meanwhile."""
    await stage.spark.kill()
    try:
        await asyncio.sleep(fault.hold_s)
    finally:
        await stage.spark.start()
    return Done(extra_s=CATCH_UP * fault.hold_s)


def _cut(line: Callable[[Stage], Proxy], victim: str) -> Act:
    async def act(stage: Stage, fault: Fault) -> Done:
        pid: int | None = None
        also: tuple[Condition, ...] = ()
        if victim == "consumer":
            pid = await a_consumer(stage, fault)
        elif victim == "writer":
            _, pid = await a_writer(stage, fault)
        elif victim == "leader":
            pid, also = await controller_pid(stage.leader), (new_leader(stage),)
        line(stage).cut(pid)
        try:
            await asyncio.sleep(fault.hold_s)
        finally:
            line(stage).heal(pid, forget=bool(fault.pick & 1))
        return Done(also=also, victim=pid)

    return act


async def _disk_full(stage: Stage, fault: Fault) -> Done:
    try:
        await _fill(stage)
        await asyncio.sleep(fault.hold_s)
    finally:
        await _resize(stage, LAKE_SIZE)
    return Done()


async def _fill(stage: Stage) -> None:
    """Let the file system hold what it holds: cheaper than a file that fills memory."""
    assert stage.lake_mount is not None
    for left in reversed(range(FILLS)):
        used = psutil.disk_usage(str(stage.lake_mount)).used
        try:
            await _resize(stage, str(used + (1 << 16)))
        except EmbeddedError:  # what was written meanwhile does not fit
            if not left:
                raise
        else:
            return


async def _resize(stage: Stage, size: str) -> None:
    command = ("mount", "-o", f"remount,size={size}", str(stage.lake_mount))
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
    if done.returncode:
        raise EmbeddedError(f"{' '.join(command)}: {done.stderr.decode(errors='replace')}")


ACTS: Mapping[Kind, Act] = {
    Kind.KILL_CONSUMER: _signal_consumer(signal.SIGKILL),
    Kind.TERM_CONSUMER: _signal_consumer(signal.SIGTERM),
    Kind.PAUSE_CONSUMER: _pause,
    Kind.HANG_CONSUMER: _pause,
    Kind.ZOMBIE: _zombie,
    Kind.TWIN: _twin,
    Kind.KILL_WRITER: _signal_writer(signal.SIGKILL),
    Kind.TERM_WRITER: _signal_writer(signal.SIGTERM),
    Kind.OUTLIVED_WRITER: _outlived,
    Kind.TWIN_WRITER: _twin_writer,
    Kind.KILL_LEADER: _signal_controller(signal.SIGKILL, leading=True),
    Kind.KILL_STANDBY: _signal_controller(signal.SIGKILL, leading=False),
    Kind.TERM_LEADER: _signal_controller(signal.SIGTERM, leading=True),
    Kind.TWO_LEADERS: _two_leaders,
    Kind.BROKER_RESTART: _restart(lambda stage: stage.broker, gently=True),
    Kind.BROKER_KILL: _restart(lambda stage: stage.broker, gently=False),
    Kind.SPARK_KILL: _restart(lambda stage: stage.spark, gently=False),
    Kind.SPARK_AWAY: _spark_away,
    Kind.CUT_CONSUMER_KAFKA: _cut(lambda stage: stage.kafka_line, "consumer"),
    Kind.CUT_WRITER_SPARK: _cut(lambda stage: stage.spark_line, "writer"),
    Kind.CUT_LEADER: _cut(lambda stage: stage.kafka_line, "leader"),
    Kind.CUT_KAFKA: _cut(lambda stage: stage.kafka_line, "everybody"),
    Kind.CUT_SPARK: _cut(lambda stage: stage.spark_line, "everybody"),
    Kind.STAGED_LOST: staged(lambda file: file.unlink()),
    Kind.STAGED_TORN: staged(halve),
    Kind.STAGED_EMPTY: staged(empty),
    Kind.ANNOUNCED_LOST: announced_lost,
    Kind.LANDING_ANEW: landing_anew,
    Kind.DISK_FULL: _disk_full,
    Kind.CLOCK_JUMP: _clock,
    Kind.AIMED: aimed,
}
