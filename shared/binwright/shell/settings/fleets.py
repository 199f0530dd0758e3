"""Where consumers run, with the fleets that need to know more."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from binwright.shell.settings.section import Seconds, Section

Namespace = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
EVERY_NAMESPACE = ("*",)


class KubernetesSettings(Section):
    """Where the kubernetes fleet's Deployments are, and what is in them."""

    namespace: Namespace | None = None
    """Where everything is; unset: the pod's own namespace."""
    kubeconfig: Path | None = None
    """How to reach the cluster from outside; unset: as the pod's service account."""
    template: Annotated[str, Field(pattern=r"^[a-z0-9.-]{1,253}$")] = "binwright-consumer"
    """The ConfigMap whose `pod.yaml` is the template of a consumer's pod."""
    owner: str | None = None
    """The controller's own Deployment, with which its consumers vanish; unset: they stay."""
    groups: bool = False
    """Run every ConsumerGroup object there is, instead of the one group of these settings."""
    namespaces: tuple[Literal["*"] | Namespace, ...] = ()
    """Whose ConsumerGroup objects are run, with `groups`; `*`: all; unset: those of `namespace`."""
    request_timeout_s: Seconds = 10.0
    """How long one call to Kubernetes may take."""

    @model_validator(mode="after")
    def _namespaces_are_of_groups(self) -> Self:
        if self.namespaces and not self.groups:
            raise ValueError("namespaces is for ConsumerGroup objects: it needs groups = true")
        if "*" in self.namespaces and self.namespaces != EVERY_NAMESPACE:
            raise ValueError("namespaces: `*` is all there are, and stands alone")
        if twice := sorted({n for n in self.namespaces if self.namespaces.count(n) > 1}):
            raise ValueError(f"namespaces: named twice: {', '.join(twice)}")
        return self


class DockerSettings(Section):
    """What the docker fleet's containers are made from, and where."""

    socket: Path = Path("/var/run/docker.sock")
    """The engine's; whoever may use it is as mighty as root on that machine."""
    image: str = "binwright-consumer:0.1.0"
    """Of a consumer; pulled if the engine does not have it."""
    realm: Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$")] | None = None
    """Tells ours from other systems' containers; unset: our compose project, or `binwright`."""
    network: str | None = None
    """Which network they join; unset: our own container's, or the engine's default."""
    volumes: tuple[Annotated[str, Field(pattern=r"^[^:]+:/[^:]*(:[^:]+)?$")], ...] = ()
    """What they see of other file systems, `SOURCE:TARGET[:ro]` each."""
    environment: tuple[Annotated[str, Field(pattern=r"^[^=]+=")], ...] = ()
    """`NAME=VALUE` each, besides these settings, which they get as variables."""
    memory_bytes: Annotated[int, Field(ge=64_000_000)] | None = None
    """How much memory one may use; unset: as much as there is."""
    cpus: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """How many processors one may use; unset: all."""
    ends_with_controller: bool = False
    """A controller that is asked to end ends its consumers first; for one that is the only one."""
    request_timeout_s: Seconds = 30.0
    """How long one call to the engine may take."""
    pull_timeout_s: Seconds = 600.0
    """How long the image may take to come."""
