"""Settings of the fleets that run consumers: `[kubernetes]` and `[docker]`."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from binwright.runtime.settings.section import Seconds, Section

Namespace = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
EVERY_NAMESPACE = ("*",)


class KubernetesSettings(Section):
    """The kubernetes fleet: its cluster, its Deployments, and ConsumerGroup objects."""

    namespace: Namespace | None = None
    """The namespace of the Deployments; unset: the pod's own."""
    kubeconfig: Path | None = None
    """File with access to the cluster from outside; unset: the pod's service account."""
    template: Annotated[str, Field(pattern=r"^[a-z0-9.-]{1,253}$")] = "binwright-consumer"
    """The ConfigMap whose key `pod.yaml` is the template of a consumer's pod."""
    owner: str | None = None
    """The controller's Deployment; consumers are deleted along with it; unset: they stay."""
    groups: bool = False
    """Lead the groups of all ConsumerGroup objects instead of the one group of these settings."""
    namespaces: tuple[Literal["*"] | Namespace, ...] = ()
    """With `groups` or `scaler.objects`: the objects' namespaces; `*`: all; unset: `namespace`."""
    request_timeout_s: Seconds = 10.0
    """How long one call to Kubernetes may take."""

    @model_validator(mode="after")
    def _namespaces_are_distinct(self) -> Self:
        if "*" in self.namespaces and self.namespaces != EVERY_NAMESPACE:
            raise ValueError("namespaces: `*` means all of them, and stands alone")
        if twice := sorted({n for n in self.namespaces if self.namespaces.count(n) > 1}):
            raise ValueError(f"namespaces: named twice: {', '.join(twice)}")
        return self


class DockerSettings(Section):
    """The docker fleet: its engine, and what its containers are made from."""

    socket: Path = Path("/var/run/docker.sock")
    """The engine's socket; access to it is as good as root on that machine."""
    image: str = "binwright-consumer:0.1.0"
    """The consumers' image; pulled if the engine does not have it."""
    project: Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$")] | None = None
    """Separates these containers from other systems'; unset: compose's project, or `binwright`."""
    network: str | None = None
    """The containers' network; unset: the controller's own, or the engine's default."""
    volumes: tuple[Annotated[str, Field(pattern=r"^[^:]+:/[^:]*(:[^:]+)?$")], ...] = ()
    """Volumes and directories to mount, `SOURCE:TARGET[:ro]` each."""
    environment: tuple[Annotated[str, Field(pattern=r"^[^=]+=")], ...] = ()
    """Variables `NAME=VALUE`, in addition to the settings that consumers read."""
    memory_bytes: Annotated[int, Field(ge=64_000_000)] | None = None
    """Memory limit of a container, bytes; unset: none."""
    cpus: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """CPU limit of a container; unset: none."""
    ends_with_controller: bool = False
    """On SIGTERM the controller ends its consumers first; only for a single controller."""
    request_timeout_s: Seconds = 30.0
    """How long one call to the engine may take."""
    pull_timeout_s: Seconds = 600.0
    """How long the pull of the image may take."""

    @model_validator(mode="before")
    @classmethod
    def _accept_old_name(cls, given: Any) -> Any:
        """Accept `project` by its name in version 0.1, `realm`, with a warning."""
        if not isinstance(given, Mapping) or "realm" not in given:
            return given
        if "project" in given:
            raise ValueError("project and realm are the same setting: remove realm, its old name")
        warnings.warn(
            "docker.realm is deprecated: rename it to docker.project", FutureWarning, stacklevel=2
        )
        return {"project" if name == "realm" else name: value for name, value in given.items()}
