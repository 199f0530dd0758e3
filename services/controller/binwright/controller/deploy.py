"""The controller in a cluster: from settings to Deployments, or to group objects."""

import contextlib
from collections.abc import AsyncIterator

from binwright.controller.fleets.kubernetes import KubernetesFleet
from binwright.controller.kube.api import own_namespace
from binwright.controller.kube.cluster import opened, opened_each
from binwright.controller.kube.deployment import Shape
from binwright.controller.kube.groups import Groups
from binwright.controller.kube.spec import secrets_in
from binwright.controller.measurements import Measurements
from binwright.core.errors import SettingsError
from binwright.core.ports import Bus
from binwright.shell.run import endless, meanwhile
from binwright.shell.settings import EVERY_NAMESPACE, KubernetesSettings, Settings


@contextlib.asynccontextmanager
async def kubernetes_fleet(settings: Settings) -> AsyncIterator[KubernetesFleet]:
    """Give the fleet of Deployments that these settings describe, and keep it meanwhile."""
    chosen = settings.kubernetes
    async with opened(chosen) as cluster:
        owner = await cluster.owner(chosen.owner)
        shape = Shape(settings.group, cluster.namespace, owner)
        fleet = KubernetesFleet(cluster, shape, settings.controller.max_slots)
        async with meanwhile(endless(fleet.run())):
            yield fleet


@contextlib.asynccontextmanager
async def kubernetes_groups(
    settings: Settings, bus: Bus, measurements: Measurements
) -> AsyncIterator[Groups]:
    """Give the groups that objects describe, in our namespace or those of the settings.

    They are followed meanwhile.

    Raises:
        SettingsError: The fleet is none of Deployments, or the settings hold a secret that
            consumers would be told by their Deployments.
    """
    if settings.controller.fleet != "kubernetes":
        raise SettingsError('kubernetes.groups needs controller.fleet = "kubernetes"')
    if secrets := secrets_in(settings):
        raise SettingsError(f"kubernetes.groups: {'; '.join(secrets)}")
    async with opened_each(settings.kubernetes, watched(settings.kubernetes)) as clusters:
        groups = Groups(clusters, bus, measurements, settings)
        async with meanwhile(endless(groups.follow())):
            yield groups


def watched(chosen: KubernetesSettings) -> list[str]:
    """Return the namespaces whose objects are run; an empty one is all there are.

    Raises:
        SettingsError: None is named, and this is no pod.
    """
    if chosen.namespaces == EVERY_NAMESPACE:
        return [""]
    return list(chosen.namespaces) or [own_namespace(chosen.namespace)]
