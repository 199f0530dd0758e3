"""The docker fleet on a real engine, with consumers that only wait."""

import asyncio
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from tests.images.engine import build, docker

from binwright.controller.docker.engine import opened
from binwright.controller.docker.shape import REALM_LABEL, Shape
from binwright.controller.fleets.docker import DockerFleet, Pace
from binwright.core.model import Slot
from binwright.core.ports import Process
from binwright.shell.run import meanwhile

from .engine import STANDINS, lines

pytestmark = pytest.mark.compose

SOCKET = Path("/var/run/docker.sock")
IMAGE = "binwright-test-sleeper:1"
PACE = Pace(watch_s=0.2, steady_s=1.0, pull_rest_s=1.0)
PATIENCE_S = 120.0


@pytest.fixture(scope="module", autouse=True)
def _image(tmp_path_factory: pytest.TempPathFactory) -> None:
    context = tmp_path_factory.mktemp("sleeper")
    (context / "Dockerfile").write_text((STANDINS / "sleeper.Dockerfile").read_text())
    build(IMAGE, str(context))


@pytest.fixture
def shape() -> Iterator[Shape]:
    realm = f"test-{uuid4().hex[:8]}"
    yield Shape(realm=realm, group="g", image=IMAGE, memory_bytes=100_000_000, grace_s=20.0)
    if left := there(realm):
        docker("rm", "--force", "--volumes", *left)


def there(realm: str, *more: str) -> set[str]:
    """Return the names of a realm's containers."""
    chosen = ("--filter", f"label={REALM_LABEL}={realm}", *more)
    return lines(docker("ps", "--all", "--format", "{{.Names}}", *chosen))


def running(shape: Shape) -> set[str]:
    return there(shape.realm, "--filter", "status=running")


def names(shape: Shape, *slots: int) -> set[str]:
    return {shape.name(Slot(slot)) for slot in slots}


def identity(name: str) -> str:
    return docker("inspect", "--format", "{{.Id}}", name).stdout.strip()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - an engine tells nobody
            await asyncio.sleep(0.2)


@asynccontextmanager
async def fleet(shape: Shape) -> AsyncIterator[DockerFleet]:
    async with opened(SOCKET, 60.0) as engine:
        made = DockerFleet(engine, shape, 8, PACE)
        async with meanwhile(made.run()):
            yield made


async def test_slots_grow_shrink_outlive_the_controller_and_are_found_again(shape: Shape) -> None:
    async with fleet(shape) as first:
        await first.reconcile({Slot(n) for n in (0, 1, 2)})
        await until(lambda: running(shape) == names(shape, 0, 1, 2))
    kept = identity(shape.name(Slot(1)))
    async with fleet(shape) as second:
        await second.reconcile({Slot(1)})
        await until(lambda: there(shape.realm) == names(shape, 1))
        assert identity(shape.name(Slot(1))) == kept
        await second.close()
    assert there(shape.realm) == set()


async def test_what_people_do_to_containers_is_put_right(shape: Shape) -> None:
    one, two, three = (shape.name(Slot(n)) for n in range(3))
    async with fleet(shape) as kept:
        await kept.reconcile({Slot(n) for n in range(3)})
        await until(lambda: running(shape) == names(shape, 0, 1, 2))
        before = identity(three)
        for hand in (("rm", "-f", one), ("pause", two), ("stop", "--time", "1", three)):
            assert docker(*hand).returncode == 0
        await until(lambda: running(shape) == names(shape, 0, 1, 2))
        assert identity(three) == before
        await kept.destroy(Slot(2))
        await until(lambda: running(shape) == names(shape, 0, 1, 2) and identity(three) != before)
        await kept.close()


async def test_an_end_is_told_at_once_of_the_process_that_ended(shape: Shape) -> None:
    """Killed, the engine starts the same container again; removed, the fleet makes another."""
    told = asyncio.Event()
    async with fleet(shape) as kept:
        kept.watch(told.set)
        await kept.reconcile({Slot(0), Slot(1)})
        await until(lambda: running(shape) == names(shape, 0, 1))

        def said_now(slot: int) -> Process:
            host = identity(shape.name(Slot(slot)))[:12]
            return Process(f"{host}/1/ab12cd34", time.time_ns() // 1_000_000)

        async def ended_by(act: Callable[[], object], slot: int) -> Process:
            """Have the slot's process end; see that it, and it alone, is told within a second."""
            there = {Slot(n): said_now(n) for n in range(2)}
            assert await kept.ended(there) == []
            told.clear()
            await asyncio.to_thread(act)
            async with asyncio.timeout(1):
                await told.wait()
            assert await kept.ended(there) == [slot]
            return there[Slot(slot)]

        pid = int(docker("inspect", "--format", "{{.State.Pid}}", shape.name(Slot(0))).stdout)
        first = await ended_by(lambda: os.kill(pid, signal.SIGKILL), 0)
        await until(lambda: running(shape) == names(shape, 0, 1))
        second = said_now(0)
        assert second.host == first.host, "the same container"
        assert await kept.ended({Slot(0): second}) == []
        await ended_by(lambda: docker("rm", "--force", shape.name(Slot(1))), 1)
        await kept.close()


async def test_changed_settings_and_edits_make_containers_anew(shape: Shape) -> None:
    name = shape.name(Slot(0))
    async with fleet(shape) as first:
        await first.reconcile({Slot(0)})
        await until(lambda: running(shape) == {name})
        before = identity(name)
        assert docker("network", "disconnect", "bridge", name).returncode == 0
        await until(lambda: running(shape) == {name} and identity(name) != before)
    before = identity(name)
    async with fleet(replace(shape, environment={"A": "2"})) as second:
        await second.reconcile({Slot(0)})
        await until(lambda: running(shape) == {name} and identity(name) != before)
        await second.close()


async def test_what_crashes_is_told_and_the_others_run(shape: Shape) -> None:
    async with fleet(shape) as kept:
        await kept.reconcile({Slot(0), Slot(3)})
        await until(lambda: kept.troubles != {})
        assert re.search(r"ended with 1,|Restarting \(1\)", kept.troubles[Slot(3)])
        assert shape.name(Slot(0)) in running(shape)
        await kept.reconcile({Slot(0)})
        await until(lambda: there(shape.realm) == names(shape, 0))
        assert kept.troubles == {}
        await kept.close()


async def test_an_image_that_nobody_has_is_told(shape: Shape) -> None:
    strange = replace(shape, image="localhost:1/nobody-has-this:1")
    async with fleet(strange) as kept:
        await kept.reconcile({Slot(0)})
        await until(lambda: kept.refusals != [])
        assert there(shape.realm) == set()
