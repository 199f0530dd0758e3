"""Holds evictions of a group's pods back while the controller can replace them beforehand.

A PodDisruptionBudget that allows none makes `kubectl drain` and autoscalers ask again; meanwhile
the controller moves what the pod reads, and ends it itself, which no budget holds back.
"""

from binwright.controller.fleets.kubernetes.cluster import NamespaceObjects
from binwright.controller.fleets.kubernetes.deployment import GROUP_LABEL, DeploymentSpec
from binwright.fleets.reconcile import EventSink
from binwright.kubernetes.api import FORBIDDEN
from binwright.kubernetes.objects import Obj, collection_path
from binwright.protocol.errors import ClusterRefused

ROOT, PLURAL = "/apis/policy/v1", "poddisruptionbudgets"
REMEDY = (
    "node drains are noticed only when consumers are asked to end: the controller may not {verb} "
    "{kind} (kubernetes.node_drains needs the rights of deploy/node-drains)"
)


class EvictionGuard:
    """The PodDisruptionBudget of one group.

    Attributes:
        refusal: Why evictions are not held back though they should be, a sentence; empty: they are.
    """

    def __init__(
        self, cluster: NamespaceObjects, spec: DeploymentSpec, report: EventSink, *, moves: bool
    ) -> None:
        """Guard the pods of `spec`, if the group `moves` partitions at all."""
        self._cluster, self._spec, self._report, self._moves = cluster, spec, report, moves
        self.refusal = ""
        self._holds: bool | None = None  # None: unknown, or this process does not lead

    async def update(self) -> None:
        """Hold evictions back if nodes are watched and this group moves; else let them pass.

        One that people delete stays deleted until another controller leads.

        Raises:
            ClusterUnavailable: The API server does not reply.
            ClusterRefused: It refuses for another reason than a right that is missing.
        """
        nodes = self._cluster.nodes if self._moves else None
        if nodes is None or nodes.refusal:
            await self._set(holds=False)
            if nodes is not None:
                self._refuse(REMEDY.format(verb="read", kind="nodes"))
        elif nodes.synced.is_set():
            await self._set(holds=True)

    def forget(self) -> None:
        """Forget what was set: another controller leads."""
        self._holds, self.refusal = None, ""

    async def _set(self, *, holds: bool) -> None:
        if self._holds == holds:
            return
        name = f"{self._spec.resource_name}-consumer"
        path = f"{collection_path(ROOT, self._spec.namespace, PLURAL)}/{name}"
        try:
            if holds:
                await self._cluster.api.apply(path, self._budget(name))
            else:
                await self._cluster.api.delete(path)
        except ClusterRefused as exc:
            if exc.status != FORBIDDEN:
                raise
            if holds:  # tried again at the next round; without the right there is none to delete
                self._refuse(REMEDY.format(verb="write", kind=PLURAL))
                return
        self._holds, self.refusal = holds, ""

    def _refuse(self, text: str) -> None:
        if text != self.refusal:
            self._report("NodeDrainsUnseen", text, None, warning=True)
        self.refusal = text

    def _budget(self, name: str) -> Obj:
        metadata: Obj = {
            "name": name,
            "namespace": self._spec.namespace,
            "labels": self._spec.labels(),
        }
        if self._spec.owner is not None:
            metadata["ownerReferences"] = [self._spec.owner.reference()]
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": {
                "maxUnavailable": 0,
                "selector": {"matchLabels": {GROUP_LABEL: self._spec.resource_name}},
                # One that is not ready reads nothing, and must not hold a node.
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        }
