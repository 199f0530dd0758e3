"""The shipped manifests on a real cluster: drains, spot notices and new images under load.

Partitions have moved, acknowledged, before a pod is asked to end, and every row lands once.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.deploy.kubernetes.sandbox import ROOT, holds_evictions, until

from binwright.controller.fleets.kubernetes.deployment import GROUP_LABEL
from binwright.kubernetes.informer import Informer
from binwright.kubernetes.objects import Obj, label_of, name_of
from binwright.look.follower import read_group
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.run import background_tasks, must_not_end

from .kubelet import Kubelet
from .plane import ControlPlane
from .system import LONG_S, LONGEST_S, NAMESPACE, PARTITIONS, System, run_system

RIGHTS = ROOT / "deploy" / "node-drains" / "rights.yaml"
SPOT = "aws-node-termination-handler/spot-itn"
TEMPLATE = f"/api/v1/namespaces/{NAMESPACE}/configmaps/binwright-consumer"

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest_asyncio.fixture(loop_scope="session")
async def system(
    plane: ControlPlane, nodes: tuple[Kubelet, Kubelet], tmp_path: Path
) -> AsyncIterator[System]:
    await plane.kubectl("apply", "-f", str(RIGHTS))
    try:
        async with run_system(plane, tmp_path, kubernetes="node_drains = true") as running:
            yield running
    finally:
        await plane.kubectl("delete", "-f", str(RIGHTS))
        for node in nodes:
            await plane.kubectl("uncordon", node.node)
            await set_taints(plane, node.node)


async def set_taints(plane: ControlPlane, node: str, *taints: str) -> None:
    """Give a node these taints, all it has."""
    entries = ", ".join(f'{{"key": "{key}", "effect": "NoSchedule"}}' for key in taints)
    patch = f'{{"spec": {{"taints": [{entries}]}}}}'
    await plane.kubectl("patch", "node", node, "--type=merge", "-p", patch)


class Ends:
    """The moments when consumers' pods were asked to end: each pod's first."""

    def __init__(self, system: System) -> None:
        self.asked: dict[str, tuple[Slot, int]] = {}  # pod -> its slot, wall clock in ms
        self._system = system
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        component = "app.kubernetes.io/component=consumer"
        self.pods = Informer(system.api, path, labels=component)  # it misses no change
        self.pods.add_handler(self._note)

    def _note(self, pod: Obj) -> None:
        if pod["metadata"].get("deletionTimestamp"):
            self.asked.setdefault(name_of(pod), (slot_of(pod), wall_ms()))

    async def read(self) -> dict[str, set[TopicPartition]]:
        """Return what each pod's consumer read then, by what the group's topic had by then."""
        found = {}
        for name, (slot, at_ms) in self.asked.items():
            view = await read_group(self._system.bus, self._system.group, until_ms=at_ms)
            report = view.reports.get(slot)
            found[name] = set(report.reading) if report is not None else set()
        return found


def slot_of(pod: Obj) -> Slot:
    return Slot(int(label_of(pod, "binwright.dev/slot")))


async def reader(system: System) -> Obj:
    """Wait until one consumer reads everything; return its pod."""
    found: list[Obj] = []

    async def one_reads() -> bool:
        slots = set(system.owners().values())
        alive = [p for p in await system.pods("consumer") if slot_of(p) in slots]
        found[:] = [p for p in alive if not p["metadata"].get("deletionTimestamp")]
        return system.all_read() and len(slots) == len(found) == 1

    await until(one_reads, LONG_S)
    return found[0]


def planned(system: System, text: str) -> bool:
    """Whether a plan gave this reason."""
    return any(text in event for _, event in system.view.recent_events)


async def until_planned(system: System, text: str) -> None:
    try:
        await until(lambda: planned(system, text), LONG_S)
    except TimeoutError as exc:
        events = "\n".join(event for _, event in system.view.recent_events)
        raise AssertionError(f"no plan because of {text}:\n{events}") from exc


@pytest.mark.nightly
async def test_partitions_move_before_pods_end_by_a_drain_a_spot_notice_or_a_new_image(
    system: System,
) -> None:
    enough, ends = asyncio.Event(), Ends(system)
    first = await reader(system)
    async with (
        asyncio.timeout(LONGEST_S),
        asyncio.TaskGroup() as tasks,
        background_tasks(must_not_end(ends.pods.run())),
    ):
        tasks.create_task(system.load(2_000, enough))
        await until(lambda: holds_evictions(system.api, NAMESPACE), LONG_S)
        node = first["spec"]["nodeName"]
        # by the group: a drain reaches into the namespaces of other tests
        selector = f"--pod-selector=binwright.dev/group={label_of(first, GROUP_LABEL)}"
        drain = ("drain", node, selector, "--delete-emptydir-data", "--timeout=140s")
        await system.plane.kubectl(*drain)
        second = await reader(system)
        assert second["spec"]["nodeName"] != node
        text = f"replaces consumer {slot_of(first)}: node {node} is cordoned"
        assert planned(system, text)

        await system.plane.kubectl("uncordon", node)
        await set_taints(system.plane, second["spec"]["nodeName"], SPOT)
        await until_planned(system, f"taint {SPOT}")
        await until(lambda: name_of(second) in ends.asked, LONG_S)
        third = await reader(system)
        await set_taints(system.plane, second["spec"]["nodeName"])

        template = await system.api.get(TEMPLATE)
        before = third["spec"]["containers"][0]["image"]
        after = f"{before}-next"
        text = template["data"]["pod.yaml"].replace(before, after)
        await system.api.merge(TEMPLATE, {"data": {"pod.yaml": text}})
        change = f"its image changes from {before} to {after}, 0 of 1 done"
        await until_planned(system, change)
        await until(lambda: name_of(third) in ends.asked, LONG_S)
        assert (await reader(system))["spec"]["containers"][0]["image"] == after
        enough.set()

    assert await ends.read() == {name_of(pod): set() for pod in (first, second, third)}
    assert not system.view.deaths
    moves = [move for move in system.view.moves if move.partition in PARTITIONS]
    assert len(moves) == 3 * len(PARTITIONS)  # each partition once, for each of the three
    await until(system.landed, LONG_S)
    found = await system.audit()
    assert found.clean, found.to_json()
    assert sum(part.rows for part in found.tables[0].partitions) > 0
