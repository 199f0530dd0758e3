"""What a user tries whose only right is to create ConsumerGroups in one of two namespaces.

The controller has the settings of `docs/how-to/namespaces.md` for teams that do not trust each
other. `test_tenants` has the attempts by templates.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import yaml
from tests.deploy.kubernetes.sandbox import ROOT, Sandbox, until

from binwright.kubernetes.objects import Obj
from binwright.protocol.model import Slot

from .test_groups import GroupsHarness
from .test_namespaces import _crd as crd
from .test_namespaces import add_namespace, controller, two_consumers
from .test_tenants import TENANT, Tenant, new_tenant

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

__all__ = ["crd"]  # a fixture
GROUP = "binwright.dev"
CONSUMER = ROOT / "deploy" / "consumers" / "consumer.yaml"


class Teams:
    """A tenant's namespace, and another one with a group that runs."""

    def __init__(self, tenant: Tenant, own: GroupsHarness, others: GroupsHarness) -> None:
        self.tenant, self.own, self.others = tenant, own, others

    @property
    def theirs(self) -> str:
        """The other namespace, whose name begins as the tenant's."""
        return self.others.sandbox.namespace

    def attempts(self) -> dict[str, tuple[Obj, str]]:
        """Return what the tenant's objects may ask for -> what the refusal names."""
        here, there = self.own.sandbox.namespace, self.theirs
        lake, staged = "s3a://lake", f"{here}.orders"
        group, sinks = "kubernetes.group_prefix", "kubernetes.sinks"
        topics, directory = "only the settings of a group may name them", "a directory of Delta"
        found: dict[str, tuple[Obj, str]] = {
            # another group's offsets: its name has them, and topics hold them
            "taken": ({"group": f"{there}.orders"}, group),
            "before-its-owner": ({"group": f"{there}.later"}, group),
            "no-namespace": ({"group": "payments"}, group),
            "own-name": ({}, group),
            "offsets": ({"topics": ["__consumer_offsets"]}, topics),
            "reports": ({"topics": [f"{there}.orders.metadata"]}, topics),
            # a foreign table
            "their-tables": ({"sink": {"path": f"{lake}/{there}"}}, sinks),
            "all-tables": ({"sink": {"path": lake}}, sinks),
            "way-around": ({"sink": {"path": f"{lake}/{here}/../{there}"}}, sinks),
            "escaped": ({"sink": {"path": f"{lake}/{here}/%2e%2e/{there}"}}, sinks),
            "their-staged": ({"sink": {"staging": f"{lake}/{there}/_staging"}}, sinks),
            "staged-over": ({"sink": {"path": f"{lake}/{here}/x/_delta_log"}}, directory),
            "above": ({"tables": [{"topics": ["orders"], "name": "..", "format": "raw"}]}, ".."),
            # a token: that of the lake, sent to a server
            "server": ({"sink": {"spark": "sc://evil:443"}}, "kubernetes.spark_servers"),
        }
        template: Obj
        for field, template, path in (
            ("namespace", {"metadata": {"namespace": there}}, "metadata.namespace"),
            ("account", {"spec": {"serviceAccountName": "x"}}, "spec.serviceAccountName"),
        ):
            found[f"by-{field}"] = {"group": f"{staged}-{field}", "template": template}, path
        return found


@pytest_asyncio.fixture(loop_scope="session")
async def teams(sandbox: Sandbox) -> AsyncIterator[Teams]:
    away = await add_namespace(sandbox, "away")
    rules: dict[str, Any] = {"group_prefix": "{namespace}.", "sinks": ("s3a://lake/{namespace}",)}
    async with controller(sandbox, sandbox.namespace, away.namespace, **rules) as (bus, groups):
        own, others = GroupsHarness(sandbox, bus, groups), GroupsHarness(away, bus, groups)
        await others.apply("orders", topics=["orders"], group=f"{away.namespace}.orders")
        await two_consumers(others, "orders")
        yield Teams(await new_tenant(sandbox), own, others)


async def test_no_object_of_a_tenant_reaches_offsets_tables_tokens_or_namespaces_of_others(
    teams: Teams,
) -> None:
    attempts, own = teams.attempts(), teams.own
    for name, (spec, _) in attempts.items():
        given: Obj = {"maxConsumers": 2}
        if name != "own-name":
            given["group"] = f"{own.sandbox.namespace}.{name}"
        assert not await teams.tenant.create(name, **(given | spec))

    async def answers() -> dict[str, str]:
        found: dict[str, str] = {}
        for name in attempts:
            for kind in ("Accepted", "Healthy"):
                if (await own.condition(name, kind)).startswith("False "):
                    found.setdefault(name, await own.message(name, kind))
        return found

    async def all_refused() -> bool:
        await own.measure("orders", 600.0, 500.0)
        return set(await answers()) == set(attempts)

    await until(all_refused)
    for name, text in (await answers()).items():
        assert attempts[name][1] in text, name
    assert not await own.sandbox.slots()
    for group in (f"{teams.theirs}.later", "payments", "own-name"):
        assert not await own.bus.partitions(f"{group}.metadata"), "none of its topics is made"
    assert teams.others.is_led("orders")
    assert {0, 1} <= await teams.others.sandbox.slots()


