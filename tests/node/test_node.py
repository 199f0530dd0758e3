"""The shipped manifests and images on a real kubelet: containers that scale, land, and add up."""

import asyncio
from pathlib import Path

import pytest
from tests.kubernetes.plane import Plane
from tests.kubernetes.site import until
from tests.kubernetes.system import LONGEST_S, NAMESPACE, System, run_system

from .node import ADDRESS

pytestmark = [
    pytest.mark.node,
    pytest.mark.usefixtures("node"),
    pytest.mark.asyncio(loop_scope="session"),
]

PATIENCE_S = 300.0


async def test_the_images_run_as_the_manifests_say_and_every_row_lands_once(
    plane: Plane, tmp_path: Path
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
                lambda: len(set(system.held().values())) >= 2 and system.all_read(), PATIENCE_S
            )
            await _who_runs(system)
            # A container that is killed comes back, and its partitions are read again.
            victim = (await system.pods("consumer"))[0]["metadata"]["name"]
            command = ("exec", "-n", NAMESPACE, victim, "--", "python", "-c")
            await system.plane.kubectl(*command, "import os; os.kill(1, 15)")
            deaths = "jsonpath={.status.containerStatuses[0].restartCount}"

            async def restarted() -> bool:
                where = ("get", "pod", "-n", NAMESPACE, victim)
                told = await system.plane.kubectl(*where, "-o", deaths)
                return int(told or 0) >= 1

            await until(restarted, PATIENCE_S)
            await until(system.all_read, PATIENCE_S)
            enough.set()
        await until(system.landed, PATIENCE_S)
        found = await system.audit()
        assert found.clean, found.to_json()
        assert sum(part.rows for part in found.tables[0].partitions) > 0


async def _who_runs(system: System) -> None:
    """Look from within: nobody in particular, on a root that cannot be written."""
    pod = (await system.pods("consumer"))[0]["metadata"]["name"]
    look = "import os; print(os.getuid(), os.access('/opt', os.W_OK), os.access('/tmp', os.W_OK))"
    told = await system.plane.kubectl("exec", "-n", NAMESPACE, pod, "--", "python", "-c", look)
    assert told.split() == ["10001", "False", "True"]
