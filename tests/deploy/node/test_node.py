"""The shipped manifests and images on a real kubelet: scaling, a restart, and an audit."""

import asyncio
from pathlib import Path

import pytest
from tests.deploy.kubernetes.plane import ControlPlane
from tests.deploy.kubernetes.sandbox import until
from tests.deploy.kubernetes.system import LONGEST_S, NAMESPACE, System, run_system

from .node import ADDRESS

pytestmark = [
    pytest.mark.node,
    pytest.mark.usefixtures("node"),
    pytest.mark.asyncio(loop_scope="session"),
]

PATIENCE_S = 300.0


async def test_the_images_run_by_the_manifests_and_every_row_lands_once(
    plane: ControlPlane, tmp_path: Path
) -> None:

    async with run_system(plane, tmp_path, address=ADDRESS) as system:

        async def services_run() -> bool:
            return await system.ready("monitor") == 1 and await system.ready("controller") == 2

        await until(services_run, PATIENCE_S)
        await until(system.all_read, PATIENCE_S)
        enough = asyncio.Event()
        async with asyncio.timeout(LONGEST_S), asyncio.TaskGroup() as tasks:
            tasks.create_task(system.load(25_000, enough))
            await until(
                lambda: len(set(system.owners().values())) >= 2 and system.all_read(), PATIENCE_S
            )
            await _check_user(system)
            # A container that is killed is restarted, and its partitions are read again.
            victim = (await system.pods("consumer"))[0]["metadata"]["name"]
            command = ("exec", "-n", NAMESPACE, victim, "--", "python", "-c")
            await system.plane.kubectl(*command, "import os; os.kill(1, 15)")
            restarts = "jsonpath={.status.containerStatuses[0].restartCount}"

            async def restarted() -> bool:
                get = ("get", "pod", "-n", NAMESPACE, victim)
                count = await system.plane.kubectl(*get, "-o", restarts)
                return int(count or 0) >= 1

            await until(restarted, PATIENCE_S)
            await until(system.all_read, PATIENCE_S)
            enough.set()
        await until(system.landed, PATIENCE_S)
        found = await system.audit()
        assert found.clean, found.to_json()
        assert sum(part.rows for part in found.tables[0].partitions) > 0


async def _check_user(system: System) -> None:
    """Check inside a container: an unprivileged user on a read-only root file system."""
    pod = (await system.pods("consumer"))[0]["metadata"]["name"]
    look = "import os; print(os.getuid(), os.access('/opt', os.W_OK), os.access('/tmp', os.W_OK))"
    found = await system.plane.kubectl("exec", "-n", NAMESPACE, pod, "--", "python", "-c", look)
    assert found.split() == ["10001", "False", "True"]
