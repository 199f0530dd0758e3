"""A kubelet whose pods are local processes: real scheduling, probes, restarts and deletions.

Images are names of commands that are there already. Each pod has an address of its own (127.x.y.z),
a working directory, and its volumes in a mount namespace of its own, which takes root. Left out:
init containers, limits, and the services behind `kubectl logs` and `exec` (logs are files).
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from binwright.controller.kube.api import CONFLICT, Api, Obj, configured
from binwright.controller.kube.mirror import Mirror
from binwright.core.errors import ClusterRefused, ClusterUnavailable
from binwright.embedded.ports import HOST

from .plane import Plane
from .pod import Host, Pod, now

log = structlog.get_logger()

HEARTBEAT_S = 1.0
ROOM = "200"  # cores, and pods
END_S = 10.0


class Kubelet:
    """One node and the pods that are bound to it."""

    def __init__(self, host: Host, node: str) -> None:
        self.node, self._host = node, host
        self._seen: dict[str, Pod] = {}  # by uid
        self._mirror = self._bound()
        self._work: list[asyncio.Task[None]] = []

    def pods(self) -> list[Pod]:
        return [pod for pod in self._seen.values() if not pod.ended]

    async def start(self) -> None:
        """Register, and run what is bound here from now on."""
        meta = {"name": self.node, "labels": {"kubernetes.io/hostname": self.node}}
        try:
            await self._host.api.create("/api/v1/nodes", {"metadata": meta})
        except ClusterRefused as exc:
            if exc.status != CONFLICT:
                raise
        await self._beat()
        self._mirror = self._bound()  # after a power cut it knows nothing of before
        self._work = [asyncio.create_task(work) for work in (self._mirror.run(), self._heart())]

    async def lose(self) -> None:
        """Be lost, as by a power cut: no word, no process is left."""
        for task in self._work:
            task.cancel()
        outcomes = await asyncio.gather(*self._work, return_exceptions=True)
        for pod in self.pods():
            await pod.vanish()
        self._seen.clear()
        for outcome in outcomes:  # it did its work until now, or a test went by without a node
            assert isinstance(outcome, asyncio.CancelledError), outcome

    def _bound(self) -> Mirror:
        mirror = Mirror(self._host.api, "/api/v1/pods", fields=f"spec.nodeName={self.node}")
        mirror.listen(self._heard)
        return mirror

    async def _heart(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            try:
                await self._beat()
            except (ClusterRefused, ClusterUnavailable) as exc:
                log.info("heartbeat.failed", reason=str(exc))

    async def _beat(self) -> None:
        size = {"cpu": ROOM, "memory": "512Gi", "pods": ROOM}
        alive = {
            "type": "Ready",
            "status": "True",
            "reason": "ProcessKubelet",
            "lastHeartbeatTime": now(),
        }
        status = {"capacity": size, "allocatable": size, "conditions": [alive]}
        await self._host.api.merge(f"/api/v1/nodes/{self.node}/status", {"status": status})

    def _heard(self, raw: Obj) -> None:
        meta = raw["metadata"]
        there = self._mirror.get(meta["namespace"], meta["name"])
        gone = there is None or there["metadata"]["uid"] != meta["uid"]
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
            pod.compare(raw)


@asynccontextmanager
async def run_kubelet(
    plane: Plane,
    node: str,
    home: Path,
    images: Mapping[str, Sequence[str]],
    environment: Mapping[str, str],
) -> AsyncIterator[Kubelet]:
    """Run a node; at the end no process of its pods is left.

    Args:
        plane: Whose node it is.
        node: Its name, one that the plane has an identity for.
        home: Where the pods' directories go.
        images: Image, without its tag -> the command that stands for its entry point.
        environment: What every container sees beside its own.
    """
    api = Api(await configured(plane.kubeconfig(node)), 10.0)
    number = int(node.rpartition("-")[2])
    # Where a real node's pods find the service `kubernetes`.
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
