"""What all groups of one controller share: the connection, the watches, the Events."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import structlog

from binwright.controller.kube.api import NOT_FOUND, Api, configured, own_namespace
from binwright.controller.kube.deployment import (
    GROUP_NOTE,
    MANAGED,
    TEMPLATE_KEY,
    Owner,
    Template,
    parse,
)
from binwright.controller.kube.events import Recorder
from binwright.controller.kube.mirror import Mirror
from binwright.core.errors import ClusterRefused, SettingsError, TemplateRefused
from binwright.shell.run import endless, meanwhile
from binwright.shell.settings import KubernetesSettings

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Cluster:
    """One namespace, as this controller sees it."""

    api: Api
    namespace: str
    deployments: Mirror  # of all groups
    pods: Mirror
    templates: Mirror  # the one ConfigMap, or nothing
    recorder: Recorder
    template_name: str
    patience_s: float  # for a first list

    def path(self, kind: str) -> str:
        """Return the path of a collection of ours, by its plural name."""
        root = {"pods": "/api/v1", "deployments": "/apis/apps/v1"}[kind]
        return f"{root}/namespaces/{self.namespace}/{kind}"

    def template(self) -> Template:
        """Return the pod template that the ConfigMap holds now.

        Raises:
            TemplateRefused: There is none, or it cannot be used.
        """
        origin = f"ConfigMap {self.namespace}/{self.template_name}"
        found = self.templates.get(self.template_name)
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
            found = await self.api.get(f"{self.path('deployments')}/{name}")
        except ClusterRefused as exc:
            if exc.status != NOT_FOUND:
                raise
            raise SettingsError(f"kubernetes.owner: no Deployment {name}: {exc}") from exc
        return Owner.of(found, "apps/v1", "Deployment")

    def leftovers(self, *groups: str) -> set[str]:
        """Return who else has Deployments here, living or left over."""
        found = {d["metadata"].get("annotations", {}).get(GROUP_NOTE, "") for d in self.deployments}
        return found - {*groups, ""}


@contextlib.asynccontextmanager
async def opened(settings: KubernetesSettings) -> AsyncIterator[Cluster]:
    """Connect, and keep the mirrors up to date meanwhile.

    Raises:
        SettingsError: The settings name no way to a cluster.
    """
    api = Api(await configured(settings.kubeconfig), settings.request_timeout_s)
    namespace = own_namespace(settings.namespace)
    at = {
        "deployments": f"/apis/apps/v1/namespaces/{namespace}/deployments",
        "pods": f"/api/v1/namespaces/{namespace}/pods",
        "configmaps": f"/api/v1/namespaces/{namespace}/configmaps",
    }
    cluster = Cluster(
        api=api,
        namespace=namespace,
        deployments=Mirror(api, at["deployments"], labels=MANAGED),
        pods=Mirror(api, at["pods"], labels=MANAGED),
        templates=Mirror(api, at["configmaps"], fields=f"metadata.name={settings.template}"),
        recorder=Recorder(api),
        template_name=settings.template,
        patience_s=settings.request_timeout_s,
    )
    # Endless: a view that has ended is not to be believed any more.
    work = (
        endless(each.run())
        for each in (cluster.deployments, cluster.pods, cluster.templates, cluster.recorder)
    )
    try:
        async with meanwhile(*work):
            yield cluster
    finally:
        await api.close()