async def test_a_tenant_s_own_group_runs_without_a_token_or_a_secret_of_others(
    teams: Teams,
) -> None:
    """As the API server admits its pod, which adds tokens where nobody says no."""
    tenant, namespace = teams.tenant, teams.own.sandbox.namespace
    await tenant.sandbox.plane.kubectl("-n", namespace, "apply", "-f", str(CONSUMER))
    others = {"metadata": {"name": "others"}, "stringData": {"token": "x"}}
    await tenant.sandbox.api.create(tenant.sandbox.path("secrets"), others)
    assert not await tenant.create("orders", topics=["clicks"], group=f"{namespace}.orders")

    async def admitted() -> bool:
        await teams.own.measure("clicks", 600.0)
        return Slot(0) in await tenant.sandbox.pods()

    await until(admitted)
    spec = (await tenant.sandbox.pods())[Slot(0)]["spec"]
    assert spec["serviceAccountName"] == "binwright-consumer"
    assert "serviceAccountToken" not in json.dumps(spec)
    named = {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
    named |= {each["secretRef"]["name"] for each in spec["containers"][0]["envFrom"]}
    assert all(name.startswith("binwright-") for name in named)
    account = f"--as=system:serviceaccount:{namespace}:binwright-consumer"
    assert await rights(tenant.sandbox, namespace, account) == SELF


SELF = {
    "selfsubjectaccessreviews.authorization.k8s.io",
    "selfsubjectreviews.authentication.k8s.io",
    "selfsubjectrulesreviews.authorization.k8s.io",
}
"""What everybody may: ask what they may."""


async def rights(sandbox: Sandbox, namespace: str, user: str) -> set[str]:
    """Return the resources to which a user has a right, beyond paths that are no resource."""
    found = await sandbox.plane.kubectl(
        "auth", "can-i", "--list", "--no-headers", "-n", namespace, user
    )
    return {line.split()[0] for line in found.splitlines() if not line.startswith(" ")}


async def test_nothing_that_is_shipped_gives_a_tenant_another_right(teams: Teams) -> None:
    """With every role and binding of `deploy/` in the tenant's namespace and the cluster."""
    sandbox, namespace = teams.tenant.sandbox, teams.own.sandbox.namespace
    shipped = [
        each
        for file in sorted((ROOT / "deploy").rglob("*.yaml"))
        if "kind: RoleBinding" in file.read_text() or "kind: ClusterRoleBinding" in file.read_text()
        for each in yaml.safe_load_all(file.read_text())
        if each["apiVersion"].startswith("rbac")
    ]
    assert {each["kind"] for each in shipped} == {
        *("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    }
    namespaced = [each for each in shipped if not each["kind"].startswith("Cluster")]
    for each in namespaced:
        each["metadata"].pop("namespace", None)
    of_cluster = [each for each in shipped if each not in namespaced]
    kubectl = sandbox.plane.kubectl
    await kubectl("-n", namespace, "apply", "-f", "-", stdin=yaml.safe_dump_all(namespaced))
    try:
        await kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(of_cluster))
        user = f"--as={TENANT}"
        assert await rights(sandbox, namespace, user) == {*SELF, f"consumergroups.{GROUP}"}
        assert await rights(sandbox, teams.theirs, user) == SELF
    finally:
        await kubectl("delete", "-f", "-", stdin=yaml.safe_dump_all(of_cluster))


async def test_a_tenant_gets_no_token_secret_object_or_process_from_the_api_server(
    teams: Teams,
) -> None:
    tenant = teams.tenant
    secret = {"metadata": {"name": "binwright-kafka"}, "stringData": {"token": "x"}}
    await tenant.sandbox.api.create(tenant.sandbox.path("secrets"), secret)
    for attempt in (
        *("create token binwright-controller", "create token binwright-consumer"),
        *("get secret binwright-kafka", "get secrets", "get configmap binwright-consumer"),
        *("get consumergroups", "delete consumergroup orders", "get pods", "get events"),
        *("create deployment x --image=evil", "create serviceaccount x"),
        f"create rolebinding x --clusterrole=admin --user={TENANT}",
        f"create token binwright-controller -n {teams.theirs}",
        f"get secrets -n {teams.theirs}",
        f"delete consumergroup orders -n {teams.theirs}",
    ):
        with pytest.raises(AssertionError, match=r"(?i)forbidden: User"):
            await tenant.kubectl(*attempt.split())
    error = await tenant.create("orders", "-n", teams.theirs)
    assert f'cannot create resource "consumergroups" in API group "{GROUP}"' in error
    assert f'in the namespace "{teams.theirs}"' in error
