"""The docker fleet on a real engine, with consumers that only wait."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from tests.deploy.images.engine import build, docker

from binwright.controller.fleets.docker.engine import open_engine
from binwright.controller.fleets.docker.fleet import DockerFleet, Timing
from binwright.controller.fleets.docker.spec import PROJECT_LABEL, ContainerSpec
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Process
from binwright.runtime.clock import wall_ms
from binwright.runtime.run import background_tasks

from .engine import STANDINS, output_words

pytestmark = pytest.mark.compose

SOCKET = Path("/var/run/docker.sock")
IMAGE = "binwright-test-sleeper:1"
TIMING = Timing(watch_s=0.2, steady_s=1.0, pull_rest_s=1.0)
PATIENCE_S = 120.0


@pytest.fixture(scope="module", autouse=True)
def _image(tmp_path_factory: pytest.TempPathFactory) -> None:
    context = tmp_path_factory.mktemp("sleeper")
    (context / "Dockerfile").write_text((STANDINS / "sleeper.Dockerfile").read_text())
    build(IMAGE, str(context))


@pytest.fixture
def spec() -> Iterator[ContainerSpec]:
    project = f"test-{uuid4().hex[:8]}"
    yield ContainerSpec(
        project=project, group="g", image=IMAGE, memory_bytes=100_000_000, grace_s=20.0
    )
    if left := containers(project):
        docker("rm", "--force", "--volumes", *left)


def containers(project: str, *more: str) -> set[str]:
    """Return the names of a project's containers."""
    filters = ("--filter", f"label={PROJECT_LABEL}={project}", *more)
    return output_words(docker("ps", "--all", "--format", "{{.Names}}", *filters))


def running(spec: ContainerSpec) -> set[str]:
    return containers(spec.project, "--filter", "status=running")


def names(spec: ContainerSpec, *slots: int) -> set[str]:
    return {spec.name(Slot(slot)) for slot in slots}


def identity(name: str) -> str:
    return docker("inspect", "--format", "{{.Id}}", name).stdout.strip()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - the engine signals no event
            await asyncio.sleep(0.2)


@asynccontextmanager
async def run_fleet(spec: ContainerSpec) -> AsyncIterator[DockerFleet]:
    async with open_engine(SOCKET, 60.0) as engine:
        fleet = DockerFleet(engine, spec, 8, TIMING)
        async with background_tasks(fleet.run()):
            yield fleet


async def test_containers_outlive_the_controller_and_the_next_one_finds_them(
    spec: ContainerSpec,
) -> None:
    async with run_fleet(spec) as first:
        await first.reconcile({Slot(n) for n in (0, 1, 2)})
        await until(lambda: running(spec) == names(spec, 0, 1, 2))
    kept = identity(spec.name(Slot(1)))
    async with run_fleet(spec) as second:
        await second.reconcile({Slot(1)})
        await until(lambda: containers(spec.project) == names(spec, 1))
        assert identity(spec.name(Slot(1))) == kept
        await second.close()
    assert containers(spec.project) == set()


async def test_containers_removed_paused_or_stopped_by_hand_are_repaired(
    spec: ContainerSpec,
) -> None:
    one, two, three = (spec.name(Slot(n)) for n in range(3))
    async with run_fleet(spec) as running_fleet:
        await running_fleet.reconcile({Slot(n) for n in range(3)})
        await until(lambda: running(spec) == names(spec, 0, 1, 2))
        before = identity(three)
        for command in (("rm", "-f", one), ("pause", two), ("stop", "--time", "1", three)):
            assert docker(*command).returncode == 0
        await until(lambda: running(spec) == names(spec, 0, 1, 2))
        assert identity(three) == before
        await running_fleet.destroy(Slot(2))
        await until(lambda: running(spec) == names(spec, 0, 1, 2) and identity(three) != before)
        await running_fleet.close()


async def test_the_end_of_a_process_is_signalled_at_once(spec: ContainerSpec) -> None:
    """The engine restarts a killed container; the fleet creates a removed one again."""
    signalled = asyncio.Event()
    async with run_fleet(spec) as running_fleet:
        running_fleet.watch(signalled.set)
        await running_fleet.reconcile({Slot(0), Slot(1)})
        await until(lambda: running(spec) == names(spec, 0, 1))

        def hello_now(slot: int) -> Process:
            host = identity(spec.name(Slot(slot)))[:12]
            return Process(f"{host}/1/ab12cd34", wall_ms())

        async def ended_by(act: Callable[[], object], slot: int) -> Process:
            """End the slot's process; check that only it is found ended, within a second."""
            processes = {Slot(n): hello_now(n) for n in range(2)}
            assert await running_fleet.find_ended(processes) == []
            signalled.clear()
            await asyncio.to_thread(act)
            async with asyncio.timeout(1):
                await signalled.wait()
            assert await running_fleet.find_ended(processes) == [slot]
            return processes[Slot(slot)]

        pid = int(docker("inspect", "--format", "{{.State.Pid}}", spec.name(Slot(0))).stdout)
        first = await ended_by(lambda: os.kill(pid, signal.SIGKILL), 0)
        await until(lambda: running(spec) == names(spec, 0, 1))
        second = hello_now(0)
        assert second.host == first.host, "the same container"
        assert await running_fleet.find_ended({Slot(0): second}) == []
        await ended_by(lambda: docker("rm", "--force", spec.name(Slot(1))), 1)
        await running_fleet.close()


async def test_changed_settings_and_edits_replace_containers(spec: ContainerSpec) -> None:
    name = spec.name(Slot(0))
    async with run_fleet(spec) as first:
        await first.reconcile({Slot(0)})
        await until(lambda: running(spec) == {name})
        before = identity(name)
        assert docker("network", "disconnect", "bridge", name).returncode == 0
        await until(lambda: running(spec) == {name} and identity(name) != before)
    before = identity(name)
    async with run_fleet(replace(spec, environment={"A": "2"})) as second:
        await second.reconcile({Slot(0)})
        await until(lambda: running(spec) == {name} and identity(name) != before)
        await second.close()


async def test_a_container_that_crashes_is_reported_and_the_others_run(spec: ContainerSpec) -> None:
    async with run_fleet(spec) as running_fleet:
        await running_fleet.reconcile({Slot(0), Slot(3)})
        await until(lambda: running_fleet.troubles != {})
        assert re.search(r"ended with 1,|Restarting \(1\)", running_fleet.troubles[Slot(3)])
        assert spec.name(Slot(0)) in running(spec)
        await running_fleet.reconcile({Slot(0)})
        await until(lambda: containers(spec.project) == names(spec, 0))
        assert running_fleet.troubles == {}
        await running_fleet.close()


async def test_an_image_that_does_not_exist_is_reported(spec: ContainerSpec) -> None:
    missing = replace(spec, image="localhost:1/does-not-exist:1")
    async with run_fleet(missing) as running_fleet:
        await running_fleet.reconcile({Slot(0)})
        await until(lambda: running_fleet.refusals != [])
        assert containers(spec.project) == set()
