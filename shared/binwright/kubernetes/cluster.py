"""The connection, the informers and the Events that all groups of one controller share."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import structlog

from binwright.controller.fleets.kubernetes.deployment import (
    GROUP_ANNOTATION,
    MANAGED_SELECTOR,
    TEMPLATE_KEY,
    Owner,
    Template,
    parse_template,
)
from binwright.kubernetes.api import (
    NOT_FOUND,
    Api,
    collection_path,
    load_configuration,
    own_namespace,
)
from binwright.kubernetes.events import EventRecorder
from binwright.kubernetes.informer import Informer, namespace_of
from binwright.protocol.errors import ClusterRefused, SettingsError, TemplateRefused
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings import KubernetesSettings

log = structlog.get_logger()

ROOTS = {"pods": "/api/v1", "configmaps": "/api/v1", "deployments": "/apis/apps/v1"}
WATCHES = len(ROOTS) + 1  # of one namespace; one more for the ConsumerGroup objects


@dataclass(frozen=True, slots=True)
class Cluster:
    """One namespace of a cluster, or all of them, as the informers have read it."""

    api: Api
    namespace: str  # empty: all
    deployments: Informer  # of all groups
    pods: Informer
    templates: Informer  # at most one ConfigMap of each namespace
    recorder: EventRecorder
    template_name: str
    patience_s: float  # how long the first list of an informer may take

    @staticmethod
    def path(kind: str, namespace: str) -> str:
        """Return the path of a collection in one namespace, by its plural name."""
        return collection_path(ROOTS[kind], namespace, kind)

    def template(self, namespace: str) -> Template:
        """Return the pod template that the namespace's ConfigMap holds now.

        Raises:
            TemplateRefused: There is none, or it cannot be used.
        """
        origin = f"ConfigMap {namespace}/{self.template_name}"
        found = self.templates.get(namespace, self.template_name)
        text = (found or {}).get("data", {}).get(TEMPLATE_KEY)
        if text is None:
            raise TemplateRefused(f"{origin}: no such ConfigMap with the key {TEMPLATE_KEY}")
        return parse_template(text, f"{origin}, {TEMPLATE_KEY}")

    async def owner(self, name: str | None) -> Owner | None:
        """Return the controller's own Deployment, which owns a group that settings describe.

        Raises:
            SettingsError: There is no Deployment of that name.
        """
        if name is None:
            return None
        try:
            found = await self.api.get(f"{self.path('deployments', self.namespace)}/{name}")
        except ClusterRefused as exc:
            if exc.status != NOT_FOUND:
                raise
            raise SettingsError(f"kubernetes.owner: no Deployment {name}: {exc}") from exc
        return Owner.from_object(found, "apps/v1", "Deployment")

    def leftovers(self, namespace: str, *groups: str) -> set[str]:
        """Return the groups, besides `groups`, that have Deployments in a namespace."""
        found = (d["metadata"] for d in self.deployments if namespace_of(d) == namespace)
        names = {meta.get("annotations", {}).get(GROUP_ANNOTATION, "") for meta in found}
        return names - {*groups, ""}


@contextlib.asynccontextmanager
async def open_cluster(settings: KubernetesSettings) -> AsyncIterator[Cluster]:
    """Connect to our own namespace; the informers are kept up to date meanwhile.

    Raises:
        SettingsError: The settings do not say how to reach a cluster.
    """
    async with open_clusters(settings, [own_namespace(settings.namespace)]) as (cluster,):
        yield cluster


@contextlib.asynccontextmanager
async def open_clusters(
    settings: KubernetesSettings, namespaces: Sequence[str]
) -> AsyncIterator[list[Cluster]]:
    """Connect once, and give a `Cluster` for each of these namespaces; `""` stands for all.

    Raises:
        SettingsError: The settings do not say how to reach a cluster.
    """
    configuration = await load_configuration(settings.kubeconfig)
    api = Api(configuration, settings.request_timeout_s, WATCHES * (len(namespaces) + 1))
    recorder = EventRecorder(api)
    clusters = [_cluster(api, recorder, settings, namespace) for namespace in namespaces]
    # An informer that ended would show stale objects: its end is an error.
    work = (
        must_not_end(each.run())
        for cluster in clusters
        for each in (cluster.deployments, cluster.pods, cluster.templates)
    )
    try:
        async with background_tasks(must_not_end(recorder.run()), *work):
            yield clusters
    finally:
        await api.close()


def _cluster(
    api: Api, recorder: EventRecorder, settings: KubernetesSettings, namespace: str
) -> Cluster:
    paths = {kind: collection_path(root, namespace, kind) for kind, root in ROOTS.items()}
    return Cluster(
        api=api,
        namespace=namespace,
        deployments=Informer(api, paths["deployments"], labels=MANAGED_SELECTOR),
        pods=Informer(api, paths["pods"], labels=MANAGED_SELECTOR),
        templates=Informer(api, paths["configmaps"], fields=f"metadata.name={settings.template}"),
        recorder=recorder,
        template_name=settings.template,
        patience_s=settings.request_timeout_s,
    )
