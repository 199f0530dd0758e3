"""A Deployment or StatefulSet as the workload of a group, and who else sets its replicas."""

from dataclasses import dataclass

from binwright.kubernetes.api import FIELD_MANAGER
from binwright.kubernetes.objects import GROUP_ANNOTATION, Obj, name_of
from binwright.protocol.errors import ClusterUnavailable
from binwright.scaler.decide.machine import WorkloadSeen
from binwright.scaler.objects.cluster import ScaledCluster
from binwright.scaler.objects.spec import WorkloadRef


@dataclass(frozen=True, slots=True)
class ObjectWorkload:
    """A workload of the cluster; see `targets.Workload`."""

    cluster: ScaledCluster
    ref: WorkloadRef

    def seen(self) -> WorkloadSeen | None:
        """Fit `Workload.seen`.

        Raises:
            ClusterUnavailable: What is known may be out of date.
        """
        if not self.cluster.is_synced():
            raise ClusterUnavailable("workloads and autoscalers cannot be listed or watched")
        if (found := self.cluster.workload(self.ref)) is None:
            return None
        return WorkloadSeen(
            replicas=found["spec"].get("replicas", 1),
            ready=found.get("status", {}).get("readyReplicas", 0),
            changed_by=other_manager(found),
            scaled_by=_owner(found) or _autoscaler(self.cluster.autoscaler(self.ref)),
        )

    async def scale(self, replicas: int) -> None:
        """Fit `Workload.scale`."""
        await self.cluster.api.scale(self.cluster.path(self.ref), replicas)


def other_manager(workload: Obj) -> str:
    """Return who set the replicas last, if not this controller; empty: it did, or none is known.

    The API server keeps for each field of an object which client has set it (`managedFields`).
    """
    entries = workload["metadata"].get("managedFields") or ()
    setters = [
        (entry.get("time", ""), str(entry.get("manager", "")))
        for entry in entries
        if "f:replicas" in (entry.get("fieldsV1") or {}).get("f:spec", {})
    ]
    if any(manager == FIELD_MANAGER for _, manager in setters):
        return ""
    return max(setters)[1] if setters else ""


def _owner(workload: Obj) -> str:
    """Return binwright's own group that a Deployment belongs to."""
    group = workload["metadata"].get("annotations", {}).get(GROUP_ANNOTATION)
    return f"the ConsumerGroup of {group}" if group else ""


def _autoscaler(found: Obj | None) -> str:
    """Return an autoscaler in words, with KEDA's object if that has made it."""
    if found is None:
        return ""
    owners = found["metadata"].get("ownerReferences") or ()
    scaled = next((f" of the {o['kind']} {o['name']}" for o in owners), "")
    return f"HorizontalPodAutoscaler {name_of(found)}{scaled}"
