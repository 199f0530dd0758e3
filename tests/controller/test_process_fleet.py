"""The process fleet with real processes."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from binwright.controller.fleets import process
from binwright.controller.fleets.process import ProcessFleet
from binwright.core.errors import WorldError
from binwright.core.model import Slot
from binwright.core.ports import Process

# Ends by SIGTERM with a word, or lives for a minute.
SLEEPER = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), sys.exit(0)))
print('up', flush=True)
time.sleep(60)
"""
STUBBORN = SLEEPER.replace("sys.exit(0)", "None")


def made(logs: Path, code: str = SLEEPER, mark: str | None = None) -> ProcessFleet:
    mark = mark or uuid4().hex  # nobody else's processes look like ours
    return ProcessFleet(
        command=lambda slot: (sys.executable, "-c", code, mark, str(slot)),
        max_slots=4,
        environment=os.environ,
        logs=logs,
        grace_s=1.0,
    )


async def until(condition: Callable[[], bool], patience_s: float = 20.0) -> None:
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - processes tell nobody
            await asyncio.sleep(0.05)


def pids(fleet: ProcessFleet) -> dict[Slot, int]:
    return {slot: process.pid for slot, (process,) in fleet.running().items()}


def said(logs: Path, slot: int) -> list[str]:
    path = logs / f"consumer-{slot}.log"
    return path.read_text().split() if path.exists() else []


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[ProcessFleet]:
    fleet = made(tmp_path)
    keeping = asyncio.create_task(fleet.run())
    yield fleet
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    await fleet.close()
    assert not fleet.running()


async def test_what_is_desired_runs_and_what_is_not_is_asked_to_end(
    fleet: ProcessFleet, tmp_path: Path
) -> None:
    await fleet.reconcile({Slot(0), Slot(2)})
    await until(lambda: said(tmp_path, 0) == said(tmp_path, 2) == ["up"])
    await fleet.reconcile({Slot(2)})
    await until(lambda: fleet.running().keys() == {2})
    assert said(tmp_path, 0) == ["up", "asked"]


async def test_two_looks_at_once_start_one_process(fleet: ProcessFleet) -> None:
    """A process is seen as running only some time after it was started."""
    every = {Slot(n) for n in range(4)}
    await asyncio.gather(*(fleet.reconcile(every) for _ in range(3)))
    assert [len(processes) for processes in fleet.running().values()] == [1] * 4


async def test_a_process_that_is_killed_is_started_again(fleet: ProcessFleet) -> None:
    await fleet.reconcile({Slot(1)})
    await until(lambda: fleet.running().keys() == {1})
    first = pids(fleet)
    await fleet.destroy(Slot(1))
    await until(lambda: fleet.running().keys() == {1} and pids(fleet) != first)


def said_by(pid: int, host: str = "") -> Process:
    """Return a process as its Hello names it."""
    return Process(f"{host or socket.gethostname()}/{pid}/ab12cd34")


async def test_an_end_is_told_at_once(fleet: ProcessFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the next look."""
    monkeypatch.setattr(process, "WATCH_S", 3600.0)
    told = asyncio.Event()
    fleet.watch(told.set)
    await fleet.reconcile({Slot(0), Slot(1)})
    await until(lambda: fleet.running().keys() == {0, 1})
    there = {slot: said_by(pid) for slot, pid in pids(fleet).items()}
    os.kill(pids(fleet)[Slot(1)], signal.SIGKILL)
    async with asyncio.timeout(20):
        await told.wait()
    assert await fleet.ended(there) == [Slot(1)]


async def test_a_second_fleet_knows_which_processes_of_the_first_have_ended(
    tmp_path: Path,
) -> None:
    """Leader and consumer were killed together: nobody saw it end."""
    mark = uuid4().hex
    first, second = made(tmp_path, mark=mark), made(tmp_path, mark=mark)
    await first.reconcile({Slot(0), Slot(1)})
    await until(lambda: first.running().keys() == {0, 1})
    there = {slot: said_by(pid) for slot, pid in pids(first).items()}
    assert await second.ended(there) == []
    await first.destroy(Slot(0))
    await until(lambda: first.running().keys() == {1})
    assert await second.ended(there) == [Slot(0)]
    await second.close()


async def test_of_a_process_elsewhere_or_of_a_strange_name_nothing_is_known(
    fleet: ProcessFleet,
) -> None:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await child.wait()
    assert await fleet.ended({Slot(0): said_by(child.pid)}) == [Slot(0)]
    strange = (said_by(child.pid, "elsewhere"), Process(socket.gethostname()), Process(""))
    for each in (*strange, Process(f"{socket.gethostname()}/one/two")):
        assert await fleet.ended({Slot(0): each}) == []


async def test_a_process_that_nobody_has_waited_for_yet_has_ended(fleet: ProcessFleet) -> None:
    """Its parent, a controller of before, hangs."""
    child = subprocess.Popen((sys.executable, "-c", SLEEPER))  # noqa: ASYNC220 - not to be reaped
    there = {Slot(0): said_by(child.pid)}
    assert await fleet.ended(there) == []
    child.kill()
    await until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    assert await fleet.ended(there) == [Slot(0)]
    child.wait()


async def test_no_end_is_told_once_another_controller_orders(fleet: ProcessFleet) -> None:
    told = asyncio.Event()
    fleet.watch(told.set)
    await fleet.reconcile({Slot(1)})
    fleet.rest()
    await fleet.destroy(Slot(1))
    await until(lambda: not fleet.running())
    await fleet.reconcile({Slot(2)})
    await until(lambda: fleet.running().keys() == {2})
    assert not told.is_set()


async def test_a_second_fleet_finds_the_processes_of_the_first(tmp_path: Path) -> None:
    """A controller that dies leaves its consumers running; its successor retires them."""
    mark = uuid4().hex
    first, second = made(tmp_path, mark=mark), made(tmp_path, mark=mark)
    await first.reconcile({Slot(0), Slot(1)})
    await until(lambda: said(tmp_path, 0) == said(tmp_path, 1) == ["up"])
    before = pids(first)
    await second.reconcile({Slot(0)})
    await until(lambda: second.running().keys() == {0})
    assert pids(second)[Slot(0)] == before[Slot(0)]
    await second.close()


async def test_who_does_not_end_in_time_is_killed(tmp_path: Path) -> None:
    fleet = made(tmp_path, STUBBORN)
    await fleet.reconcile({Slot(0)})
    await until(lambda: said(tmp_path, 0) == ["up"])
    await fleet.close()
    assert said(tmp_path, 0) == ["up", "asked"]
    assert not fleet.running()


async def test_a_process_that_ends_at_once_is_started_again_with_growing_pauses(
    tmp_path: Path,
) -> None:
    fleet = made(tmp_path, "print('up')")
    await fleet.reconcile({Slot(0)})
    keeping = asyncio.create_task(fleet.run())
    await until(lambda: said(tmp_path, 0).count("up") >= 3)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    await fleet.close()


async def test_a_slot_beyond_the_fleet_is_refused(fleet: ProcessFleet) -> None:
    with pytest.raises(WorldError, match=r"\[4\] are beyond the 4"):
        await fleet.reconcile({Slot(0), Slot(4)})
    assert not fleet.running()


async def test_a_command_that_does_not_exist_is_told(tmp_path: Path) -> None:
    fleet = ProcessFleet(lambda slot: ("/no/such", str(slot)), 1, {}, tmp_path)
    with pytest.raises(WorldError, match="slot 0 cannot be started"):
        await fleet.reconcile({Slot(0)})
