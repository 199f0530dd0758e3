"""The shipped manifests on a real cluster: load, scale up and down, faults, and an audit.

Broker and Spark are embedded; monitor, controllers and consumers are pods, started by what
`deploy/` says, with the rights that it gives.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from .kubelet import Kubelet
from .plane import Plane
from .site import ROOT, pid_of, until
from .system import LIMIT, LONG_S, LONGEST_S, System, run_system

AT_ONCE_S = 5.0  # half of the silence after which it would be declared dead in any case

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest_asyncio.fixture(loop_scope="session")
async def system(
    plane: Plane, nodes: tuple[Kubelet, Kubelet], tmp_path: Path
) -> AsyncIterator[System]:
    assert nodes
    async with run_system(plane, tmp_path) as running:
        yield running


async def test_the_manifests_run_it_through_faults_and_every_row_lands_once(
    system: System,
) -> None:
    async def services_run() -> bool:
        return await system.ready("monitor") == 1 and await system.ready("controller") == 2

    await until(services_run, LONG_S)
    await until(system.all_read, LONG_S)
    assert len(set(system.held().values())) == 1

    enough = asyncio.Event()
    async with asyncio.timeout(LONGEST_S), asyncio.TaskGroup() as tasks:
        # 4 x 25 kB/s are more than one consumer's 60 kB/s: a second one is made.
        tasks.create_task(system.load(25_000, enough))
        await until(lambda: len(set(system.held().values())) >= 2 and system.all_read(), LONG_S)

        async def two_are_ready() -> bool:
            return await system.ready("consumer") >= 2

        await until(two_are_ready, LONG_S)

        async def seen_from_outside() -> bool:
            told = await system.status()
            well = told["state"] in {"moving", "steady"} and told["load"] > LIMIT
            return well and len(told["consumers"]) >= 2

        await until(seen_from_outside, LONG_S)

        # kill -9 of a consumer: declared dead at once, its partitions find an owner, its pod comes
        # back.
        deaths = system.picture.deaths
        os.kill(pid_of((await system.pods("consumer"))[0]), signal.SIGKILL)
        await until(lambda: system.picture.deaths > deaths, AT_ONCE_S)
        await until(system.all_read, LONG_S)

        # The leader goes, and the other leads.
        terms = system.picture.terms
        for pod in await system.pods("controller"):
            os.kill(pid_of(pod), signal.SIGKILL)
        await until(lambda: system.picture.terms > terms, LONG_S)

        # The API server goes and comes: no row waits for it.
        await system.plane.kill_api_server()
        await system.plane.start_api_server()
        enough.set()

    # The load is over: one consumer is enough, the others are retired.
    async def one_left() -> bool:
        return len(await system.pods("consumer")) == 1 and system.all_read()

    await until(system.landed, LONG_S)
    await until(one_left, LONG_S)
    found = await system.audit()
    assert found.clean, found.to_json()
    assert sum(part.rows for part in found.tables[0].partitions) > 0


async def test_the_shipped_overlays_are_what_the_api_server_takes(plane: Plane) -> None:
    """Applied without effect: schema, rules, and every field's name are checked."""
    await plane.kubectl("apply", "-f", str(ROOT / "deploy" / "base" / "namespace.yaml"))
    await plane.kubectl("apply", "-f", str(ROOT / "deploy" / "base" / "consumergroups.yaml"))
    for name in ("local", "production"):
        path = ROOT / "deploy" / "overlays" / name
        await plane.kubectl("apply", "-k", str(path), "--dry-run=server", "--validate=strict")
