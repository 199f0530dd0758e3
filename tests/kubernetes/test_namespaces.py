"""One controller for ConsumerGroups of several namespaces, with the rights that `deploy/` ships."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from binwright.controller.deploy import watched
from binwright.controller.kube.cluster import opened_each
from binwright.controller.kube.groups import Groups
from binwright.controller.measurements import measuring
from binwright.core.model import Slot
from binwright.shell.letters import METRICS_CONFIG
from binwright.shell.run import meanwhile
from binwright.testing.bus import FakeBus

from .site import ROOT, Site, template, until
from .test_groups import CRD, Board, settings_for

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

HOME = "namespace: binwright\n"  # of the controller, as shipped


async def grant(site: Site, where: str, *target: str) -> None:
    """Give the rights that are shipped there to the controller of `site`."""
    text = (ROOT / "deploy" / where / "rights.yaml").read_text()
    assert HOME in text
    rights = text.replace(HOME, f"namespace: {site.namespace}\n")
    await site.plane.kubectl(*target, "apply", "-f", "-", stdin=rights)


async def annex(site: Site, name: str, *, allowed: bool = True) -> Site:
    """Make another namespace, with what consumers need; the controller may have rights there."""
    namespace = f"{site.namespace}-{name}"
    await site.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    site.stack.push_async_callback(site.api.delete, f"/api/v1/namespaces/{namespace}")
    there = replace(site, namespace=namespace)
    if allowed:
        await grant(site, "namespace", "-n", namespace)
    await there.give(template())
    return there


@asynccontextmanager
async def controller(site: Site, *namespaces: str) -> AsyncIterator[tuple[FakeBus, Groups]]:
    """Lead the groups of these namespaces."""
    base = settings_for(site)
    changed = {"namespaces": namespaces, "request_timeout_s": 5.0}
    base = base.model_copy(update={"kubernetes": base.kubernetes.model_copy(update=changed)})
    bus = FakeBus()
    await bus.ensure("binwright.metrics", 1, METRICS_CONFIG)
    async with (
        opened_each(base.kubernetes, watched(base.kubernetes)) as clusters,
        measuring(bus, "binwright.metrics") as measurements,
    ):
        groups = Groups(clusters, bus, measurements, base)
        async with meanwhile(groups.follow(), groups.rule()):
            yield bus, groups


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def _kind(site: Site) -> None:
    await site.plane.kubectl("apply", "-f", str(CRD))
    name = "crd/consumergroups.binwright.dev"
    await site.plane.kubectl("wait", "--for=condition=Established", name)


async def consumers(board: Board, topic: str) -> None:
    """Measure a topic until the group's two consumers are where its object is."""

    async def there() -> bool:
        await board.measure(topic, 600.0, 500.0)
        return {0, 1} <= await board.site.slots()

    await until(there)
    found = (await board.site.deployments())[Slot(1)]
    assert found["metadata"]["ownerReferences"][0]["kind"] == "ConsumerGroup"
    await board.site.hear("ConsumerCreated", "slot 1")


async def test_groups_run_beside_their_objects_and_no_namespace_holds_up_another(
    site: Site,
) -> None:
    away, closed = await annex(site, "away"), await annex(site, "closed", allowed=False)
    where = (closed.namespace, site.namespace, away.namespace)
    async with controller(site, *where) as (bus, groups):
        home, far = Board(site, bus, groups), Board(away, bus, groups)
        await home.make("orders", topics=["orders"])
        await far.make("clicks", topics=["clicks"])
        await consumers(home, "orders")
        await consumers(far, "clicks")
        assert len(await site.slots()) == len(await away.slots()) == 2
        await Board(closed, bus, groups).make("late", topics=["late"])
        await grant(site, "namespace", "-n", closed.namespace)
        await consumers(Board(closed, bus, groups), "late")


async def test_of_two_groups_of_one_name_in_two_namespaces_the_later_is_refused(
    site: Site,
) -> None:
    """Topics and offsets are named by the group, and Kafka knows no namespaces."""
    away = await annex(site, "away")
    async with controller(site, site.namespace, away.namespace) as (bus, groups):
        home, far = Board(site, bus, groups), Board(away, bus, groups)
        await far.make("orders", topics=["orders"])
        await until(lambda: far.ruled("orders"))
        await asyncio.sleep(1.1)  # creation times have whole seconds
        await home.make("orders", topics=["orders"])

        async def refused() -> bool:
            return await home.condition("orders", "Accepted") == "False GroupTaken"

        await until(refused)
        await site.hear("GroupTaken", f"ruled by the ConsumerGroup {away.namespace}/orders")
        await consumers(far, "orders")
        assert not await site.slots()
        await away.plane.kubectl("-n", away.namespace, "delete", "cg", "orders")
        await consumers(home, "orders")


async def test_all_namespaces_are_followed_also_a_later_one(site: Site) -> None:
    await grant(site, "all-namespaces")
    for kind in ("clusterroles", "clusterrolebindings"):
        path = f"/apis/rbac.authorization.k8s.io/v1/{kind}/binwright-controller"
        site.stack.push_async_callback(site.api.delete, path)
    async with controller(site, "*") as (bus, groups):
        home = Board(site, bus, groups)
        await home.make("orders", topics=["orders"])
        await consumers(home, "orders")
        away = await annex(site, "away", allowed=False)
        far = Board(away, bus, groups)
        await far.make("clicks", topics=["clicks"])
        await consumers(far, "clicks")
        assert len(await site.slots()) == 2


def overlay(directory: Path, namespace: str, what: str, where: str) -> None:
    """Write an overlay over what is shipped there."""
    path = os.path.relpath(ROOT / "deploy" / where, directory.resolve())
    whole = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": namespace,
        what: [path],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(whole))


@pytest.mark.parametrize(
    ("what", "where"),
    [("resources", "namespace"), ("components", "all-namespaces")],
)
async def test_rights_are_the_home_controllers_wherever_the_manifests_are_applied(
    site: Site, tmp_path: Path, what: str, where: str
) -> None:
    overlay(tmp_path, site.namespace, what, where)
    built = await site.plane.kubectl("kustomize", str(tmp_path))
    (binding,) = [o for o in yaml.safe_load_all(built) if o["kind"].endswith("Binding")]
    assert [s["namespace"] for s in binding["subjects"]] == ["binwright"]
    await site.plane.kubectl("apply", "-k", str(tmp_path), "--dry-run=server", "--validate=strict")
