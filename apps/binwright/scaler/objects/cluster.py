"""The cluster of ScaledGroup objects: informers that all of them share, and their workloads."""

import contextlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from binwright.kubernetes.api import FIELD_MANAGER, Api
from binwright.kubernetes.connection import load_configuration
from binwright.kubernetes.events import EventRecorder
from binwright.kubernetes.informer import Informer
from binwright.kubernetes.objects import (
    GROUP_ANNOTATION,
    Obj,
    collection_path,
    name_of,
    namespace_of,
)
from binwright.kubernetes.settings import KubernetesSettings
from binwright.protocol.errors import ClusterUnavailable
from binwright.runtime.run import background_tasks, must_not_end
from binwright.scaler.decide.assigning import Replica
from binwright.scaler.decide.members import GroupMember, Members, number_of
from binwright.scaler.decide.sizing import WorkloadStatus
from binwright.scaler.objects.spec import API_VERSION, PLURAL, WorkloadKind, WorkloadRef

APPS, AUTOSCALING = "/apis/apps/v1", "/apis/autoscaling/v2"
PLURALS: dict[WorkloadKind, str] = {"Deployment": "deployments", "StatefulSet": "statefulsets"}
WATCHES = 4  # of one namespace
MARK: Obj = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1000"}}}
"""Of pods that read nothing any more: a ReplicaSet ends those of the least cost first."""


