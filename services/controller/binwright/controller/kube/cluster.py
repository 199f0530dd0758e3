"""What all groups of one controller share: the connection, the watches, the Events."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import structlog

from binwright.controller.kube.api import NOT_FOUND, Api, collection, configured, own_namespace
from binwright.controller.kube.deployment import (
    GROUP_NOTE,
    MANAGED,
    TEMPLATE_KEY,
    Owner,
    Template,
    parse,
)
from binwright.controller.kube.events import Recorder
from binwright.controller.kube.mirror import Mirror, namespace_of
from binwright.core.errors import ClusterRefused, SettingsError, TemplateRefused
from binwright.shell.run import endless, meanwhile
from binwright.shell.settings import KubernetesSettings

log = structlog.get_logger()

ROOTS = {"pods": "/api/v1", "configmaps": "/api/v1", "deployments": "/apis/apps/v1"}
WATCHES = len(ROOTS) + 1  # of one view, with the group objects'


@dataclass(frozen=True, slots=True)
class Cluster:
    """One namespace, or all of them, as this controller sees it."""

    api: Api
    namespace: str  # empty: all
    deployments: Mirror  # of all groups
    pods: Mirror
    templates: Mirror  # the one ConfigMap of each namespace, or nothing
    recorder: Recorder
    template_name: str
    patience_s: float  # for a first list

    @staticmethod
    def path(kind: str, namespace: str) -> str:
        """Return the path of a collection of ours in one namespace, by its plural name."""
        return collection(ROOTS[kind], namespace, kind)

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
        return parse(text, f"{origin}, {TEMPLATE_KEY}")

    async def owner(self, name: str | None) -> Owner | None:
        """Return the controller's own Deployment, which a group by settings belongs to.

        Raises:
            SettingsError: There is none of that name.
        """
        if name is None:
            return None
        try:
            found = await self.api.get(f"{self.path('deployments', self.namespace)}/{name}")
        except ClusterRefused as exc:
            if exc.status != NOT_FOUND:
                raise
            raise SettingsError(f"kubernetes.owner: no Deployment {name}: {exc}") from exc
        return Owner.of(found, "apps/v1", "Deployment")

    def leftovers(self, namespace: str, *groups: str) -> set[str]:
        """Return who else has Deployments in a namespace, living or left over."""
        there = (d["metadata"] for d in self.deployments if namespace_of(d) == namespace)
        return {meta.get("annotations", {}).get(GROUP_NOTE, "") for meta in there} - {*groups, ""}


@contextlib.asynccontextmanager
async def opened(settings: KubernetesSettings) -> AsyncIterator[Cluster]:
    """Connect to our own namespace, and keep the mirrors up to date meanwhile.

    Raises:
        SettingsError: The settings name no way to a cluster.
    """
    async with opened_each(settings, [own_namespace(settings.namespace)]) as (cluster,):
        yield cluster


@contextlib.asynccontextmanager
async def opened_each(
    settings: KubernetesSettings, namespaces: Sequence[str]
) -> AsyncIterator[list[Cluster]]:
    """Connect once, and give a view of each of these namespaces; an empty one is all there are.

    Raises:
        SettingsError: The settings name no way to a cluster.
    """
    configuration = await configured(settings.kubeconfig)
    api = Api(configuration, settings.request_timeout_s, WATCHES * (len(namespaces) + 1))
    recorder = Recorder(api)
    clusters = [_view(api, recorder, settings, namespace) for namespace in namespaces]
    # Endless: a view that has ended is not to be believed any more.
    work = (
        endless(each.run())
        for cluster in clusters
        for each in (cluster.deployments, cluster.pods, cluster.templates)
    )
    try:
        async with meanwhile(endless(recorder.run()), *work):
            yield clusters
    finally:
        await api.close()


def _view(api: Api, recorder: Recorder, settings: KubernetesSettings, namespace: str) -> Cluster:
    at = {kind: collection(root, namespace, kind) for kind, root in ROOTS.items()}
    return Cluster(
        api=api,
        namespace=namespace,
        deployments=Mirror(api, at["deployments"], labels=MANAGED),
        pods=Mirror(api, at["pods"], labels=MANAGED),
        templates=Mirror(api, at["configmaps"], fields=f"metadata.name={settings.template}"),
        recorder=recorder,
        template_name=settings.template,
        patience_s=settings.request_timeout_s,
    )
