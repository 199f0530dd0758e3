"""A user whose only right is to create ConsumerGroups gets no other one by them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from tests.controller.fleets.kubernetes.refused_patches import ALLOWED, REFUSED
from tests.deploy.kubernetes.sandbox import ROOT, Sandbox, template, until

from binwright.kubernetes.objects import Obj
from binwright.protocol.model import Slot

from .test_groups import API, GroupsHarness, harness
from .test_namespaces import overlay

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

__all__ = ["harness"]  # a fixture
POLICY = ROOT / "deploy" / "restricted-templates" / "policy.yaml"
NAME = "consumergroups.binwright.dev"
TENANT = "tenant"
ACTIVE_S = 30.0


class Tenant:
    """The user, in a namespace."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    async def create(self, name: str, *arguments: str, **spec: object) -> str:
        """Create an object; return what the API server says against it, or nothing."""
        try:
            await self.kubectl(
                "create", "-f", "-", *arguments, stdin=json.dumps(self._object(name, spec))
            )
        except AssertionError as exc:
            return str(exc)
        return ""

    async def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return await self.sandbox.plane.kubectl(
            f"--as={TENANT}", "-n", self.sandbox.namespace, *arguments, stdin=stdin
        )

    @staticmethod
    def _object(name: str, spec: dict[str, object]) -> Obj:
        spec = {"topics": ["orders"], **spec}
        return {
            "apiVersion": API,
            "kind": "ConsumerGroup",
            "metadata": {"name": name},
            "spec": spec,
        }


async def new_tenant(sandbox: Sandbox) -> Tenant:
    """Give the user its one right in a namespace."""
    what = ("--verb=create", "--resource=consumergroups.binwright.dev")
    user = (f"--role={TENANT}", f"--user={TENANT}")
    for command in (("role", TENANT, *what), ("rolebinding", TENANT, *user)):
        await sandbox.plane.kubectl("-n", sandbox.namespace, "create", *command)
    found = Tenant(sandbox)
    for right in ("create deployments", "create pods", "get secrets", "patch configmaps"):
        with pytest.raises(AssertionError):
            await found.kubectl("auth", "can-i", *right.split())
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def tenant(harness: GroupsHarness) -> Tenant:
    return await new_tenant(harness.sandbox)


@asynccontextmanager
async def in_force(tenant: Tenant) -> AsyncIterator[None]:
    """Have the admission policy in force: the API server follows its coming and going late."""
    plane = tenant.sandbox.plane
    refused = REFUSED["account"][0]

    async def refuses() -> bool:
        return bool(await tenant.create("probe", "--dry-run=server", template=refused))

    async def allows() -> bool:
        return not await refuses()

    await plane.kubectl("apply", "-f", str(POLICY))
    try:
        await until(refuses, ACTIVE_S)
        yield
    finally:
        await plane.kubectl("delete", "-f", str(POLICY))
        await until(allows, ACTIVE_S)


async def test_the_policy_refuses_every_template_that_the_controller_would(
    tenant: Tenant,
) -> None:
    async with in_force(tenant):
        for number, (patch, path) in enumerate(REFUSED.values()):
            error = await tenant.create(f"bad-{number}", "--dry-run=server", template=patch)
            assert f"ValidatingAdmissionPolicy '{NAME}'" in error, path
            assert path in error
        assert not await tenant.create("good", "--dry-run=server", template=ALLOWED)
        assert not await tenant.create("plain", "--dry-run=server")


async def test_the_policys_expressions_fit_the_schema(tenant: Tenant) -> None:
    """A field that the schema does not know would be a mistake in an expression."""

    async def status() -> Obj:
        kind = "validatingadmissionpolicy"
        found = json.loads(await tenant.sandbox.plane.kubectl("get", kind, NAME, "-o", "json"))
        return dict(found.get("status", {}))

    async def checked() -> bool:
        return "observedGeneration" in await status()

    async with in_force(tenant):
        await until(checked, ACTIVE_S)
        assert not (await status()).get("typeChecking", {}).get("expressionWarnings")


