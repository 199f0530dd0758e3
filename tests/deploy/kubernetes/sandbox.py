"""A test's own namespace, with the shipped rights and a template of its own."""

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from binwright.controller.fleets.kubernetes.cluster import NamespaceObjects, open_cluster
from binwright.controller.fleets.kubernetes.deployment import DeploymentSpec, slot_of
from binwright.controller.fleets.kubernetes.fleet import KubernetesFleet
from binwright.kubernetes.api import Api
from binwright.kubernetes.connection import load_configuration
from binwright.kubernetes.objects import Obj, Owner
from binwright.kubernetes.settings import KubernetesSettings
from binwright.protocol.errors import ClusterUnavailable, ExternalError
from binwright.protocol.model import Slot

from .kubelet import Kubelet
from .plane import ControlPlane
from .pod import readiness

ROOT = Path(__file__).parents[3]
RIGHTS = ROOT / "deploy" / "base" / "controller-rbac.yaml"
ACCOUNT = "binwright-controller"
TEMPLATE = "binwright-consumer"
PATIENCE_S = 60.0

SLEEPER = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
time.sleep(600)
"""
IMAGES = {
    "sleeper": (sys.executable, "-c", SLEEPER),
    "failing": (sys.executable, "-c", "import sys; sys.exit(3)"),
    "stubborn": (sys.executable, "-c", SLEEPER.replace("sys.exit(0)", "None")),
    **{
        f"binwright-{service}": (sys.executable, "-m", f"binwright.{service}")
        for service in ("monitor", "controller", "consumer")
    },
}


async def until(
    condition: Callable[[], bool | Awaitable[bool]], patience_s: float = PATIENCE_S
) -> None:
    """Wait until a condition holds; raise `TimeoutError` after `patience_s` seconds.

    A condition that the API server did not answer in time is asked for again.
    """
    unanswered: ClusterUnavailable | None = None
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    found = condition()
                    if found if isinstance(found, bool) else await found:
                        return
                except ClusterUnavailable as exc:
                    unanswered = exc
                await asyncio.sleep(0.05)
    except TimeoutError as exc:
        raise exc from unanswered


def template(image: str = "sleeper", **spec: Any) -> Obj:
    """Return a pod template; `spec` is added beside its one container."""
    container = {"name": "consumer", "image": image, "args": ["--slot", "$(SLOT)"]}
    return {
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
            **spec,
        }
    }


async def budgets(api: Api, namespace: str) -> list[Obj]:
    """Return the PodDisruptionBudgets of a namespace."""
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    found: list[Obj] = (await api.get(path))["items"]
    return found


async def holds_evictions(api: Api, namespace: str) -> bool:
    """Tell whether a budget counts one pod as healthy: it lets go of those that are not ready."""
    found = await budgets(api, namespace)
    return any(each.get("status", {}).get("currentHealthy") == 1 for each in found)


@dataclass
class Sandbox:
    """One namespace."""

    plane: ControlPlane
    nodes: tuple[Kubelet, Kubelet]
    api: Api  # as admin
    namespace: str
    kubeconfig: Path  # as the controller's service account
    stack: AsyncExitStack
    owner: Owner
    clusters: list[NamespaceObjects] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)  # images whose processes never send a Hello

    def path(self, plural: str) -> str:
        root = "/apis/apps/v1" if plural in ("deployments", "replicasets") else "/api/v1"
        return f"{root}/namespaces/{self.namespace}/{plural}"

    async def apply_template(self, pod: Obj | str) -> None:
        """Write a template to the ConfigMap."""
        text = pod if isinstance(pod, str) else yaml.safe_dump(pod)
        meta = {"name": TEMPLATE, "namespace": self.namespace}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"pod.yaml": text},
        }
        await self.api.apply(f"{self.path('configmaps')}/{TEMPLATE}", body)

    async def cluster(self, *, node_drains: bool = False) -> NamespaceObjects:
        """Return a controller's cluster, with the rights of the shipped Role."""
        settings = KubernetesSettings(
            namespace=self.namespace,
            kubeconfig=self.kubeconfig,
            request_timeout_s=5.0,
            node_drains=node_drains,
        )
        cluster = await self.stack.enter_async_context(open_cluster(settings))
        self.clusters.append(cluster)
        return cluster

    async def fleet(
        self,
        group: str = "orders",
        cluster: NamespaceObjects | None = None,
        *,
        moves: bool = True,
        **environment: str,
    ) -> KubernetesFleet:
        """Return a fleet that runs until the test's end."""
        cluster = cluster or await self.cluster()
        variables = {"BINWRIGHT_GROUP": group, **environment}
        spec = DeploymentSpec(group, self.namespace, self.owner, variables)
        fleet = KubernetesFleet(cluster, spec, max_slots=60, moves=moves)
        for work in (fleet.run(), self._update_ready(fleet)):
            self.stack.push_async_callback(_cancel, asyncio.create_task(work))
        return fleet

    async def _update_ready(self, fleet: KubernetesFleet) -> None:
        """Report, as the controller does, all ready pods' processes, but those of silent images."""
        since: dict[tuple[Slot, int], float] = {}
        while True:
            with contextlib.suppress(ExternalError):  # some tests stop the API server
                pods = {slot: pod for slot, pod in (await self.pods()).items() if is_ready(pod)}
                now = asyncio.get_running_loop().time()
                since = {
                    (slot, pid): since.get((slot, pid), now)
                    for slot, pod in pods.items()
                    if pod["spec"]["containers"][0]["image"] not in self.silent
                    for pid in [pid_of(pod)]
                }
                fleet.update_ready({slot: at for (slot, _), at in since.items()})
            await asyncio.sleep(0.5)

    async def deployments(self) -> dict[Slot, Obj]:
        found = (await self.api.get(self.path("deployments")))["items"]
        return {slot: d for d in found if (slot := slot_of(d)) is not None}

    async def slots(self) -> set[int]:
        return set(await self.deployments())

    async def pods(self) -> dict[Slot, Obj]:
        found = (await self.api.get(self.path("pods")))["items"]
        return {slot: p for p in found if (slot := slot_of(p)) is not None}

    async def running(self) -> set[int]:
        """Return the slots whose pod is ready."""
        return {slot for slot, pod in (await self.pods()).items() if is_ready(pod)}

    async def wait_for_running(self, *numbers: int) -> None:
        """Wait until the pods of these slots are ready, and no others."""

        async def run() -> bool:
            return await self.running() == set(numbers)

        await until(run)

    async def events(self, reason: str) -> list[str]:
        found = (await self.api.get(self.path("events")))["items"]
        return [
            event["message"]
            for event in found
            if event["reason"] == reason
            and event.get("source", {}).get("component") == "binwright-controller"
        ]

    async def has_event(self, reason: str, text: str = "") -> bool:
        """Whether the controller wrote an Event of this reason, with this text in its message."""
        return any(text in message for message in await self.events(reason))

    async def wait_for_event(self, reason: str, text: str = "") -> None:
        """Wait for an Event: they are written in the background."""
        await until(lambda: self.has_event(reason, text))


