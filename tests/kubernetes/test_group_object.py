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


async def approved(system: System) -> Obj:
    """Wait for a plan, approve it as a person would, and return what it said."""
    shown: Obj = {}

    async def waits() -> bool:
        status = (await system.api.get(PATH)).get("status", {})
        shown.update(status.get("proposal") or {})
        return bool(shown)

    await until(waits, LONG_S)
    note = f"binwright.dev/approve={shown['plan']}"
    arguments = ("annotate", "consumergroup", "orders", note, "--overwrite")
    await system.plane.kubectl("-n", NAMESPACE, *arguments)
    return shown


async def test_what_was_approved_is_done_and_kept_and_every_row_lands_once(
    system: System,
) -> None:
    await system.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(GROUP))
    first = await approved(system)
    assert (first["consumers"], first["starts"]) == (1, len(PARTITIONS))
    await until(system.all_read, LONG_S)

    enough = asyncio.Event()
    async with asyncio.timeout(LONGEST_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(system.load(25_000, enough))  # 4 of these are too much for one
        second = await approved(system)
        assert second["consumers"] >= 2
        wanted = {c["partition"]: c["to"] for c in second["changes"]}

        def as_approved() -> bool:
            held = {str(p): slot for p, slot in system.held().items()}
            return system.all_read() and all(held[p] == slot for p, slot in wanted.items())

        await until(as_approved, LONG_S)
        # Nobody is asked: who died is replaced, and things are again as they were approved.
        victim = (await system.pods("consumer"))[0]
        slot, reports = slot_of(victim), system.picture.reports
        assert slot is not None
        before = reports[slot].epoch
        os.kill(pid_of(victim), signal.SIGKILL)

        def is_back() -> bool:
            return slot in reports and reports[slot].epoch > before and as_approved()

        await until(is_back, LONG_S)
        enough.set()

    await until(system.landed, LONG_S)
    found = await system.audit()
    assert found.clean, found.to_json()
    assert sum(part.rows for part in found.tables[0].partitions) > 0