class Autoscalers:
    """The HorizontalPodAutoscalers of one namespace, or of all, by what they point at."""

    def __init__(self, informer: Informer) -> None:
        """Index what this informer has."""
        self.informer = informer
        self._by_target: dict[tuple[str, str, str], Obj] | None = None
        informer.add_handler(self._forget)

    def _forget(self, _: Obj) -> None:
        self._by_target = None

    def by_target(self) -> Mapping[tuple[str, str, str], Obj]:
        """Return each autoscaler by the kind, namespace and name of its workload."""
        if self._by_target is None:
            targets = ((obj["spec"]["scaleTargetRef"], obj) for obj in self.informer)
            self._by_target = {
                (target["kind"], namespace_of(obj), target["name"]): obj for target, obj in targets
            }
        return self._by_target


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace of a cluster, or all of them, as the informers have read it."""

    objects: Informer  # ScaledGroups
    workloads: dict[WorkloadKind, Informer]
    autoscalers: "Autoscalers"

    def informers(self) -> Iterator[Informer]:
        """Yield all informers."""
        yield self.objects
        yield from self.workloads.values()
        yield self.autoscalers.informer


@dataclass(frozen=True, slots=True)
class ScaledCluster:
    """All namespaces whose objects are scaled."""

    api: Api
    recorder: EventRecorder
    namespaces: Sequence[Namespace]
    patience_s: float  # how long the first list of an informer may take

    def workload(self, ref: WorkloadRef) -> Obj | None:
        """Return a workload as last seen; None: it does not exist."""
        candidates = (
            each.workloads[ref.kind].get(ref.namespace, ref.name) for each in self.namespaces
        )
        return next((obj for obj in candidates if obj is not None), None)

    def autoscaler(self, ref: WorkloadRef) -> Obj | None:
        """Return a HorizontalPodAutoscaler that points at a workload; None: there is none."""
        candidates = (each.autoscalers.by_target().get(ref) for each in self.namespaces)
        return next((obj for obj in candidates if obj is not None), None)

    def is_synced(self) -> bool:
        """Whether workloads and autoscalers of all namespaces have been listed."""
        return all(i.synced.is_set() for each in self.namespaces for i in each.informers())

    @staticmethod
    def path(ref: WorkloadRef) -> str:
        """Return the path of a workload."""
        return f"{collection_path(APPS, ref.namespace, PLURALS[ref.kind])}/{ref.name}"

    @staticmethod
    def object_path(obj: Obj) -> str:
        """Return the path of a ScaledGroup object."""
        root = collection_path(f"/apis/{API_VERSION}", namespace_of(obj), PLURAL)
        return f"{root}/{name_of(obj)}"


def _namespace(api: Api, name: str) -> Namespace:
    return Namespace(
        objects=Informer(api, collection_path(f"/apis/{API_VERSION}", name, PLURAL)),
        workloads={
            kind: Informer(api, collection_path(APPS, name, plural))
            for kind, plural in PLURALS.items()
        },
        autoscalers=Autoscalers(
            Informer(api, collection_path(AUTOSCALING, name, "horizontalpodautoscalers"))
        ),
    )


@contextlib.asynccontextmanager
async def open_scaled_cluster(
    settings: KubernetesSettings, namespaces: Sequence[str]
) -> AsyncIterator[ScaledCluster]:
    """Connect, and keep the informers of these namespaces up to date; `""` stands for all.

    Raises:
        SettingsError: The settings do not say how to reach a cluster.
    """
    configuration = await load_configuration(settings.kubeconfig)
    api = Api(configuration, settings.request_timeout_s, WATCHES * len(namespaces))
    recorder = EventRecorder(api)
    opened = [_namespace(api, name) for name in namespaces]
    work = (must_not_end(informer.run()) for each in opened for informer in each.informers())
    try:
        async with background_tasks(must_not_end(recorder.run()), *work):
            yield ScaledCluster(api, recorder, opened, settings.request_timeout_s)
    finally:
        await api.close()


@dataclass(frozen=True, slots=True)
class ObjectWorkload:
    """A workload of the cluster; see `ports.ScaledWorkload`."""

    cluster: ScaledCluster
    ref: WorkloadRef

    def status(self) -> WorkloadStatus | None:
        """Fit `ScaledWorkload.status`.

        Raises:
            ClusterUnavailable: What is known may be out of date.
        """
        if not self.cluster.is_synced():
            raise ClusterUnavailable("workloads and autoscalers cannot be listed or watched")
        if (workload := self.cluster.workload(self.ref)) is None:
            return None
        return WorkloadStatus(
            replicas=workload["spec"].get("replicas", 1),
            ready=workload.get("status", {}).get("readyReplicas", 0),
            changed_by=other_manager(workload),
            scaled_by=_owner(workload) or _autoscaler(self.cluster.autoscaler(self.ref)),
        )

    async def replicas_of(self, members: Members) -> Mapping[str, Replica]:
        """Fit `ScaledWorkload.replicas_of`: a member's pod has its name or its address.

        Raises:
            ClusterUnavailable, ClusterRefused: The pods cannot be listed.
        """
        selector = (self.cluster.workload(self.ref) or {}).get("spec", {}).get("selector", {})
        path = collection_path("/api/v1", self.ref.namespace, "pods")
        pods = await self.cluster.api.get(path, labelSelector=label_query(selector))
        addresses = {
            name_of(pod): pod.get("status", {}).get("podIP", "") for pod in pods["items"] or ()
        }
        has_numbers = self.ref.kind == "StatefulSet"
        return {
            member: Replica(name, number_of(name) if has_numbers else None)
            for member, one in members.items()
            if (name := pod_of(one, addresses)) is not None
        }

    async def scale(self, replicas: int, ending: Collection[str] = ()) -> None:
        """Fit `ScaledWorkload.scale`: a Deployment ends the pods that are marked first."""
        if self.ref.kind == "Deployment":
            root = collection_path("/api/v1", self.ref.namespace, "pods")
            for name in ending:
                await self.cluster.api.merge(f"{root}/{name}", MARK)
        await self.cluster.api.scale(self.cluster.path(self.ref), replicas)


def label_query(selector: Obj) -> str:
    """Return a workload's selector of pods as the API server takes it in a query."""
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(each.get("values") or ())
        match each["operator"]:
            case "Exists":
                terms.append(key)
            case "DoesNotExist":
                terms.append(f"!{key}")
            case operator:
                terms.append(f"{key} {operator.lower()} ({values})")
    return ",".join(terms)


def pod_of(member: GroupMember, addresses: Mapping[str, str]) -> str | None:
    """Return the pod of a member; None: none has its name, and none alone has its address."""
    if named := {member.instance, member.client} & addresses.keys():
        return min(name for name in named if name)
    of_host = [name for name, address in addresses.items() if address == member.host]
    return of_host[0] if len(of_host) == 1 else None


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


def _autoscaler(autoscaler: Obj | None) -> str:
    """Return an autoscaler in words, with KEDA's object if that has made it."""
    if autoscaler is None:
        return ""
    owners = autoscaler["metadata"].get("ownerReferences") or ()
    scaled = next((f" of the {o['kind']} {o['name']}" for o in owners), "")
    return f"HorizontalPodAutoscaler {name_of(autoscaler)}{scaled}"
