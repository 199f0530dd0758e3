"""Faults of what is staged and announced. Spark is cut off meanwhile, so that it has not landed."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.chaos.fault_helpers import (
    VICTIM_TIMEOUT_S,
    FaultAction,
    FaultResult,
    pick_topic,
    send_signal,
    until,
)
from tests.chaos.fault_schedule import Fault
from tests.chaos.health import Condition
from tests.chaos.system import System
from tests.chaos.system_settings import TOPICS

from binwright.kafka.control_records import landing_partition
from binwright.protocol import wire
from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.model import Slot, TopicPartition

GATHER_S = 1.5  # what is on its way to Spark when it is cut off arrives or does not


@asynccontextmanager
async def nothing_lands(system: System) -> AsyncIterator[None]:
    """Cut everybody off from Spark; what is staged from now on waits."""
    for line in system.spark_proxies:
        line.cut(None)
    try:
        await asyncio.sleep(GATHER_S)
        yield
    finally:
        for line in system.spark_proxies:
            line.heal(None, reset=False)


def _read_again(system: System) -> Condition:
    before = system.view.gaps
    return ("what was lost is read again", lambda: system.view.gaps > before)


def spoil_staged_file(spoil: Callable[[Path], object]) -> FaultAction:
    """Return the act that spoils the next file of a table: its rows must be read again."""

    async def act(system: System, fault: Fault) -> FaultResult:
        topic = pick_topic(fault)
        async with nothing_lands(system):
            before = system.staged_files(topic)
            again = _read_again(system)
            await until(
                lambda: bool(system.staged_files(topic) - before),
                VICTIM_TIMEOUT_S,
                f"{topic} is staged",
            )
            spoil(min(system.staged_files(topic) - before))
        return FaultResult(conditions=(again,))

    return act


def halve(file: Path) -> None:
    """Leave the first half of a file."""
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    """Leave nothing of a file but its name: Spark takes that for a table without rows."""
    os.truncate(file, 0)


async def lose_lease(system: System, fault: Fault) -> FaultResult:
    """Delete the lease: its writer lands nothing more, and the table is claimed again."""
    topic = pick_topic(fault)
    await until(lambda: bool(system.leases(topic)), VICTIM_TIMEOUT_S, f"{topic} is claimed")
    for lease in system.leases(topic):
        lease.unlink(missing_ok=True)
    return FaultResult(
        conditions=(("the table is claimed again", lambda: bool(system.leases(topic))),)
    )


async def forge_announcement(system: System, fault: Fault) -> FaultResult:
    """Announce more offsets than a staged file has, and than its log: none of them may count."""
    topic = pick_topic(fault)
    async with nothing_lands(system):
        before = system.staged_files(topic)
        await until(
            lambda: bool(system.staged_files(topic) - before),
            VICTIM_TIMEOUT_S,
            f"{topic} is staged",
        )
        file = min(system.staged_files(topic) - before)
        slot, epoch, *_ = file.name.split("-")
        forged = Staged(
            topic=topic,
            topic_id=None,
            file=file.name,
            rows=1,
            bytes=1,
            ranges={TopicPartition(topic, 0): OffsetRange(0, 1 << 40)},
            slot=Slot(int(slot)),
            epoch=int(epoch),
        )
        where = system.settings.landing_topic, landing_partition(topic)
        await system.bus.publish(*where, wire.key(forged), wire.encode(forged))
    return FaultResult()


async def lose_announcements(system: System, _: Fault) -> FaultResult:
    """Delete what is announced and has not landed; who knew of it is killed."""
    async with nothing_lands(system):
        again = _read_again(system)
        await system.delete_announcements()
        writers = {writer[1] for topic in TOPICS if (writer := system.writer(topic)) is not None}
        for pid in writers:
            send_signal(pid, signal.SIGKILL)
    return FaultResult(conditions=(again,) if writers else (), victim=min(writers, default=None))


async def lose_landing_topic(system: System, _: Fault) -> FaultResult:
    """Delete the landing topic; whoever announces next makes it anew."""
    await system.delete_landing_topic()
    return FaultResult()
