"""The Kubernetes fleet when the cluster itself is in trouble."""

import asyncio

import pytest

from binwright.controller.kube.cluster import opened
from binwright.controller.kube.mirror import Mirror
from binwright.core.errors import ClusterRefused, WorldError
from binwright.core.model import Slot
from binwright.shell.settings import KubernetesSettings

from .site import Site, until

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

# All clients of an API server that was away pause longer and longer, some up to a minute.
LONG_S = 180.0
UNREACHABLE = ("node.kubernetes.io/unreachable", "NoSchedule")


class ExpiredOnce(Mirror):
    """A mirror that was away so long that its first watch starts too far back."""

    lists = 0

    async def _list(self) -> str:
        self.lists += 1
        version = await super()._list()
        return "1" if self.lists == 1 else version


async def test_an_expired_watch_lists_again_and_follows(site: Site) -> None:
    await site.plane.kill_api_server()
    await site.plane.start_api_server()  # it remembers nothing of what was before
    with pytest.raises(ClusterRefused) as refused:
        async for _ in site.api.watch(site.path("configmaps"), 5, resourceVersion="1"):
            pass
    assert refused.value.status == 410

    mirror = ExpiredOnce(site.api, site.path("configmaps"))
    following = asyncio.create_task(mirror.run())
    await until(lambda: mirror.lists > 1 and mirror.synced.is_set())
    made = {"metadata": {"name": "later"}, "data": {}}
    await site.api.create(site.path("configmaps"), made)
    await until(lambda: mirror.get(site.namespace, "later") is not None)
    await site.api.delete(f"{site.path('configmaps')}/later")
    await until(lambda: mirror.get(site.namespace, "later") is None)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_restart_of_the_api_server_is_bridged(site: Site) -> None:
    fleet = await site.fleet()
    await fleet.reconcile([Slot(0)])

    async def runs() -> bool:
        return 0 in await site.running()

    await until(runs)
    await site.plane.kill_api_server()
    with pytest.raises(WorldError):
        await fleet.reconcile([Slot(0), Slot(1)])
    await site.plane.start_api_server()

    async def made_up_for() -> bool:
        return await site.running() == {0, 1}

    await until(made_up_for, LONG_S)
    name = (await site.deployments())[Slot(1)]["metadata"]["name"]
    await site.plane.kubectl("-n", site.namespace, "delete", "deployment", name)

    async def restored() -> bool:  # the watch is back, too
        return await site.slots() == {0, 1}

    await until(restored, LONG_S)


async def test_a_verb_taken_from_the_role_is_told_and_its_return_is_noticed(site: Site) -> None:
    fleet = await site.fleet()
    await fleet.reconcile([Slot(0)])
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{site.namespace}/roles"
    path = f"{roles}/binwright-controller"
    role = await site.api.get(path)
    rules = [
        {**rule, "verbs": [v for v in rule["verbs"] if v not in ("patch", "create")]}
        if rule["resources"] == ["deployments"]
        else rule
        for rule in role["rules"]
    ]
    await site.api.merge(path, {"rules": rules})

    async def forbidden() -> bool:
        try:
            await fleet.reconcile([Slot(0), Slot(1)])
        except ClusterRefused as exc:
            return exc.status == 403
        await fleet.reconcile([Slot(0)])
        return False

    await until(forbidden)

    async def told() -> bool:
        return await site.told("DeploymentRefused", "forbidden")

    await until(told)
    assert 0 in await site.slots()
    await site.api.merge(path, {"rules": role["rules"]})

    async def made() -> bool:
        return await site.slots() == {0, 1}

    await until(made, LONG_S)


async def test_nothing_beyond_the_role_is_allowed(site: Site) -> None:
    cluster = await site.cluster()
    for path in (
        f"/api/v1/namespaces/{site.namespace}/secrets",
        "/apis/apps/v1/namespaces/default/deployments",
        "/api/v1/nodes",
    ):
        with pytest.raises(ClusterRefused) as refused:
            await cluster.api.get(path)
        assert refused.value.status == 403


async def test_a_lost_node_gives_its_slot_to_another(site: Site) -> None:
    fleet = await site.fleet()
    await fleet.reconcile([Slot(0)])

    async def runs() -> bool:
        return 0 in await site.running()

    await until(runs)
    pod = (await site.pods())[Slot(0)]
    lost = next(n for n in site.nodes if n.node == pod["spec"]["nodeName"])
    await lost.lose()

    async def noticed() -> bool:
        taints = (await site.api.get(f"/api/v1/nodes/{lost.node}"))["spec"].get("taints") or ()
        # The other one, NoExecute, can come first, and lets new pods in for five minutes.
        return UNREACHABLE in [(taint["key"], taint["effect"]) for taint in taints]

    try:
        await until(noticed, LONG_S)

        async def elsewhere() -> bool:
            node = ((await site.pods()).get(Slot(0)) or {"spec": {}})["spec"].get("nodeName")
            if node == lost.node:
                # As the controller does after 10 s without a report; and again, where the
                # scheduler had not heard of the taint yet and chose this node once more.
                await fleet.destroy(Slot(0))
            return node not in {None, lost.node} and 0 in await site.running()

        await until(elsewhere, LONG_S)
    finally:
        await lost.start()

    async def back() -> bool:
        return not (await site.api.get(f"/api/v1/nodes/{lost.node}"))["spec"].get("taints")

    await until(back, LONG_S)


async def test_no_cluster_is_an_error_that_says_so(site: Site) -> None:
    await site.plane.kubectl("version")
    settings = KubernetesSettings(
        namespace=site.namespace, kubeconfig=site.kubeconfig, request_timeout_s=0.001
    )
    async with opened(settings) as cluster:
        with pytest.raises(WorldError):
            await cluster.deployments.ready(0.2)
