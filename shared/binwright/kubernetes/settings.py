"""Settings of access to Kubernetes, and of the fleet of Deployments."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from binwright.runtime.settings import Seconds, Section, check_distinct

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
    templates: Literal["restricted", "any"] = "restricted"
    """What `spec.template` of a ConsumerGroup is: some fields, over those of the ConfigMap's
    template, that give no right; or a whole pod, with any right that its namespace has.
    """
    request_timeout_s: Seconds = 10.0
    """How long one call to Kubernetes may take."""

    @model_validator(mode="after")
    def _namespaces_are_distinct(self) -> Self:
        if "*" in self.namespaces and self.namespaces != EVERY_NAMESPACE:
            raise ValueError("namespaces: `*` means all of them, and stands alone")
        check_distinct(self.namespaces, "namespaces: ")
        return self


class ScaledObjects(Section):
    """What others than the scaler read of `[scaler]`: whether it scales objects."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    objects: bool = False
    """Scale the workloads of ScaledGroup objects, in the namespaces of `[kubernetes]`."""


def check_namespaces(kubernetes: KubernetesSettings, scaled_objects: bool) -> None:
    """Raise `ValueError` if namespaces are named, and no program looks for objects in them."""
    if kubernetes.namespaces and not (kubernetes.groups or scaled_objects):
        raise ValueError(
            "kubernetes.namespaces is for objects: it needs kubernetes.groups = true or "
            "scaler.objects = true"
        )
