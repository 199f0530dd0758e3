"""The connection, the informers and the Events that all groups of one controller share."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from binwright.controller.fleets.kubernetes.deployment import (
    MANAGED_SELECTOR,
    TEMPLATE_KEY,
)
from binwright.controller.fleets.kubernetes.disruptions import kept_of_node
from binwright.controller.fleets.kubernetes.template import Template, parse_template
from binwright.kubernetes.api import NOT_FOUND, Api
from binwright.kubernetes.connection import Connection, connect, own_namespace
from binwright.kubernetes.events import EventRecorder
from binwright.kubernetes.informer import Informer
from binwright.kubernetes.objects import GROUP_ANNOTATION, Owner, collection_path, namespace_of
from binwright.kubernetes.settings import KubernetesSettings
from binwright.protocol.errors import ClusterRefused, SettingsError, TemplateRefused
from binwright.runtime.run import background_tasks, must_not_end

ROOTS = {"pods": "/api/v1", "configmaps": "/api/v1", "deployments": "/apis/apps/v1"}
WATCHES = len(ROOTS) + 1  # of one namespace; one more for the ConsumerGroup objects
NODES = "/api/v1/nodes"


@dataclass(frozen=True, slots=True)
class NamespaceObjects:
    """One namespace of a cluster, or all of them, as the informers have read it."""

    api: Api
    namespace: str  # empty: all
    deployments: Informer  # of all groups
    pods: Informer
    templates: Informer  # at most one ConfigMap of each namespace
    nodes: Informer | None  # of the cluster, for all namespaces; None: not watched
    ending_taints: frozenset[str]  # keys: they announce a node's end
    recorder: EventRecorder
    template_name: str
    patience_s: float  # how long the first list of an informer may take

    @staticmethod
    def path(kind: str, namespace: str) -> str:
        """Return the path of a collection in one namespace, by its plural name."""
        return collection_path(ROOTS[kind], namespace, kind)

    async def template(self, namespace: str) -> Template:
        """Return the pod template that the namespace's ConfigMap holds now.

        Raises:
            TemplateRefused: There is none, or it cannot be used.
        """
        origin = f"ConfigMap {namespace}/{self.template_name}"
        configmap = self.templates.get(namespace, self.template_name) or {}
        text = configmap.get("data", {}).get(TEMPLATE_KEY)
        if text is None:
            raise TemplateRefused(f"{origin}: no such ConfigMap with the key {TEMPLATE_KEY}")
        return await asyncio.to_thread(parse_template, text, f"{origin}, {TEMPLATE_KEY}")

    async def owner(self, name: str | None) -> Owner | None:
        """Return the controller's own Deployment, which owns a group that settings describe.

        Raises:
            SettingsError: There is no Deployment of that name.
        """
        if name is None:
            return None
        try:
            deployment = await self.api.get(f"{self.path('deployments', self.namespace)}/{name}")
        except ClusterRefused as exc:
            if exc.status != NOT_FOUND:
                raise
            raise SettingsError(f"kubernetes.owner: no Deployment {name}: {exc}") from exc
        return Owner.from_object(deployment, "apps/v1", "Deployment")

    def leftovers(self, namespace: str, *groups: str) -> set[str]:
        """Return the groups, besides `groups`, that have Deployments in a namespace."""
        here = (d["metadata"] for d in self.deployments if namespace_of(d) == namespace)
        names = {meta.get("annotations", {}).get(GROUP_ANNOTATION, "") for meta in here}
        return names - {*groups, ""}


@contextlib.asynccontextmanager
async def open_cluster(settings: KubernetesSettings) -> AsyncIterator[NamespaceObjects]:
    """Connect to our own namespace; the informers are kept up to date meanwhile.

    Raises:
        SettingsError: The settings do not say how to reach a cluster.
    """
    async with open_clusters(settings, [own_namespace(settings.namespace)]) as (cluster,):
        yield cluster


@contextlib.asynccontextmanager
async def open_clusters(
    settings: KubernetesSettings, namespaces: Sequence[str]
) -> AsyncIterator[list[NamespaceObjects]]:
    """Connect once; give `NamespaceObjects` for each of these namespaces; `""` stands for all.

    Raises:
        SettingsError: The settings do not say how to reach a cluster.
    """
    async with connect(settings, WATCHES * (len(namespaces) + 1) + 1) as connection:
        watched = settings.node_drains
        nodes = Informer(connection.api, NODES, keep=kept_of_node) if watched else None
        clusters = [_cluster(connection, settings, name, nodes) for name in namespaces]
        # An informer that ended would show stale objects: its end is an error.
        work = (
            must_not_end(informer.run())
            for cluster in clusters
            for informer in (cluster.deployments, cluster.pods, cluster.templates)
        )
        watch = [must_not_end(nodes.run())] if nodes is not None else []
        async with background_tasks(*work, *watch):
            yield clusters


def _cluster(
    connection: Connection, settings: KubernetesSettings, namespace: str, nodes: Informer | None
) -> NamespaceObjects:
    api = connection.api
    paths = {kind: collection_path(root, namespace, kind) for kind, root in ROOTS.items()}
    return NamespaceObjects(
        api=api,
        namespace=namespace,
        deployments=Informer(api, paths["deployments"], labels=MANAGED_SELECTOR),
        pods=Informer(api, paths["pods"], labels=MANAGED_SELECTOR),
        templates=Informer(api, paths["configmaps"], fields=f"metadata.name={settings.template}"),
        nodes=nodes,
        ending_taints=frozenset(settings.ending_taints),
        recorder=connection.recorder,
        template_name=settings.template,
        patience_s=settings.request_timeout_s,
    )
