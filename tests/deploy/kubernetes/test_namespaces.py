"""One controller for ConsumerGroups of several namespaces, with the shipped rights."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from tests.deploy.kubernetes.sandbox import ROOT, Sandbox, template, until
from tests.deploy.policies import Network, Place, consumer_of, objects, pod_of

from binwright.controller.fleets.kubernetes.cluster import open_clusters
from binwright.controller.group_objects.groups import Groups
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.metrics_topic import run_measurements
from binwright.kubernetes.connection import watched_namespaces
from binwright.kubernetes.objects import Obj
from binwright.protocol.model import Slot
from binwright.runtime.run import background_tasks
from binwright.testing.control_topics import FakeControlTopics

from .test_groups import CRD, GroupsHarness, settings_for

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

CONTROLLER_NAMESPACE = "namespace: binwright\n"  # as shipped


async def grant(sandbox: Sandbox, where: str, *target: str) -> None:
    """Apply the rights that `deploy/` has in `where`, for the controller of `sandbox`."""
    text = (ROOT / "deploy" / where / "rights.yaml").read_text()
    assert CONTROLLER_NAMESPACE in text
    rights = text.replace(CONTROLLER_NAMESPACE, f"namespace: {sandbox.namespace}\n")
    await sandbox.plane.kubectl(*target, "apply", "-f", "-", stdin=rights)


async def add_namespace(sandbox: Sandbox, name: str, *, allowed: bool = True) -> Sandbox:
    """Create another namespace with what consumers need; and the controller's rights if allowed."""
    namespace = f"{sandbox.namespace}-{name}"
    await sandbox.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    sandbox.stack.push_async_callback(sandbox.api.delete, f"/api/v1/namespaces/{namespace}")
    added = replace(sandbox, namespace=namespace)
    if allowed:
        await grant(sandbox, "namespace", "-n", namespace)
    await added.apply_template(template())
    return added


@asynccontextmanager
async def controller(
    sandbox: Sandbox, *namespaces: str, **kubernetes: object
) -> AsyncIterator[tuple[FakeControlTopics, Groups]]:
    """Lead the groups of these namespaces, with more settings of the section `kubernetes`."""
    base = settings_for(sandbox)
    changed = {"namespaces": namespaces, "request_timeout_s": 5.0, **kubernetes}
    base = base.model_copy(update={"kubernetes": base.kubernetes.model_copy(update=changed)})
    bus = FakeControlTopics()
    await bus.ensure("binwright.metrics", 1, METRICS_CONFIG)
    async with (
        open_clusters(base.kubernetes, watched_namespaces(base.kubernetes)) as clusters,
        run_measurements(bus, "binwright.metrics") as measurements,
    ):
        groups = Groups(clusters, bus, measurements, base)
        async with background_tasks(groups.follow(), groups.lead()):
            yield bus, groups


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def _crd(sandbox: Sandbox) -> None:
    await sandbox.plane.kubectl("apply", "-f", str(CRD))
    name = "crd/consumergroups.binwright.dev"
    await sandbox.plane.kubectl("wait", "--for=condition=Established", name)


async def two_consumers(harness: GroupsHarness, topic: str) -> None:
    """Publish rates until the group's two consumers are in its object's namespace."""

    async def created() -> bool:
        await harness.measure(topic, 600.0, 500.0)
        return {0, 1} <= await harness.sandbox.slots()

    await until(created)
    found = (await harness.sandbox.deployments())[Slot(1)]
    assert found["metadata"]["ownerReferences"][0]["kind"] == "ConsumerGroup"
    await harness.sandbox.wait_for_event("ConsumerCreated", "slot 1")


async def test_groups_run_in_their_objects_namespaces_and_none_delays_another(
    sandbox: Sandbox,
) -> None:
    away, closed = (
        await add_namespace(sandbox, "away"),
        await add_namespace(sandbox, "closed", allowed=False),
    )
    where = (closed.namespace, sandbox.namespace, away.namespace)
    async with controller(sandbox, *where) as (bus, groups):
        home, far = GroupsHarness(sandbox, bus, groups), GroupsHarness(away, bus, groups)
        await home.apply("orders", topics=["orders"])
        await far.apply("clicks", topics=["clicks"])
        await two_consumers(home, "orders")
        await two_consumers(far, "clicks")
        assert len(await sandbox.slots()) == len(await away.slots()) == 2
        await GroupsHarness(closed, bus, groups).apply("late", topics=["late"])
        await grant(sandbox, "namespace", "-n", closed.namespace)
        await two_consumers(GroupsHarness(closed, bus, groups), "late")


