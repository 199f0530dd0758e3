"""Settings of access to Kubernetes, and of the fleet of Deployments."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from binwright.kubernetes.limits import LimitSettings
from binwright.protocol.section import Seconds, Section, check_distinct
from binwright.runtime.spark_url import has_token
from binwright.runtime.storage_path import storage_parts

Namespace = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
TaintKey = Annotated[str, Field(pattern=r"^([a-z0-9.-]{1,253}/)?[A-Za-z0-9._-]{1,63}$")]
LabelName = Annotated[
    str,
    Field(pattern=r"^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,62})$|^[a-z0-9.-]{1,253}/$"),
]
ClassName = Annotated[str, Field(pattern=r"^[a-z0-9.-]{1,253}$")]
EVERY_NAMESPACE = ("*",)
PLACEHOLDER = "{namespace}"
OF_KUBERNETES = "kube-"
"""What names of Kubernetes' own namespaces begin with; objects there are refused."""


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
    template_labels: tuple[LabelName, ...] = ("cost-center", "team")
    """Labels and annotations that a restricted template may have. A name that ends in `/` stands
    for all with that prefix.
    """
    template_priority_classes: tuple[ClassName, ...] = ("landing",)
    """Values of `priorityClassName` that a restricted template may have."""
    sinks: tuple[str, ...] = ()
    """Prefixes of `sink.path` and `sink.staging` that ConsumerGroups may name; `{namespace}` stands
    for theirs. Unset: what lies below `lake.path` and `staging.path`.
    """
    spark_servers: tuple[str, ...] = ()
    """Servers that `sink.spark` of ConsumerGroups may name, written in the same way; `{namespace}`
    as in `sinks`. They get the token of `lake.token_file`. Unset: those of `lake.spark`.
    """
    group_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._{}-]{0,100}$")] = ""
    """What the names of ConsumerGroups' groups begin with, as in `"{namespace}."`."""
    node_drains: bool = False
    """Replace consumers before their nodes are drained or end, and hold evictions back until then;
    needs the right to read nodes.
    """
    ending_taints: tuple[TaintKey, ...] = (
        "ToBeDeletedByClusterAutoscaler",
        "aws-node-termination-handler/asg-lifecycle-termination",
        "aws-node-termination-handler/rebalance-recommendation",
        "aws-node-termination-handler/scheduled-maintenance",
        "aws-node-termination-handler/spot-itn",
        "cloud.google.com/impending-node-termination",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "node.cloudprovider.kubernetes.io/shutdown",
        "node.kubernetes.io/out-of-service",
    )
    """With `node_drains`: keys of taints that announce a node's end; a cordon does so, too."""
    limits: LimitSettings = LimitSettings()
    """What the objects of one namespace may have."""
    request_timeout_s: Seconds = 10.0
    """How long one call to Kubernetes may take."""

    @field_validator("sinks")
    @classmethod
    def _are_plain(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for prefix in value:
            if storage_parts(in_namespace(prefix, "n")) is None:
                raise ValueError(
                    f"{prefix}: expected an absolute path or SCHEME://STORE/PATH, without `..` and "
                    f"characters that are escaped; {PLACEHOLDER} may stand in it"
                )
        return value

    @field_validator("spark_servers")
    @classmethod
    def _are_servers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(has_token(server) for server in value):
            raise ValueError("holds a token: set lake.token_file instead")
        for server in value:
            if not server.startswith("sc://") or "," in server:
                raise ValueError(f"{server}: expected one Spark Connect address, sc://HOST:PORT")
        return value

    @field_validator("group_prefix")
    @classmethod
    def _ends_the_namespace(cls, value: str) -> str:
        """Names of namespaces have no dots, and may begin with each other."""
        if re.search(r"[{}]", value.replace(f"{PLACEHOLDER}.", "").replace(f"{PLACEHOLDER}_", "")):
            raise ValueError(f"expected {PLACEHOLDER}. or {PLACEHOLDER}_, or no braces")
        return value

    @model_validator(mode="after")
    def _namespaces_are_distinct(self) -> Self:
        if "*" in self.namespaces and self.namespaces != EVERY_NAMESPACE:
            raise ValueError("namespaces: `*` means all of them, and stands alone")
        if own := [name for name in self.namespaces if name.startswith(OF_KUBERNETES)]:
            raise ValueError(f"namespaces: {', '.join(own)}: of Kubernetes itself")
        check_distinct(self.namespaces, "namespaces: ")
        return self


def namespace_refusal(namespace: str) -> str:
    """Return why objects of a namespace are refused; empty: they are not."""
    if not namespace.startswith(OF_KUBERNETES):
        return ""
    return f"namespace {namespace} is of Kubernetes itself; create the object in another one"


def in_namespace(text: str, namespace: str) -> str:
    """Return a setting's text as it is meant in a namespace."""
    return text.replace(PLACEHOLDER, namespace)


class ScaledObjectSettings(Section):
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
