"""Nodes that are drained, evictions, and changed templates, on a real API server.

The fleet reports what will end, holds evictions back, and restarts what it may. `test_node_drains`
has the whole system: partitions move before pods end.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.deploy.kubernetes.sandbox import (
    ACCOUNT,
    Sandbox,
    budgets,
    holds_evictions,
    is_ready,
    template,
    until,
)
from tests.deploy.policies import objects

from binwright.controller.fleets.kubernetes.fleet import KubernetesFleet
from binwright.fleets.metrics import SLOT_DISRUPTION
from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import ClusterRefused
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Disruption
from binwright.runtime.metrics import Sample

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

SPOT = "aws-node-termination-handler/spot-itn"
ROOT = "/apis/rbac.authorization.k8s.io/v1"
BUSY = 429


def slots(*numbers: int) -> list[Slot]:
    return [Slot(number) for number in numbers]


@pytest_asyncio.fixture(loop_scope="session")
async def node_rights(sandbox: Sandbox) -> AsyncIterator[None]:
    """The shipped right to read nodes, for this sandbox's controller."""
    made = []
    for each in objects("node-drains/rights.yaml"):
        name = f"{sandbox.namespace}-nodes"
        each["metadata"]["name"] = name
        for subject in each.get("subjects", ()):
            assert subject["name"] == ACCOUNT
            subject["namespace"], each["roleRef"]["name"] = sandbox.namespace, name
        path = f"{ROOT}/{each['kind'].lower()}s"
        await sandbox.api.create(path, each)
        made.append(f"{path}/{name}")
    try:
        yield
    finally:
        for path in made:
            await sandbox.api.delete(path)


@pytest_asyncio.fixture(loop_scope="session")
async def nodes_restored(sandbox: Sandbox) -> AsyncIterator[None]:
    """Whatever a test does to nodes is undone."""
    try:
        yield
    finally:
        for node in sandbox.nodes:
            await sandbox.plane.kubectl("uncordon", node.node)
            await change_node(sandbox, node.node, [])


async def change_node(sandbox: Sandbox, node: str, taints: list[Obj]) -> None:
    await sandbox.api.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": taints}})


async def node_of(sandbox: Sandbox, slot: int) -> str:
    node: str = (await sandbox.pods())[Slot(slot)]["spec"]["nodeName"]
    return node


async def evict(sandbox: Sandbox, slot: int) -> None:
    """Ask for an eviction, as `kubectl drain` does; raise `ClusterRefused` if it is refused."""
    name = (await sandbox.pods())[Slot(slot)]["metadata"]["name"]
    body = {"metadata": {"name": name, "namespace": sandbox.namespace}}
    # One attempt: the API's client tries again where the server is busy, as a budget seems.
    path = f"{sandbox.path('pods')}/{name}/eviction"
    await sandbox.api.create(path, {"apiVersion": "policy/v1", "kind": "Eviction", **body})


async def running_fleet(sandbox: Sandbox, *numbers: int, group: str = "orders") -> KubernetesFleet:
    fleet = await sandbox.fleet(group, await sandbox.cluster(node_drains=True))
    await fleet.reconcile(slots(*numbers))
    await sandbox.wait_for_running(*numbers)
    return fleet


@pytest.mark.usefixtures("node_rights", "nodes_restored")
async def test_a_cordon_is_reported_and_evictions_wait_until_the_slot_is_not_desired(
    sandbox: Sandbox,
) -> None:
    group = "drained"  # no other test's: a drain reaches into each namespace
    fleet = await running_fleet(sandbox, 0, group=group)
    node = await node_of(sandbox, 0)

    await until(lambda: holds_evictions(sandbox.api, sandbox.namespace))
    drain = asyncio.create_task(
        sandbox.plane.kubectl(
            *("drain", node, "--force", "--ignore-daemonsets", "--timeout=90s"),
            f"--pod-selector=binwright.dev/group={group},binwright.dev/slot in (0)",
        )
    )
    cordon = {Slot(0): Disruption("node", f"node {node} is cordoned")}
    await until(lambda: fleet.disruptions() == cordon)
    labels = {"group": group, "slot": "0", "kind": "node"}
    assert Sample(SLOT_DISRUPTION, 1, labels) in list(fleet.samples())
    with pytest.raises(ClusterRefused, match="disruption budget") as refused:
        await evict(sandbox, 0)
    assert refused.value.status == BUSY

    await fleet.reconcile(slots(0, 1))  # the controller starts a replacement
    await sandbox.wait_for_running(0, 1)
    assert await node_of(sandbox, 1) != node
    assert not drain.done()
    await fleet.reconcile(slots(1))  # all that slot 0 read has moved
    await drain
    assert set(await sandbox.pods()) == {1}
    assert not fleet.disruptions()


