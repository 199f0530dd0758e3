"""The shipped manifests on a real cluster: load, scaling up and down, faults, and an audit.

Broker and Spark are embedded; monitor, controllers and consumers are pods of the manifests in
`deploy/`, with the rights that these give.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.deploy.kubernetes.sandbox import ROOT, pid_of, until

from .kubelet import Kubelet
from .plane import ControlPlane
from .system import LIMIT, LONG_S, LONGEST_S, System, run_system

AT_ONCE_S = 5.0  # half of the consumer timeout

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest_asyncio.fixture(loop_scope="session")
async def system(
    plane: ControlPlane, nodes: tuple[Kubelet, Kubelet], tmp_path: Path
) -> AsyncIterator[System]:
    assert nodes
    async with run_system(plane, tmp_path) as running:
        yield running


@pytest.mark.nightly
async def test_the_manifests_run_a_system_that_survives_faults_and_every_row_lands_once(
    system: System,
) -> None:
    async def services_run() -> bool:
        return await system.ready("monitor") == 1 and await system.ready("controller") == 2

    await until(services_run, LONG_S)
    await until(system.all_read, LONG_S)
    assert len(set(system.owners().values())) == 1

    enough = asyncio.Event()
    async with asyncio.timeout(LONGEST_S), asyncio.TaskGroup() as tasks:
        # 4 x 25 kB/s exceed one consumer's 60 kB/s: a second one is started.
        tasks.create_task(system.load(25_000, enough))
        await until(lambda: len(set(system.owners().values())) >= 2 and system.all_read(), LONG_S)

        async def two_are_ready() -> bool:
            return await system.ready("consumer") >= 2

        await until(two_are_ready, LONG_S)

        async def seen_from_outside() -> bool:
            status = await system.status()
            running = status["state"] in {"moving", "steady"} and status["load"] > LIMIT
            return running and len(status["consumers"]) >= 2

        await until(seen_from_outside, LONG_S)

        # A consumer that gets SIGKILL is declared dead at once, its partitions get a new owner,
        # and its pod restarts it.
        deaths = system.view.deaths
        os.kill(pid_of((await system.pods("consumer"))[0]), signal.SIGKILL)
        await until(lambda: system.view.deaths > deaths, AT_ONCE_S)
        await until(system.all_read, LONG_S)

        # After both controllers are killed, one of them leads again.
        terms = system.view.terms
        for pod in await system.pods("controller"):
            os.kill(pid_of(pod), signal.SIGKILL)
        await until(lambda: system.view.terms > terms, LONG_S)

        # A restart of the API server delays no row.
        await system.plane.kill_api_server()
        await system.plane.start_api_server()
        enough.set()

    # After the load one consumer is enough; the others are retired.
    async def one_left() -> bool:
        return len(await system.pods("consumer")) == 1 and system.all_read()

    await until(system.landed, LONG_S)
    await until(one_left, LONG_S)
    found = await system.audit()
    assert found.clean, found.to_json()
    assert sum(part.rows for part in found.tables[0].partitions) > 0


async def test_the_api_server_accepts_the_shipped_overlays(plane: ControlPlane) -> None:
    """A dry run checks schema, rules, and every field's name."""
    first = ("base/namespace.yaml", "overlays/production/spark/namespace.yaml")
    for file in (*first, "base/consumergroups.yaml"):
        await plane.kubectl("apply", "-f", str(ROOT / "deploy" / file))
    for name in ("local", "production"):
        path = ROOT / "deploy" / "overlays" / name
        await plane.kubectl("apply", "-k", str(path), "--dry-run=server", "--validate=strict")
