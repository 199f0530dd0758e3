"""The process fleet, with real processes."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from tests.waiting import until

from binwright.controller.__main__ import configured_fleet
from binwright.controller.settings import ControllerProgramSettings
from binwright.fleets import process
from binwright.fleets.process import ProcessFleet, process_fleet
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Process
from binwright.runtime.health import Health
from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.loading import load

# Prints a line and ends on SIGTERM, or after a minute.
SLEEPER = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), sys.exit(0)))
print('up', flush=True)
time.sleep(60)
"""
STUBBORN = SLEEPER.replace("sys.exit(0)", "None")


def new_fleet(logs: Path, code: str = SLEEPER, mark: str | None = None) -> ProcessFleet:
    mark = mark or uuid4().hex  # makes the command lines unique on the machine
    return ProcessFleet(
        command=lambda slot: (sys.executable, "-c", code, mark, str(slot)),
        max_slots=4,
        environment=lambda _: os.environ,
        logs=logs,
        grace_s=1.0,
    )


def pids(fleet: ProcessFleet) -> dict[Slot, int]:
    return {slot: process.pid for slot, (process,) in fleet.running().items()}


def output(logs: Path, slot: int) -> list[str]:
    path = logs / f"consumer-{slot}.log"
    return path.read_text().split() if path.exists() else []


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[ProcessFleet]:
    fleet = new_fleet(tmp_path)
    running = asyncio.create_task(fleet.run())
    yield fleet
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await fleet.close()
    assert not fleet.running()


async def test_desired_slots_run_and_others_get_sigterm(
    fleet: ProcessFleet, tmp_path: Path
) -> None:
    await fleet.reconcile({Slot(0), Slot(2)})
    await until(lambda: output(tmp_path, 0) == output(tmp_path, 2) == ["up"])
    await fleet.reconcile({Slot(2)})
    await until(lambda: fleet.running().keys() == {2})
    assert output(tmp_path, 0) == ["up", "asked"]


async def test_a_missing_directory_of_logs_is_made(tmp_path: Path) -> None:
    logs = tmp_path / "run" / "logs"
    fleet = new_fleet(logs)
    try:
        await fleet.reconcile({Slot(0)})
        await until(lambda: output(logs, 0) == ["up"])
    finally:
        await fleet.close()


async def test_processes_of_another_fleet_of_the_group_are_left_alone(
    fleet: ProcessFleet, tmp_path: Path
) -> None:
    """They have the same command lines: their logs tell whose they are."""
    other = replace(fleet, owned=lambda process: process.environ().get("LOGS") == "other")
    await fleet.reconcile({Slot(0)})
    await until(lambda: output(tmp_path, 0) == ["up"])
    assert not other.running()
    await other.close()
    assert fleet.running().keys() == {0}


async def test_a_retired_slot_that_is_desired_again_is_started_without_a_pause(
    fleet: ProcessFleet,
) -> None:
    """However short its process lived: a load that rises and falls would wait longer each time."""
    await fleet.reconcile({Slot(0)})
    await until(lambda: fleet.running().keys() == {0})
    await fleet.reconcile(set())
    await until(lambda: not fleet.running())
    await fleet.reconcile({Slot(0)})
    assert fleet.running().keys() == {0}


async def test_concurrent_rounds_start_one_process_for_a_slot(fleet: ProcessFleet) -> None:
    """A process is seen as running only some time after its start."""
    every = {Slot(n) for n in range(4)}
    await asyncio.gather(*(fleet.reconcile(every) for _ in range(3)))
    assert [len(processes) for processes in fleet.running().values()] == [1] * 4


async def test_a_process_that_is_killed_is_restarted(fleet: ProcessFleet) -> None:
    await fleet.reconcile({Slot(1)})
    await until(lambda: fleet.running().keys() == {1})
    first = pids(fleet)
    await fleet.destroy(Slot(1))
    await until(lambda: fleet.running().keys() == {1} and pids(fleet) != first)


def as_in_hello(pid: int, host: str = "") -> Process:
    """Return a process as its Hello names it."""
    return Process(f"{host or socket.gethostname()}/{pid}/ab12cd34")


