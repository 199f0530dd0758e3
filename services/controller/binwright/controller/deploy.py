"""The controller in a cluster: from settings to a fleet of Deployments."""

import contextlib
from collections.abc import AsyncIterator

from binwright.controller.fleets.kubernetes import KubernetesFleet
from binwright.controller.kube.cluster import opened
from binwright.controller.kube.deployment import Shape
from binwright.shell.run import meanwhile
from binwright.shell.settings import Settings


@contextlib.asynccontextmanager
async def kubernetes_fleet(settings: Settings) -> AsyncIterator[KubernetesFleet]:
    """Give the fleet of Deployments that these settings describe, and keep it meanwhile."""
    chosen = settings.kubernetes
    async with opened(chosen) as cluster:
        owner = await cluster.owner(chosen.owner)
        shape = Shape(settings.group, cluster.namespace, owner)
        fleet = KubernetesFleet(cluster, shape, settings.controller.max_slots)
        async with meanwhile(fleet.run()):
            yield fleet