@pytest.mark.usefixtures("node_rights", "nodes_restored")
async def test_a_spot_notice_is_reported_by_its_taint_and_gone_with_it(
    sandbox: Sandbox,
) -> None:
    fleet = await running_fleet(sandbox, 0)
    node = await node_of(sandbox, 0)
    await change_node(sandbox, node, [{"key": SPOT, "effect": "NoSchedule"}])
    text = f"node {node} is about to end (taint {SPOT})"
    await until(lambda: fleet.disruptions() == {Slot(0): Disruption("node", text)})
    await change_node(sandbox, node, [])
    await until(lambda: not fleet.disruptions())


@pytest.mark.usefixtures("node_rights", "nodes_restored")
async def test_a_slot_that_may_be_restarted_leaves_its_node(
    sandbox: Sandbox,
) -> None:
    fleet = await running_fleet(sandbox, 0, 1)
    node = await node_of(sandbox, 0)
    before = (await sandbox.pods())[Slot(1)]["metadata"]["uid"]
    await sandbox.plane.kubectl("cordon", node)
    fleet.renew(slots(0))

    async def moved() -> bool:
        pod = (await sandbox.pods()).get(Slot(0))  # asked for once: the next has no node at first
        return pod is not None and is_ready(pod) and pod["spec"]["nodeName"] != node

    await until(moved)
    await sandbox.wait_for_event("ConsumerRestarted", f"slot 0: node {node} is cordoned")
    assert (await sandbox.pods())[Slot(1)]["metadata"]["uid"] == before


async def test_without_the_right_to_read_nodes_evictions_pass_and_it_is_reported(
    sandbox: Sandbox,
) -> None:
    await sandbox.apply_template(template("stubborn"))
    fleet = await running_fleet(sandbox, 0)
    text = "node drains are noticed only when consumers are asked to end"
    await sandbox.wait_for_event("NodeDrainsUnseen", f"{text}: the controller may not read nodes")
    assert [refusal for refusal in fleet.refusals if text in refusal]
    assert not await budgets(sandbox.api, sandbox.namespace)
    await evict(sandbox, 0)
    reason = "its pod is evicted (EvictionByEvictionAPI)"
    seen = {Slot(0): Disruption("evicted", reason)}
    await until(lambda: fleet.disruptions() in (seen, {}))


@pytest.mark.usefixtures("node_rights")
async def test_a_fleet_that_only_observes_holds_no_eviction_back(
    sandbox: Sandbox,
) -> None:
    fleet = await running_fleet(sandbox, 0)

    async def held() -> bool:
        return len(await budgets(sandbox.api, sandbox.namespace)) == 1

    await until(held)
    fleet.close()
    cluster = await sandbox.cluster(node_drains=True)
    observing = await sandbox.fleet(cluster=cluster, moves=False)
    await observing.reconcile(slots(0))
    assert not await budgets(sandbox.api, sandbox.namespace)


@pytest.mark.nightly
async def test_changed_settings_are_reported_and_restart_nothing_by_themselves(
    sandbox: Sandbox,
) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile(slots(0, 1))

    await sandbox.wait_for_running(0, 1)
    before = {slot: pod["metadata"]["uid"] for slot, pod in (await sandbox.pods()).items()}
    fleet.close()
    changed = await sandbox.fleet(BINWRIGHT_CONSUMER__LINGER="7")
    await changed.reconcile(slots(0, 1))
    roll = Disruption("roll", "its template or its settings change")
    assert changed.disruptions() == dict.fromkeys(slots(0, 1), roll)
    after = {slot: pod["metadata"]["uid"] for slot, pod in (await sandbox.pods()).items()}
    assert after == before

    changed.renew(slots(1))

    async def renewed() -> bool:
        pods = await sandbox.pods()
        ids = {slot: pod["metadata"]["uid"] for slot, pod in pods.items()}
        return ids.get(Slot(0)) == before[Slot(0)] and ids.get(Slot(1)) not in (
            None,
            before[Slot(1)],
        )

    await until(renewed)
    await until(lambda: changed.disruptions() == {Slot(0): roll})  # as of its next round
