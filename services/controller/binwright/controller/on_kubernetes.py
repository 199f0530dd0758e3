"""Builds, from settings, the fleet of Deployments or the controller of ConsumerGroup objects."""

import contextlib
from collections.abc import AsyncIterator

from binwright.controller.fleets.kubernetes.deployment import DeploymentSpec
from binwright.controller.fleets.kubernetes.fleet import KubernetesFleet
from binwright.controller.group_objects.groups import Groups
from binwright.controller.group_objects.spec import secrets_in
from binwright.kafka.metrics_topic import Measurements
from binwright.kubernetes.api import own_namespace
from binwright.kubernetes.cluster import open_cluster, open_clusters
from binwright.protocol.errors import SettingsError
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings import EVERY_NAMESPACE, KubernetesSettings, Settings


@contextlib.asynccontextmanager
async def kubernetes_fleet(settings: Settings) -> AsyncIterator[KubernetesFleet]:
    """Give the fleet of Deployments that these settings describe; it is maintained meanwhile."""
    chosen = settings.kubernetes
    async with open_cluster(chosen) as cluster:
        owner = await cluster.owner(chosen.owner)
        spec = DeploymentSpec(settings.group, cluster.namespace, owner)
        fleet = KubernetesFleet(cluster, spec, settings.controller.max_slots)
        async with background_tasks(must_not_end(fleet.run())):
            yield fleet


@contextlib.asynccontextmanager
async def kubernetes_groups(
    settings: Settings, bus: ControlTopics, measurements: Measurements
) -> AsyncIterator[Groups]:
    """Give the groups that objects describe, in our namespace or those of the settings.

    The objects are watched meanwhile.

    Raises:
        SettingsError: The fleet is not `kubernetes`, or the settings hold a secret that would be
            written into the consumers' Deployments.
    """
    if settings.controller.fleet != "kubernetes":
        raise SettingsError('kubernetes.groups needs controller.fleet = "kubernetes"')
    if secrets := secrets_in(settings):
        raise SettingsError(f"kubernetes.groups: {'; '.join(secrets)}")
    async with open_clusters(
        settings.kubernetes, watched_namespaces(settings.kubernetes)
    ) as clusters:
        groups = Groups(clusters, bus, measurements, settings)
        async with background_tasks(must_not_end(groups.follow())):
            yield groups


def watched_namespaces(chosen: KubernetesSettings) -> list[str]:
    """Return the namespaces whose objects are led; `""` stands for all namespaces.

    Raises:
        SettingsError: No namespace is configured, and this process does not run in a pod.
    """
    if chosen.namespaces == EVERY_NAMESPACE:
        return [""]
    return list(chosen.namespaces) or [own_namespace(chosen.namespace)]
