"""The groups of `scaled_groups` as ScaledGroup objects of a real API server.

Each has a Deployment that is paused: nothing makes pods of it, so that the API server serves the
scaler alone. The scaler has the rights that `deploy/scaler` ships.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil
from tests.deploy.kubernetes.binaries import programs
from tests.deploy.kubernetes.plane import ControlPlane, run_control_plane
from tests.deploy.kubernetes.sandbox import ROOT, token

from binwright.kubernetes.api import Api
from binwright.kubernetes.connection import load_configuration
from binwright.kubernetes.objects import Obj
from binwright.scaler.decide.config import ScaledGroupSettings

NAMESPACE, ACCOUNT = "bench", "binwright-scaler"
DEPLOY = ROOT / "deploy" / "scaler"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
OBJECTS = f"/apis/binwright.dev/v1alpha1/namespaces/{NAMESPACE}/scaledgroups"
REQUEST_S = 30.0
STATUS_WRITES = re.compile(
    r'^apiserver_request_total\{(?=.*resource="scaledgroups")(?=.*subresource="status")'
    r'(?=.*verb="PATCH").*\} (\S+)$',
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A control plane with the objects."""

    plane: ControlPlane
    kubeconfig: Path  # of the scaler

    def variables(self) -> Mapping[str, str]:
        """Return the settings by which a scaler follows the objects."""
        return {
            "BINWRIGHT_KUBERNETES__NAMESPACE": NAMESPACE,
            "BINWRIGHT_KUBERNETES__KUBECONFIG": str(self.kubeconfig),
        }

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds that the API server and etcd have used."""
        children = self.plane.children
        return {
            name: sum(psutil.Process(children[name].pid).cpu_times()[:2])
            for name in ("kube-apiserver", "etcd")
        }

    async def status_writes(self) -> int:
        """Return how many statuses were written."""
        bearer = {"Authorization": f"Bearer {self.plane.tokens['admin']}"}
        url = f"{self.plane.url}/metrics"
        timeout = aiohttp.ClientTimeout(total=REQUEST_S)
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=bearer) as session,
            session.get(url, ssl=False) as response,
        ):
            text = await response.text()
        return round(sum(float(number) for number in STATUS_WRITES.findall(text)))


def deployment(name: str, replicas: int) -> Obj:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
    spec = {"replicas": replicas, "paused": True, "selector": {"matchLabels": labels}}
    return {"metadata": {"name": name}, "spec": {**spec, "template": pod}}


def scaled_group(config: ScaledGroupSettings) -> Obj:
    return {
        "apiVersion": "binwright.dev/v1alpha1",
        "kind": "ScaledGroup",
        "metadata": {"name": config.group},
        "spec": {
            "group": config.group,
            "workload": {"name": config.group},
            "topics": sorted(config.topics),
            "minReplicas": config.bounds.least,
            "maxReplicas": config.bounds.most,
            "recordsPerSecond": config.records_per_s,
        },
    }


@contextlib.asynccontextmanager
async def run_api_server(
    home: Path, configs: Iterable[ScaledGroupSettings]
) -> AsyncIterator[ApiServer]:
    """Run a control plane in `home` with an object and a Deployment for each of these groups."""
    async with run_control_plane(programs(), home) as plane:
        await plane.kubectl("apply", "-f", str(DEPLOY / "scaledgroups.yaml"))
        await plane.kubectl("wait", "--for=condition=established", "crd/scaledgroups.binwright.dev")
        await plane.kubectl("create", "namespace", NAMESPACE)
        await plane.kubectl("-n", NAMESPACE, "apply", "-f", str(DEPLOY / "rbac.yaml"))
        api = Api(await load_configuration(plane.kubeconfig()), REQUEST_S)
        try:
            chosen = list(configs)
            await asyncio.gather(
                *(api.create(DEPLOYMENTS, deployment(c.group, c.bounds.least)) for c in chosen)
            )
            await asyncio.gather(*(api.create(OBJECTS, scaled_group(c)) for c in chosen))
            bearer = await token(api, NAMESPACE, ACCOUNT)
        finally:
            await api.close()
        yield ApiServer(plane, plane.kubeconfig("scaler", bearer))
