"""A kubelet whose pods are local processes: real scheduling, probes, restarts and deletions.

Images are names of commands on this machine. Each pod has an address of its own (127.x.y.z), a
working directory, and its volumes in a mount namespace of its own, which needs root. Not supported:
init containers, limits, `kubectl logs` (logs are files) and `kubectl exec`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from binwright.kubernetes.api import CONFLICT, Api
from binwright.kubernetes.connection import load_configuration
from binwright.kubernetes.informer import Informer
from binwright.kubernetes.objects import Obj
from binwright.local.server import HOST
from binwright.protocol.errors import ClusterRefused, ClusterUnavailable

from .plane import ControlPlane
from .pod import Host, Pod, now

log = structlog.get_logger()

HEARTBEAT_S = 1.0
CAPACITY = "200"  # cores, and pods
END_S = 10.0


class Kubelet:
    """One node with the pods that are bound to it."""

    def __init__(self, host: Host, node: str) -> None:
        self.node, self._host = node, host
        self._seen: dict[str, Pod] = {}  # by uid
        self._informer = self._follow_bound()
        self._work: list[asyncio.Task[None]] = []

    def pods(self) -> list[Pod]:
        return [pod for pod in self._seen.values() if not pod.ended]

    async def start(self) -> None:
        """Register the node, and run the pods that are bound to it from now on."""
        meta = {"name": self.node, "labels": {"kubernetes.io/hostname": self.node}}
        try:
            await self._host.api.create("/api/v1/nodes", {"metadata": meta})
        except ClusterRefused as exc:
            if exc.status != CONFLICT:
                raise
        await self._send_heartbeat()
        self._informer = self._follow_bound()  # a restarted node has no memory
        work = (self._informer.run(), self._send_heartbeats())
        self._work = [asyncio.create_task(each) for each in work]

    async def lose(self) -> None:
        """Stop as by a power cut: without a report, and without a process left."""
        for task in self._work:
            task.cancel()
        outcomes = await asyncio.gather(*self._work, return_exceptions=True)
        for pod in self.pods():
            await pod.kill()
        self._seen.clear()
        for outcome in outcomes:  # else the node had failed before, during a test
            assert isinstance(outcome, asyncio.CancelledError), outcome

    def _follow_bound(self) -> Informer:
        informer = Informer(self._host.api, "/api/v1/pods", fields=f"spec.nodeName={self.node}")
        informer.add_handler(self._handle_pod)
        return informer

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            try:
                await self._send_heartbeat()
            except (ClusterRefused, ClusterUnavailable) as exc:
                log.info("heartbeat.failed", reason=str(exc))

    async def _send_heartbeat(self) -> None:
        size = {"cpu": CAPACITY, "memory": "512Gi", "pods": CAPACITY}
        alive = {
            "type": "Ready",
            "status": "True",
            "reason": "ProcessKubelet",
            "lastHeartbeatTime": now(),
        }
        status = {"capacity": size, "allocatable": size, "conditions": [alive]}
        await self._host.api.merge(f"/api/v1/nodes/{self.node}/status", {"status": status})

    def _handle_pod(self, raw: Obj) -> None:
        meta = raw["metadata"]
        found = self._informer.get(meta["namespace"], meta["name"])
        gone = found is None or found["metadata"]["uid"] != meta["uid"]
        pod = self._seen.get(meta["uid"])
        finished = raw.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if pod is None and not gone and not finished:
            pod = self._seen[meta["uid"]] = Pod(self._host, raw)
        if pod is None:
            return
        if gone:
            pod.delete(0.0)
        elif meta.get("deletionTimestamp"):
            pod.delete(float(meta.get("deletionGracePeriodSeconds", 30)))
        else:
            pod.resend_status(raw)


@asynccontextmanager
async def run_kubelet(
    plane: ControlPlane,
    node: str,
    home: Path,
    images: Mapping[str, Sequence[str]],
    environment: Mapping[str, str],
) -> AsyncIterator[Kubelet]:
    """Run a node; at the end no process of its pods is left.

    Args:
        plane: The control plane that the node joins.
        node: Its name, one that the plane has an identity for.
        home: The directory of the pods' directories.
        images: Image, without its tag -> the command that stands for its entry point.
        environment: Variables of every container, besides its own.
    """
    api = Api(await load_configuration(plane.kubeconfig(node)), 10.0)
    number = int(node.rpartition("-")[2])
    # As a real kubelet sets them, for the service `kubernetes`.
    server = {"KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT": str(plane.port)}
    host = Host(api, home / node, images, {**environment, **server}, number)
    kubelet = Kubelet(host, node)
    try:
        await kubelet.start()
        yield kubelet
    finally:
        async with asyncio.timeout(END_S):
            await kubelet.lose()
        await api.close()
