"""Builds, from settings, the targets that ScaledGroup objects describe."""

import contextlib
from collections.abc import AsyncIterator, Callable

from binwright.kubernetes.connection import watched_namespaces
from binwright.runtime.settings import Settings
from binwright.scaler.objects.cluster import open_scaled_cluster
from binwright.scaler.objects.objects import ScaledObjects


@contextlib.asynccontextmanager
async def scaled_objects(
    settings: Settings, hurry: Callable[[], None]
) -> AsyncIterator[ScaledObjects]:
    """Give the objects of our namespace, or of those of the settings; they are watched meanwhile.

    Raises:
        SettingsError: The settings do not say how to reach a cluster.
    """
    namespaces = watched_namespaces(settings.kubernetes)
    async with open_scaled_cluster(settings.kubernetes, namespaces) as cluster:
        yield ScaledObjects(cluster, hurry)
