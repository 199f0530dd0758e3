"""Access to a cluster: by which identity, in which namespaces, over which connection."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes_asyncio import config
from kubernetes_asyncio.client.configuration import Configuration

from binwright.kubernetes.api import Api
from binwright.kubernetes.events import EventRecorder
from binwright.kubernetes.settings import EVERY_NAMESPACE, KubernetesSettings
from binwright.protocol.errors import SettingsError
from binwright.runtime.run import background_tasks, must_not_end

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection to the API server, with the Events that are written over it."""

    api: Api
    recorder: EventRecorder


@contextlib.asynccontextmanager
async def connect(settings: KubernetesSettings, watches: int) -> AsyncIterator[Connection]:
    """Connect; at most `watches` may run at a time.

    Raises:
        SettingsError: The settings do not say how to reach a cluster.
    """
    configuration = await load_configuration(settings.kubeconfig)
    api = Api(configuration, settings.request_timeout_s, watches)
    recorder = EventRecorder(api)
    try:
        async with background_tasks(must_not_end(recorder.run())):
            yield Connection(api, recorder)
    finally:
        await api.close()


async def load_configuration(kubeconfig: Path | None) -> Any:
    """Return how to reach the cluster: from the file, or from the pod's service account.

    Raises:
        SettingsError: There is no such file, or this process does not run in a pod.
    """
    configuration = Configuration()
    try:
        if kubeconfig is not None:
            await config.load_kube_config(str(kubeconfig), client_configuration=configuration)
        else:
            config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException as exc:
        raise SettingsError(
            f"cannot configure access to Kubernetes: {exc}. Run in a pod with a service account, "
            "or set kubernetes.kubeconfig"
        ) from exc
    return configuration


def own_namespace(namespace: str | None) -> str:
    """Return the namespace to work in.

    Raises:
        SettingsError: None is given, and this process does not run in a pod.
    """
    if namespace is not None:
        return namespace
    try:
        return NAMESPACE_FILE.read_text().strip()
    except OSError as exc:
        raise SettingsError("kubernetes.namespace: needed outside of a pod") from exc


def watched_namespaces(settings: KubernetesSettings) -> list[str]:
    """Return the namespaces whose objects are watched; `""` stands for all namespaces.

    Raises:
        SettingsError: No namespace is configured, and this process does not run in a pod.
    """
    if settings.namespaces == EVERY_NAMESPACE:
        return [""]
    return list(settings.namespaces) or [own_namespace(settings.namespace)]
