"""The Helm chart on a real cluster: installed, under load, upgraded, rolled back, deleted."""

import asyncio
import json
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.deploy.kubernetes.kubelet import Kubelet
from tests.deploy.kubernetes.plane import ControlPlane
from tests.deploy.kubernetes.sandbox import until
from tests.deploy.kubernetes.system import LONG_S, LONGEST_S, NAMESPACE, System, run_system
from tests.helm import CHART, helm, run_helm
from tests.programs import ProgramMissing

from binwright.kubernetes.objects import Obj

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="session"),
]

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/consumergroups.binwright.dev"


class Release:
    """A release of the chart, by the real Helm."""

    def __init__(self, plane: ControlPlane, home: Path) -> None:
        self.plane, self.home = plane, home

    async def run(self, *arguments: str) -> None:
        """Run a command of Helm's on the release."""
        where = ("--namespace", NAMESPACE, "--kubeconfig", str(self.plane.kubeconfig()))
        done = await asyncio.to_thread(run_helm, *arguments, *where, home=self.home / "helm")
        assert done.returncode == 0, done.stderr

    async def upgrade(self, **settings: object) -> None:
        """Install it, or upgrade it; `settings` are added to those of its values."""
        values = json.loads((self.home / "values.json").read_text())
        for section, added in settings.items():
            values["settings"][section] |= added
        file = self.home / "these.json"
        file.write_text(json.dumps(values))
        # Other tests apply the definitions by kubectl.
        options = ("--install", "--take-ownership", "--values", str(file))
        await self.run("upgrade", "binwright", str(CHART), *options)


async def install(
    plane: ControlPlane, home: Path, settings: str, lake: Path | None, token: str
) -> None:
    """Install the chart as the page says, where the namespace is restricted."""
    del lake, token  # pods are processes of this machine
    await plane.kubectl("create", "namespace", NAMESPACE)
    enforced = "pod-security.kubernetes.io/enforce=restricted"
    await plane.kubectl("label", "namespace", NAMESPACE, enforced)
    values = {"settings": tomllib.loads(settings), "spark": {"enabled": False}}
    (home / "values.json").write_text(json.dumps(values))
    await Release(plane, home).upgrade()


@pytest_asyncio.fixture(loop_scope="session")
async def system(
    plane: ControlPlane, nodes: tuple[Kubelet, Kubelet], tmp_path: Path
) -> AsyncIterator[System]:
    assert nodes
    try:
        helm()
    except ProgramMissing as exc:
        pytest.skip(str(exc))
    async with run_system(plane, tmp_path, install=install) as running:
        yield running


def uids(pods: list[Obj]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


async def test_a_release_is_upgraded_and_rolled_back_under_load_and_every_row_lands_once(
    system: System, plane: ControlPlane, tmp_path: Path
) -> None:
    release = Release(plane, tmp_path)

    async def services_run() -> bool:
        return await system.ready("monitor") == 1 and await system.ready("controller") == 2

    async def renewed(before: set[str]) -> bool:
        """Whether all pods are others than before, and ready, and all partitions are read."""
        pods = [each for name in ("controller", "consumer") for each in await system.pods(name)]
        fresh = not uids(pods) & before and await system.ready("consumer") >= 1
        return fresh and await services_run() and system.all_read()

    async def all_pods() -> set[str]:
        return uids([*await system.pods("controller"), *await system.pods("consumer")])

    await until(services_run, LONG_S)
    await until(system.all_read, LONG_S)
    enough = asyncio.Event()
    async with asyncio.timeout(LONGEST_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(system.load(10_000, enough))

        before = await all_pods()
        await release.upgrade(controller={"max_slots": 5})
        await until(lambda: renewed(before), LONG_S)

        before = await all_pods()
        await release.run("rollback", "binwright", "1")
        await until(lambda: renewed(before), LONG_S)
        enough.set()

    await until(system.landed, LONG_S)
    found = await system.audit()
    assert found.clean, found.to_json()
    assert sum(part.rows for part in found.tables[0].partitions) > 0

    await release.run("uninstall", "binwright", "--wait")

    async def nothing_runs() -> bool:
        return not any([await system.pods(name) for name in ("monitor", "controller", "consumer")])

    await until(nothing_runs, LONG_S)
    kept = await system.api.get(DEFINITION)
    assert kept["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
