"""A ConsumerGroup object for real: approved plans, consumers that land, a death, and an audit."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from binwright.controller.kube.api import Obj
from binwright.controller.kube.deployment import slot_of

from .kubelet import Kubelet
from .plane import Plane
from .site import pid_of, until
from .system import LIMIT, LONG_S, LONGEST_S, NAMESPACE, OBJECTS, PARTITIONS, System, run_system

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
    plane: Plane, nodes: tuple[Kubelet, Kubelet], tmp_path: Path
) -> AsyncIterator[System]:
    assert nodes
    async with run_system(plane, tmp_path, kubernetes=OBJECTS, group="orders") as running:
        yield running


class Person:
    """Somebody who approves every plan that waits, and looks again whether it was carried out."""

    def __init__(self, system: System) -> None:
        self.system, self.approved = system, dict[int, Obj]()

    async def looks(self) -> bool:
        """Approve what is new; tell whether all is as it was approved last."""
        status = (await self.system.api.get(PATH)).get("status", {})
        shown = status.get("proposal")
        if shown and shown["plan"] not in self.approved:
            note = f"binwright.dev/approve={shown['plan']}"
            arguments = ("annotate", "consumergroup", "orders", note, "--overwrite")
            await self.system.plane.kubectl("-n", NAMESPACE, *arguments)
            self.approved[shown["plan"]] = shown
        return self.content()

    def content(self) -> bool:
        """Tell whether all is read, and what the last plan moves or starts is where it says."""
        if not self.approved or not self.system.all_read():
            return False
        held = {str(p): slot for p, slot in self.system.held().items()}
        changes = self.approved[max(self.approved)]["changes"]
        return all(held[change["partition"]] == change["to"] for change in changes)


async def test_what_was_approved_is_done_and_kept_and_every_row_lands_once(
    system: System,
) -> None:
    await system.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(GROUP))
    person = Person(system)
    await until(person.looks, LONG_S)
    first = person.approved[max(person.approved)]
    assert (first["consumers"], first["starts"]) == (1, len(PARTITIONS))

    enough = asyncio.Event()
    async with asyncio.timeout(LONGEST_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(system.load(25_000, enough))  # 4 of these are too much for one

        async def spread() -> bool:
            # What was shown while the load still rose may be withdrawn: then another is shown.
            return await person.looks() and len(set(system.held().values())) > 1

        await until(spread, LONG_S)
        # Nobody is asked: who died is replaced, and things are again as they were approved.
        victim = (await system.pods("consumer"))[0]
        slot, reports = slot_of(victim), system.picture.reports
        assert slot is not None
        before = reports[slot].epoch
        os.kill(pid_of(victim), signal.SIGKILL)

        def is_back() -> bool:
            return slot in reports and reports[slot].epoch > before and person.content()

        await until(is_back, LONG_S)
        enough.set()

    await until(system.landed, LONG_S)
    found = await system.audit()
    assert found.clean, found.to_json()
    assert sum(part.rows for part in found.tables[0].partitions) > 0
