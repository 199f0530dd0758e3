"""The Kubernetes fleet during failures of the cluster itself."""

import asyncio

import pytest
from tests.deploy.kubernetes.sandbox import Sandbox, until

from binwright.controller.fleets.kubernetes.cluster import open_cluster
from binwright.kubernetes.informer import Informer
from binwright.kubernetes.settings import KubernetesSettings
from binwright.protocol.errors import ClusterRefused, ExternalError
from binwright.protocol.model import Slot

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

# Clients of an API server that was away retry with growing pauses, some of up to a minute; and the
# tests before this one took it away.
LONG_S = 180.0
UNREACHABLE = ("node.kubernetes.io/unreachable", "NoSchedule")


class ExpiredOnce(Informer):
    """An informer whose first watch starts at a version that the server has forgotten."""

    lists = 0

    async def _list(self) -> str:
        self.lists += 1
        version = await super()._list()
        return "1" if self.lists == 1 else version


async def test_after_an_expired_watch_an_informer_lists_again(sandbox: Sandbox) -> None:
    await sandbox.plane.kill_api_server()
    await sandbox.plane.start_api_server()  # it has no history of earlier versions
    with pytest.raises(ClusterRefused) as refused:
        async for _ in sandbox.api.watch(sandbox.path("configmaps"), 5, resourceVersion="1"):
            pass
    assert refused.value.status == 410

    informer = ExpiredOnce(sandbox.api, sandbox.path("configmaps"))
    following = asyncio.create_task(informer.run())
    await until(lambda: informer.lists > 1 and informer.synced.is_set())
    later = {"metadata": {"name": "later"}, "data": {}}
    await sandbox.api.create(sandbox.path("configmaps"), later)
    await until(lambda: informer.get(sandbox.namespace, "later") is not None)
    await sandbox.api.delete(f"{sandbox.path('configmaps')}/later")
    await until(lambda: informer.get(sandbox.namespace, "later") is None)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


@pytest.mark.nightly
async def test_a_fleet_recovers_from_a_restart_of_the_api_server(sandbox: Sandbox) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile([Slot(0)])

    async def runs() -> bool:
        return 0 in await sandbox.running()

    await until(runs, LONG_S)
    await sandbox.plane.kill_api_server()
    with pytest.raises(ExternalError):
        await fleet.reconcile([Slot(0), Slot(1)])
    await sandbox.plane.start_api_server()

    async def reconciled() -> bool:
        return await sandbox.running() == {0, 1}

    await until(reconciled, LONG_S)
    name = (await sandbox.deployments())[Slot(1)]["metadata"]["name"]
    await sandbox.plane.kubectl("-n", sandbox.namespace, "delete", "deployment", name)

    async def restored() -> bool:  # the watch works again, too
        return await sandbox.slots() == {0, 1}

    await until(restored, LONG_S)


@pytest.mark.nightly
async def test_a_verb_missing_from_the_role_is_reported_until_it_is_back(
    sandbox: Sandbox,
) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile([Slot(0)])
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{sandbox.namespace}/roles"
    path = f"{roles}/binwright-controller"
    role = await sandbox.api.get(path)
    rules = [
        {**rule, "verbs": [v for v in rule["verbs"] if v not in ("patch", "create")]}
        if rule["resources"] == ["deployments"]
        else rule
        for rule in role["rules"]
    ]
    await sandbox.api.merge(path, {"rules": rules})

    async def forbidden() -> bool:
        try:
            await fleet.reconcile([Slot(0), Slot(1)])
        except ClusterRefused as exc:
            return exc.status == 403
        await fleet.reconcile([Slot(0)])
        return False

    await until(forbidden, LONG_S)

    async def reported() -> bool:
        return await sandbox.has_event("DeploymentRefused", "forbidden")

    await until(reported, LONG_S)
    assert 0 in await sandbox.slots()
    await sandbox.api.merge(path, {"rules": role["rules"]})

    async def created() -> bool:
        return await sandbox.slots() == {0, 1}

    await until(created, LONG_S)


async def test_nothing_beyond_the_role_is_allowed(sandbox: Sandbox) -> None:
    cluster = await sandbox.cluster()
    for path in (
        f"/api/v1/namespaces/{sandbox.namespace}/secrets",
        "/apis/apps/v1/namespaces/default/deployments",
        "/api/v1/nodes",
    ):
        with pytest.raises(ClusterRefused) as refused:
            await cluster.api.get(path)
        assert refused.value.status == 403


@pytest.mark.nightly
async def test_the_slot_of_a_lost_node_runs_on_another(sandbox: Sandbox) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile([Slot(0)])

    async def known() -> bool:
        # Kubernetes' own controllers must know the pod, too: after a restart of the API server they
        # see none for half a minute, and replace one that they never saw only after five.
        status = (await sandbox.deployments())[Slot(0)].get("status", {})
        return bool(status.get("readyReplicas") == 1)

    await until(known, LONG_S)
    pod = (await sandbox.pods())[Slot(0)]
    lost = next(n for n in sandbox.nodes if n.node == pod["spec"]["nodeName"])
    await lost.lose()

    async def noticed() -> bool:
        taints = (await sandbox.api.get(f"/api/v1/nodes/{lost.node}"))["spec"].get("taints") or ()
        # The other taint, NoExecute, may be set first, and admits new pods for five minutes.
        return UNREACHABLE in [(taint["key"], taint["effect"]) for taint in taints]

    try:
        await until(noticed, LONG_S)

        async def elsewhere() -> bool:
            node = ((await sandbox.pods()).get(Slot(0)) or {"spec": {}})["spec"].get("nodeName")
            if node == lost.node:
                # As the controller does after 10 s without a report; repeated if the scheduler
                # did not know the taint yet and chose the lost node again.
                await fleet.destroy(Slot(0))
            return node not in {None, lost.node} and 0 in await sandbox.running()

        await until(elsewhere, LONG_S)
    finally:
        await lost.start()

    async def back() -> bool:
        return not (await sandbox.api.get(f"/api/v1/nodes/{lost.node}"))["spec"].get("taints")

    await until(back, LONG_S)


async def test_an_unreachable_cluster_is_an_error(sandbox: Sandbox) -> None:
    await sandbox.plane.kubectl("version")
    settings = KubernetesSettings(
        namespace=sandbox.namespace, kubeconfig=sandbox.kubeconfig, request_timeout_s=0.001
    )
    async with open_cluster(settings) as cluster:
        with pytest.raises(ExternalError):
            await cluster.deployments.ready(0.2)