async def test_an_object_from_before_the_policy_can_be_annotated_but_not_made_worse(
    tenant: Tenant,
) -> None:
    async def kubectl(*arguments: str) -> None:
        await tenant.sandbox.plane.kubectl("-n", tenant.sandbox.namespace, *arguments)

    assert not await tenant.create("old", template=REFUSED["image"][0])
    async with in_force(tenant):
        await kubectl("annotate", "cg", "old", "team=a")
        worse = json.dumps({"spec": {"template": REFUSED["account"][0]}})
        with pytest.raises(AssertionError, match="not allowed"):
            await kubectl("patch", "cg", "old", "--type=merge", "-p", worse)
        await kubectl("delete", "cg", "old")


async def test_the_controller_refuses_a_template_where_there_is_no_policy(
    harness: GroupsHarness, tenant: Tenant
) -> None:
    names = [
        *("account", "token", "Secret by env", "Secret by envFrom", "host network"),
        *("privileged", "image"),
    ]
    for number, name in enumerate(names):
        assert not await tenant.create(f"bad-{number}", template=REFUSED[name][0])

    async def refused() -> bool:
        await harness.measure("orders", 600.0)
        kinds = [await harness.condition(f"bad-{n}", "Healthy") for n in range(len(names))]
        return set(kinds) == {"False Refused"}

    await until(refused)
    for number, name in enumerate(names):
        error = await harness.message(f"bad-{number}", "Healthy")
        assert REFUSED[name][1] in error
    assert not await tenant.sandbox.slots()


@pytest.mark.parametrize(
    ("sink", "setting"),
    [
        ({"path": "s3a://evil/lake"}, "kubernetes.sinks"),
        ({"path": "s3a://lake/../evil"}, "kubernetes.sinks"),
        ({"staging": "s3a://evil/lake"}, "kubernetes.sinks"),
        ({"spark": "sc://evil:443"}, "kubernetes.spark_servers"),
    ],
)
async def test_the_controller_refuses_another_sink(
    harness: GroupsHarness, tenant: Tenant, sink: dict[str, str], setting: str
) -> None:
    assert not await tenant.create("orders", sink=sink)

    async def refused() -> bool:
        await harness.measure("orders", 600.0)
        return await harness.condition("orders", "Accepted") == "False SpecRefused"

    await until(refused)
    assert setting in await harness.message("orders", "Accepted")
    await tenant.sandbox.wait_for_event("SpecRefused", setting)
    assert not await tenant.sandbox.slots()


async def test_with_any_a_template_is_the_whole_pod(harness: GroupsHarness) -> None:
    base = harness.groups.base
    kubernetes = base.kubernetes.model_copy(update={"templates": "any"})
    harness.groups.base = base.model_copy(update={"kubernetes": kubernetes})
    own = {"metadata": {"labels": {"example.com/own": "yes"}}, **template(hostname="own")}
    await harness.apply("own", topics=["orders"], template=own)

    async def created() -> bool:
        await harness.measure("orders", 600.0)
        return 0 in await harness.sandbox.slots()

    await until(created)
    pod = (await harness.sandbox.deployments())[Slot(0)]["spec"]["template"]
    assert pod["spec"]["hostname"] == "own"
    assert pod["metadata"]["labels"]["example.com/own"] == "yes"


async def test_the_component_is_applied_by_an_overlay_and_again(
    tenant: Tenant, tmp_path: Path
) -> None:
    """The overlay's namespace is written into the policy, too, which has none."""
    overlay(tmp_path, tenant.sandbox.namespace, components="restricted-templates")
    plane, where = tenant.sandbox.plane, ("-k", str(tmp_path))
    try:
        await plane.kubectl("apply", *where)
        assert "unchanged" in await plane.kubectl("apply", *where)
        await plane.kubectl("get", "validatingadmissionpolicybinding", NAME)
    finally:
        await plane.kubectl("delete", *where)
