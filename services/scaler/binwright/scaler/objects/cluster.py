"""The connection and the informers that all ScaledGroup objects of a scaler share."""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from binwright.kubernetes.api import Api
from binwright.kubernetes.connection import load_configuration
from binwright.kubernetes.events import EventRecorder
from binwright.kubernetes.informer import Informer
from binwright.kubernetes.objects import Obj, collection_path, name_of, namespace_of
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings import KubernetesSettings
from binwright.scaler.objects.spec import API_VERSION, PLURAL, WorkloadKind, WorkloadRef

APPS, AUTOSCALING = "/apis/apps/v1", "/apis/autoscaling/v2"
PLURALS: dict[WorkloadKind, str] = {"Deployment": "deployments", "StatefulSet": "statefulsets"}
WATCHES = 4  # of one namespace


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
        found = (each.workloads[ref.kind].get(ref.namespace, ref.name) for each in self.namespaces)
        return next((obj for obj in found if obj is not None), None)

    def autoscaler(self, ref: WorkloadRef) -> Obj | None:
        """Return a HorizontalPodAutoscaler that points at a workload; None: there is none."""
        found = (each.autoscalers.by_target().get(ref) for each in self.namespaces)
        return next((obj for obj in found if obj is not None), None)

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
    found = [_namespace(api, name) for name in namespaces]
    work = (must_not_end(informer.run()) for each in found for informer in each.informers())
    try:
        async with background_tasks(must_not_end(recorder.run()), *work):
            yield ScaledCluster(api, recorder, found, settings.request_timeout_s)
    finally:
        await api.close()
