"""A pod of the process kubelet: runs its containers and reports their status to the API server."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import structlog

from binwright.kubernetes.api import NOT_FOUND, Api
from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import ClusterRefused, ClusterUnavailable

from .container import Container
from .volumes import Volumes

log = structlog.get_logger()

RETRY_S = 0.5


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def readiness(status: Obj) -> str:
    found = (c["status"] for c in status.get("conditions") or () if c["type"] == "Ready")
    return next(found, "Unknown")


@dataclass
class Host:
    """What all pods of a node share."""

    api: Api
    home: Path
    images: Mapping[str, Sequence[str]]
    environment: Mapping[str, str]
    number: int
    _counter: "itertools.count[int]" = field(default_factory=itertools.count)

    def address(self) -> str:
        n = next(self._counter)
        return f"127.{self.number}.{n // 250}.{n % 250 + 1}"


class Pod:
    """One pod, from its binding to its deletion."""

    def __init__(self, host: Host, raw: Obj) -> None:
        self.host, self.meta, self.spec = host, raw["metadata"], raw["spec"]
        self.address, self.began = host.address(), now()
        self.directory = host.home / f"{self.meta['namespace']}_{self.meta['name']}"
        self.directory.mkdir(parents=True, exist_ok=True)  # it exists if the node was lost before
        self.volumes = Volumes(host.api, raw, self.directory / "volumes", self.address)
        self.changed = asyncio.Event()
        self._deleted, self._grace_s = asyncio.Event(), 0.0
        self.containers = [Container(self, each) for each in self.spec["containers"]]
        self._task = asyncio.create_task(self._run())

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.meta['namespace']}/pods/{self.meta['name']}"

    @property
    def ended(self) -> bool:
        return self._task.done()

    def delete(self, grace_s: float) -> None:
        self._grace_s = min(grace_s, self._grace_s) if self._deleted.is_set() else grace_s
        self._deleted.set()

    def resend_status(self, raw: Obj) -> None:
        """Report the status again if the API server's differs, as after the node was lost."""
        if readiness(raw["status"]) != readiness(self._status()):
            self.changed.set()

    async def kill(self) -> None:
        """End all containers now, without a report."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        runs = [asyncio.create_task(each.run()) for each in self.containers]
        reporting = asyncio.create_task(self._report())
        try:
            await self._deleted.wait()
            await asyncio.gather(*(each.stop(self._grace_s) for each in self.containers))
        finally:
            for task in (*runs, reporting):
                task.cancel()
            await asyncio.gather(*runs, reporting, return_exceptions=True)
            for each in self.containers:
                each.kill()
        await self._confirm_deletion()

    async def _confirm_deletion(self) -> None:
        """Delete the pod's object; retry however long the API server is away."""
        while True:
            try:
                await self.host.api.delete(self.path, grace_s=0, uid=self.meta["uid"])
            except (ClusterUnavailable, ClusterRefused) as exc:
                log.info("pod.undeleted", pod=self.meta["name"], reason=str(exc))
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def _report(self) -> None:
        self.changed.set()
        while True:
            await self.changed.wait()
            self.changed.clear()
            try:
                await self.host.api.merge(f"{self.path}/status", {"status": self._status()})
            except (ClusterRefused, ClusterUnavailable) as exc:
                if isinstance(exc, ClusterRefused) and exc.status == NOT_FOUND:
                    continue
                # An API server that has just started may not have loaded this node's rights yet.
                log.info("status.unsent", pod=self.meta["name"], reason=str(exc))
                self.changed.set()
                await asyncio.sleep(RETRY_S)

    def _status(self) -> Obj:
        states = [each.status for each in self.containers]
        began = any(s["started"] or s["restartCount"] for s in states)
        ready = "True" if all(s["ready"] for s in states) else "False"
        values = (
            ("Initialized", "True"),
            ("Ready", ready),
            ("ContainersReady", ready),
            ("PodScheduled", "True"),
        )
        return {
            "phase": "Running" if began else "Pending",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "hostIP": "127.0.0.1",
            "startTime": self.began,
            "containerStatuses": states,
            "conditions": [
                {"type": kind, "status": value, "lastTransitionTime": now()}
                for kind, value in values
            ],
        }
