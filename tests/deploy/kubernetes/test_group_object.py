"""A ConsumerGroup object in a whole system: approved plans, consumers, a crash, and an audit."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from tests.deploy.kubernetes.sandbox import pid_of, until

from binwright.controller.fleets.kubernetes.deployment import slot_of
from binwright.kubernetes.objects import Obj

from .kubelet import Kubelet
from .plane import ControlPlane
from .system import LIMIT, LONG_S, LONGEST_S, NAMESPACE, PARTITIONS, System, run_system

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="session"),
]

PATH = f"/apis/binwright.dev/v1alpha1/namespaces/{NAMESPACE}/consumergroups/orders"
GROUP = {
    "apiVersion": "binwright.dev/v1alpha1",
    "kind": "ConsumerGroup",
    "metadata": {"name": "orders", "namespace": NAMESPACE},
    "spec": {"topics": ["orders"], "mode": "approve", "limitBytesPerSecond": LIMIT},
}


@pytest_asyncio.fixture(loop_scope="session")
async def system(
    plane: ControlPlane, nodes: tuple[Kubelet, Kubelet], tmp_path: Path
) -> AsyncIterator[System]:
    assert nodes
    async with run_system(plane, tmp_path, objects=True) as running:
        yield running


class Approver:
    """Approves every plan that waits, and checks whether the last one was carried out."""

    def __init__(self, system: System) -> None:
        self.system, self.approved = system, dict[int, Obj]()

    async def approve(self) -> bool:
        """Approve a new plan; return whether the one approved last was carried out."""
        status = (await self.system.api.get(PATH)).get("status", {})
        shown = status.get("proposal")
        if shown and shown["plan"] not in self.approved:
            annotation = f"binwright.dev/approve={shown['plan']}"
            arguments = ("annotate", "consumergroup", "orders", annotation, "--overwrite")
            await self.system.plane.kubectl("-n", NAMESPACE, *arguments)
            self.approved[shown["plan"]] = shown
        return self.carried_out()

    def carried_out(self) -> bool:
        """Whether all partitions are read, those of the last plan's changes by the new owners."""
        if not self.approved or not self.system.all_read():
            return False
        owners = {str(p): slot for p, slot in self.system.owners().items()}
        changes = self.approved[max(self.approved)]["changes"]
        return all(owners[change["partition"]] == change["to"] for change in changes)


@pytest.mark.nightly
async def test_approved_plans_are_carried_out_and_every_row_lands_once(
    system: System,
) -> None:
    await system.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(GROUP))
    approver = Approver(system)
    await until(approver.approve, LONG_S)
    first = approver.approved[max(approver.approved)]
    assert (first["consumers"], first["starts"]) == (1, len(PARTITIONS))

    enough = asyncio.Event()
    async with asyncio.timeout(LONGEST_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(system.load(25_000, enough))  # 4 of these are too much for one

        async def spread() -> bool:
            # A plan from before the load was steady may be withdrawn: then another one is shown.
            return await approver.approve() and len(set(system.owners().values())) > 1

        await until(spread, LONG_S)
        # A consumer that died is replaced without approval, and gets its partitions back.
        victim = (await system.pods("consumer"))[0]
        slot, reports = slot_of(victim), system.view.reports
        assert slot is not None
        before = reports[slot].epoch
        os.kill(pid_of(victim), signal.SIGKILL)

        def is_back() -> bool:
            return slot in reports and reports[slot].epoch > before and approver.carried_out()

        await until(is_back, LONG_S)
        enough.set()

    await until(system.landed, LONG_S)
    found = await system.audit()
    assert found.clean, found.to_json()
    assert sum(part.rows for part in found.tables[0].partitions) > 0
