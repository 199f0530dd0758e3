"""What the shipped rights allow on a real API server, and that our pods meet Pod Security."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from itertools import product
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from tests.deploy.kubernetes.sandbox import ACCOUNT, ROOT, Sandbox, until
from tests.deploy.policies import Right, objects, rights_of

from binwright.kubernetes.objects import Obj

from .test_namespaces import add_namespace, overlay

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
RESOURCES = (
    *("pods", "pods/exec", "pods/log", "pods/ephemeralcontainers", "secrets", "configmaps"),
    *("events", "serviceaccounts", "serviceaccounts/token", "namespaces", "nodes"),
    *("apps/deployments", "apps/deployments/scale", "apps/statefulsets", "apps/daemonsets"),
    *("policy/poddisruptionbudgets", "pods/eviction"),
    *("batch/jobs", "binwright.dev/consumergroups", "binwright.dev/consumergroups/status"),
    *("binwright.dev/scaledgroups", "rbac.authorization.k8s.io/roles"),
    *("rbac.authorization.k8s.io/rolebindings", "admissionregistration.k8s.io/*"),
)
CORE = {
    *("pods", "secrets", "configmaps", "events", "serviceaccounts", "namespaces", "nodes"),
}
TEMPLATE = ("binwright-consumer",)
ACTIVE_S = 30.0


def parts_of(resource: str) -> tuple[str, str, str]:
    """Return group, kind and subresource."""
    parts = resource.split("/")
    group = "" if parts[0] in CORE else parts.pop(0)
    return group, parts[0], "".join(parts[1:])


async def may(sandbox: Sandbox, right: Right, namespace: str) -> bool:
    """Ask the API server whether the controller of this sandbox may."""
    group, kind, part = parts_of(right.resource)
    asked = {
        "verb": right.verb,
        "group": group,
        "resource": kind,
        "subresource": part,
        "namespace": namespace,
        "name": right.names[0] if right.names else "",
    }
    user = f"system:serviceaccount:{sandbox.namespace}:{ACCOUNT}"
    body: Obj = {"spec": {"user": user, "resourceAttributes": asked}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    reviewed = await sandbox.api.create(path, body)
    return bool(reviewed["status"]["allowed"])


async def allowed(sandbox: Sandbox, namespace: str) -> set[Right]:
    """Return all that it may in a namespace; "" is the whole cluster."""
    asked = [
        Right(resource, verb, names)
        for resource, verb in product(RESOURCES, VERBS)
        for names in ((), TEMPLATE)
    ]
    found = await asyncio.gather(*(may(sandbox, right, namespace) for right in asked))
    return {right for right, allows in zip(asked, found, strict=True) if allows}


def shipped() -> set[Right]:
    """Return the controller's rights by its Role, as `allowed` would."""
    return {
        Right(right.resource, right.verb, names)
        for right in rights_of(ACCOUNT, objects("base/controller-rbac.yaml"))
        for names in ((), TEMPLATE)
        if names == TEMPLATE or not right.names
    }


async def test_with_roles_the_controller_may_what_they_list_and_nothing_anywhere_else(
    sandbox: Sandbox,
) -> None:
    listed = await add_namespace(sandbox, "listed")
    closed = await add_namespace(sandbox, "closed", allowed=False)
    for namespace in (sandbox.namespace, listed.namespace):
        assert await allowed(sandbox, namespace) == shipped()
    for namespace in (closed.namespace, "kube-system", "default", ""):
        assert await allowed(sandbox, namespace) == set(), namespace


@pytest_asyncio.fixture(loop_scope="session")
async def everywhere(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[str]:
    """Apply the component for all namespaces; give the account that it is for."""
    overlay(tmp_path, sandbox.namespace, components="all-namespaces")
    await sandbox.plane.kubectl("apply", "-k", str(tmp_path))
    try:
        yield "system:serviceaccount:binwright:binwright-controller"
    finally:
        await sandbox.plane.kubectl("delete", "-k", str(tmp_path))


async def test_with_the_clusterrole_it_changes_nothing_in_namespaces_of_kubernetes(
    sandbox: Sandbox, everywhere: str
) -> None:
    async def create(namespace: str) -> str:
        labels = {"app": "probe"}
        pod = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "c"}]},
        }
        made = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "probe"},
            "spec": {"selector": {"matchLabels": labels}, "template": pod},
        }
        return await attempt(namespace, "create", "-f", "-", stdin=json.dumps(made))

    async def attempt(namespace: str, *arguments: str, stdin: str | None = None) -> str:
        command = (f"--as={everywhere}", "-n", namespace, *arguments, "--dry-run=server")
        try:
            await sandbox.plane.kubectl(*command, stdin=stdin)
        except AssertionError as exc:
            return str(exc)
        return ""

    async def refused() -> bool:
        return "changes nothing in the namespaces kube-*" in await create("kube-system")

    await until(refused, ACTIVE_S)
    assert "changes nothing" in await create("kube-public")
    assert not await create(sandbox.namespace)
    assert not await create("default")
    secret = await attempt(sandbox.namespace, "create", "secret", "generic", "it")
    assert "forbidden" in secret


# --- Pod Security ---------------------------------------------------------------------------------


def pods(built: str) -> Iterator[tuple[str, Obj]]:
    """Yield the pods of all Deployments, and of the templates in ConfigMaps."""
    for each in yaml.safe_load_all(built):
        if each["kind"] == "Deployment":
            yield each["metadata"]["name"], each["spec"]["template"]
        elif text := (each.get("data") or {}).get("pod.yaml"):
            template = yaml.safe_load(text)
            for container in template["spec"]["containers"]:
                container.setdefault("image", "spark")  # an executor's: Spark sets it
            yield each["metadata"]["name"], template


def accounts(built: str) -> set[str]:
    every = yaml.safe_load_all(built)
    return {each["metadata"]["name"] for each in every if each["kind"] == "ServiceAccount"}


async def test_our_pods_meet_the_restricted_standard_of_pod_security(sandbox: Sandbox) -> None:
    name = f"{sandbox.namespace}-pss"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    (own,) = objects("base/namespace.yaml")
    assert own["metadata"]["labels"] == labels
    meta = {"name": name, "labels": labels}
    await sandbox.api.create("/api/v1/namespaces", {"metadata": meta})
    sandbox.stack.push_async_callback(sandbox.api.delete, f"/api/v1/namespaces/{name}")
    plane, found, named = sandbox.plane, dict[str, Obj](), set[str]()
    for place in (
        *("overlays/local", "overlays/production", "namespace", "namespace-spark"),
        *("scaler", "balancer"),
    ):
        built = await plane.kubectl("kustomize", str(ROOT / "deploy" / place))
        found |= {f"{place}: {pod}": template for pod, template in pods(built)}
        named |= accounts(built)
    for account in sorted(named):
        await plane.kubectl("-n", name, "create", "serviceaccount", account)

    async def create(template: Obj) -> str:
        pod = {**template, "apiVersion": "v1", "kind": "Pod"}
        pod["metadata"] = {**(template.get("metadata") or {}), "name": "probe"}
        try:
            await plane.kubectl(
                *("-n", name, "create", "-f", "-", "--dry-run=server"), stdin=json.dumps(pod)
            )
        except AssertionError as exc:
            return str(exc)
        return ""

    assert len(found) >= 14
    for pod, template in found.items():
        assert not await create(template), pod
        spec = template["spec"]
        container = {**spec["containers"][0]}
        del container["securityContext"]
        weaker = {**template, "spec": {**spec, "containers": [container]}}
        assert "violates PodSecurity" in await create(weaker), pod