async def test_of_two_groups_of_one_name_in_two_namespaces_the_later_is_refused(
    sandbox: Sandbox,
) -> None:
    """Topics and offsets are named after the group, and Kafka has no namespaces."""
    away = await add_namespace(sandbox, "away")
    async with controller(sandbox, sandbox.namespace, away.namespace) as (bus, groups):
        home, far = GroupsHarness(sandbox, bus, groups), GroupsHarness(away, bus, groups)
        await far.apply("orders", topics=["orders"])
        await until(lambda: far.is_led("orders"))
        await asyncio.sleep(1.1)  # creation times have whole seconds
        await home.apply("orders", topics=["orders"])

        async def refused() -> bool:
            return await home.condition("orders", "Accepted") == "False GroupTaken"

        await until(refused)
        await sandbox.wait_for_event(
            "GroupTaken", f"belongs to the ConsumerGroup {away.namespace}/orders"
        )
        await two_consumers(far, "orders")
        assert not await sandbox.slots()
        await away.plane.kubectl("-n", away.namespace, "delete", "cg", "orders")
        await two_consumers(home, "orders")


async def test_all_namespaces_are_followed_including_later_ones(sandbox: Sandbox) -> None:
    await grant(sandbox, "all-namespaces")
    for kind in ("clusterroles", "clusterrolebindings"):
        path = f"/apis/rbac.authorization.k8s.io/v1/{kind}/binwright-controller"
        sandbox.stack.push_async_callback(sandbox.api.delete, path)
    async with controller(sandbox, "*") as (bus, groups):
        home = GroupsHarness(sandbox, bus, groups)
        await home.apply("orders", topics=["orders"])
        await two_consumers(home, "orders")
        away = await add_namespace(sandbox, "away", allowed=False)
        far = GroupsHarness(away, bus, groups)
        await far.apply("clicks", topics=["clicks"])
        await two_consumers(far, "clicks")
        assert len(await sandbox.slots()) == 2


def overlay(directory: Path, namespace: str, **parts: str) -> None:
    """Write an overlay of the manifests that `parts` name, as resources or components."""
    start = directory.resolve()
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": namespace,
        **{what: [os.path.relpath(ROOT / "deploy" / w, start)] for what, w in parts.items()},
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))


@pytest.mark.parametrize(
    ("what", "where"),
    [("resources", "namespace"), ("components", "all-namespaces")],
)
async def test_rights_are_bound_to_the_controller_in_its_own_namespace(
    sandbox: Sandbox, tmp_path: Path, what: str, where: str
) -> None:
    overlay(tmp_path, sandbox.namespace, **{what: where})
    built = await sandbox.plane.kubectl("kustomize", str(tmp_path))
    kinds = ("RoleBinding", "ClusterRoleBinding")
    (binding,) = [o for o in yaml.safe_load_all(built) if o["kind"] in kinds]
    assert [s["namespace"] for s in binding["subjects"]] == ["binwright"]
    await sandbox.plane.kubectl(
        "apply", "-k", str(tmp_path), "--dry-run=server", "--validate=strict"
    )


@pytest.mark.nightly
async def test_a_namespace_has_a_spark_of_its_own_that_takes_its_consumers_alone(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """What the API server has of the overlay, evaluated beside the policies of `binwright`."""
    own = await add_namespace(sandbox, "own", allowed=False)
    overlay(tmp_path, own.namespace, resources="namespace-spark", components="spark-tls")
    await sandbox.plane.kubectl("apply", "-k", str(tmp_path), "--validate=strict")

    async def items(path: str) -> list[Obj]:
        found: list[Obj] = (await sandbox.api.get(path))["items"]
        return found

    (spark,) = await items(f"/apis/apps/v1/namespaces/{own.namespace}/deployments")
    pod = spark["spec"]["template"]
    assert {each["name"] for each in pod["spec"]["containers"]} == {"spark", "warm-up", "tls"}
    made = Place(own.namespace, pod["metadata"]["labels"])
    theirs = await items(f"/apis/networking.k8s.io/v1/namespaces/{own.namespace}/networkpolicies")
    network = Network(
        {"binwright": {}, own.namespace: {}},
        {"binwright": objects("base/network.yaml"), own.namespace: theirs},
    )
    shared = pod_of("spark/spark.yaml", "binwright-spark")
    reached = {
        (source.namespace, target.namespace)
        for source in (consumer_of("binwright"), consumer_of(own.namespace))
        for target in (shared, made)
        if network.reaches(source, target, 15002)
    }
    assert reached == {("binwright", "binwright"), (own.namespace, own.namespace)}