async def test_the_end_of_a_process_is_signalled_at_once(
    fleet: ProcessFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only in the next round."""
    for watch in ("WATCH_S", "WATCH_SETTLED_S"):
        monkeypatch.setattr(process, watch, 3600.0)
    signalled = asyncio.Event()
    fleet.watch(signalled.set)
    await fleet.reconcile({Slot(0), Slot(1)})
    await until(lambda: fleet.running().keys() == {0, 1})
    processes = {slot: as_in_hello(pid) for slot, pid in pids(fleet).items()}
    os.kill(pids(fleet)[Slot(1)], signal.SIGKILL)
    async with asyncio.timeout(20):
        await signalled.wait()
    assert await fleet.find_ended(processes) == [Slot(1)]


async def test_a_second_fleet_finds_ended_processes_of_the_first(tmp_path: Path) -> None:
    """When leader and consumer are killed together, no controller sees the consumer end."""
    mark = uuid4().hex
    first, second = new_fleet(tmp_path, mark=mark), new_fleet(tmp_path, mark=mark)
    await first.reconcile({Slot(0), Slot(1)})
    await until(lambda: first.running().keys() == {0, 1})
    processes = {slot: as_in_hello(pid) for slot, pid in pids(first).items()}
    assert await second.find_ended(processes) == []
    await first.destroy(Slot(0))
    # A process that is killed has no command line some moments before it has ended.
    async with asyncio.timeout(20):
        while await second.find_ended(processes) != [Slot(0)]:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)
    assert first.running().keys() == {1}
    await second.close()


async def test_a_process_of_another_host_or_with_an_invalid_name_is_not_found_ended(
    fleet: ProcessFleet,
) -> None:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await child.wait()
    assert await fleet.find_ended({Slot(0): as_in_hello(child.pid)}) == [Slot(0)]
    invalid = (as_in_hello(child.pid, "elsewhere"), Process(socket.gethostname()), Process(""))
    for each in (*invalid, Process(f"{socket.gethostname()}/one/two")):
        assert await fleet.find_ended({Slot(0): each}) == []


async def test_a_zombie_process_has_ended(fleet: ProcessFleet) -> None:
    """Its parent, an earlier controller, hangs and does not reap it."""
    child = subprocess.Popen((sys.executable, "-c", SLEEPER))  # noqa: ASYNC220 - not to be reaped
    processes = {Slot(0): as_in_hello(child.pid)}
    assert await fleet.find_ended(processes) == []
    child.kill()
    await until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    assert await fleet.find_ended(processes) == [Slot(0)]
    child.wait()


async def test_after_detach_no_end_is_signalled(fleet: ProcessFleet) -> None:
    signalled = asyncio.Event()
    fleet.watch(signalled.set)
    await fleet.reconcile({Slot(1)})
    fleet.detach()
    await fleet.destroy(Slot(1))
    await until(lambda: not fleet.running())
    await fleet.reconcile({Slot(2)})
    await until(lambda: fleet.running().keys() == {2})
    assert not signalled.is_set()


async def test_a_second_fleet_finds_the_processes_of_the_first(tmp_path: Path) -> None:
    """A controller that crashes leaves its consumers running; the next leader retires them."""
    mark = uuid4().hex
    first, second = new_fleet(tmp_path, mark=mark), new_fleet(tmp_path, mark=mark)
    await first.reconcile({Slot(0), Slot(1)})
    await until(lambda: output(tmp_path, 0) == output(tmp_path, 1) == ["up"])
    before = pids(first)
    await second.reconcile({Slot(0)})
    await until(lambda: second.running().keys() == {0})
    assert pids(second)[Slot(0)] == before[Slot(0)]
    await second.close()


def consumer_module(path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have processes run this code as `binwright.consumer`: no Kafka is needed."""
    package = path / "binwright" / "consumer"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(path))


async def test_each_consumer_has_a_health_port_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They inherit the controller's environment, and with it the controller's port."""
    show = "import os; print(os.environ['BINWRIGHT_HEALTH__PORT'], flush=True)\n"
    consumer_module(tmp_path, show + SLEEPER, monkeypatch)
    monkeypatch.setenv("BINWRIGHT_HEALTH__PORT", "8080")
    fleet = process_fleet(
        load_settings(group=f"g-{uuid4().hex}", controller={"process_logs": tmp_path})
    )
    try:
        await fleet.reconcile({Slot(0), Slot(1)})
        await until(lambda: output(tmp_path, 0) == ["8081", "up"])
        await until(lambda: output(tmp_path, 1) == ["8082", "up"])
    finally:
        await fleet.close()


@pytest.mark.parametrize("end", [True, False])
async def test_consumers_end_with_the_controller_where_the_settings_want_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: bool
) -> None:
    """In a container the rest is killed at once when the controller has ended."""
    consumer_module(tmp_path, SLEEPER, monkeypatch)
    options = {"process_logs": tmp_path, "processes_end_with_controller": end}
    settings = load(ControllerProgramSettings, group=f"g-{uuid4().hex}", controller=options)
    async with configured_fleet(settings, Health(60.0)) as fleet:
        await fleet.reconcile({Slot(0)})
        await until(lambda: output(tmp_path, 0) == ["up"])
    left = process_fleet(settings)
    try:
        assert left.running().keys() == (set() if end else {Slot(0)})
        assert output(tmp_path, 0) == (["up", "asked"] if end else ["up"])
    finally:
        await left.close()


async def test_a_process_that_does_not_end_in_time_is_killed(tmp_path: Path) -> None:
    fleet = new_fleet(tmp_path, STUBBORN)
    await fleet.reconcile({Slot(0)})
    await until(lambda: output(tmp_path, 0) == ["up"])
    await fleet.close()
    assert output(tmp_path, 0) == ["up", "asked"]
    assert not fleet.running()


async def test_a_process_that_ends_at_once_is_restarted_again_and_again(tmp_path: Path) -> None:
    fleet = new_fleet(tmp_path, "print('up')")
    await fleet.reconcile({Slot(0)})
    running = asyncio.create_task(fleet.run())
    await until(lambda: output(tmp_path, 0).count("up") >= 3)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await fleet.close()


async def test_a_slot_beyond_the_fleet_is_refused(fleet: ProcessFleet) -> None:
    with pytest.raises(ExternalError, match=r"\[4\] are beyond the 4"):
        await fleet.reconcile({Slot(0), Slot(4)})
    assert not fleet.running()


async def test_a_command_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    fleet = ProcessFleet(lambda slot: ("/no/such", str(slot)), 1, lambda _: {}, tmp_path)
    with pytest.raises(ExternalError, match="slot 0 cannot be started"):
        await fleet.reconcile({Slot(0)})