def is_ready(pod: Obj) -> bool:
    return readiness(pod.get("status", {})) == "True"


def pid_of(pod: Obj) -> int:
    """Return the process of the pod's first container."""
    identity = pod["status"]["containerStatuses"][0]["containerID"]
    return int(identity.removeprefix("process://"))


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    outcome = (await asyncio.gather(task, return_exceptions=True))[0]
    assert isinstance(outcome, asyncio.CancelledError), outcome


async def token(api: Api, namespace: str, account: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    request: Mapping[str, Any] = {"spec": {"audiences": [], "expirationSeconds": 3600}}
    created = await api.create(path, dict(request))
    found: str = created["status"]["token"]
    return found


@asynccontextmanager
async def make_sandbox(
    plane: ControlPlane, nodes: tuple[Kubelet, Kubelet], name: str
) -> AsyncIterator[Sandbox]:
    """Create a namespace with the shipped Role, a template, and an owner of Deployments."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-")
    namespace = f"{plain}-{sha256(name.encode()).hexdigest()[:6]}"
    api = Api(await load_configuration(plane.kubeconfig()), 10.0)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(api.close)
        await api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        stack.push_async_callback(api.delete, f"/api/v1/namespaces/{namespace}")
        await plane.kubectl("-n", namespace, "apply", "-f", str(RIGHTS))
        bearer = await token(api, namespace, ACCOUNT)
        owner = await api.create(
            f"/apis/apps/v1/namespaces/{namespace}/deployments", _owner(namespace)
        )
        sandbox = Sandbox(
            plane=plane,
            nodes=nodes,
            api=api,
            namespace=namespace,
            kubeconfig=plane.kubeconfig(f"controller-{namespace}", bearer),
            stack=stack,
            owner=Owner.from_object(owner, "apps/v1", "Deployment"),
        )
        await sandbox.apply_template(template())
        yield sandbox


def _owner(namespace: str) -> Obj:
    """Return a controller's Deployment, without pods: it owns the consumers."""
    labels = {"app": "controller"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
    return {
        "metadata": {"name": "binwright-controller", "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
    }
