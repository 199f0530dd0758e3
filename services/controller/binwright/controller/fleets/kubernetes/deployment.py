"""Builds a slot's Deployment: its name, its labels and its pod, from the operator's template."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson
import yaml

from binwright.kubernetes.api import FIELD_MANAGER
from binwright.kubernetes.objects import DOMAIN, GROUP_ANNOTATION, Obj, Owner, label_of
from binwright.protocol.errors import TemplateRefused
from binwright.protocol.model import Slot

GROUP_LABEL, SLOT_LABEL = f"{DOMAIN}/group", f"{DOMAIN}/slot"
TEMPLATE_ANNOTATION = f"{DOMAIN}/template"
MANAGED_SELECTOR = f"app.kubernetes.io/managed-by={FIELD_MANAGER}"
CONTAINER = "consumer"
SLOT_VARIABLE = "SLOT"
TEMPLATE_KEY = "pod.yaml"
STEADY_S = 3  # a pod that crashes sooner counts as neither renewed nor recovered
_NAME_LENGTH = 40  # leaves room for the slot and the suffixes of ReplicaSet and pod: 63 in all
_REFUSED_VOLUMES = ("ephemeral", "hostPath")
"""Volumes that would tie a slot to a node, or to its pod. A claim is allowed: all consumers share
the one that the template names, and it may be the staging directory that Spark reaches, too."""


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template for consumers.

    Attributes:
        pod: Metadata and spec, as in a Deployment's `template`.
        origin: Where the template was read, for messages.
        digest: Hash of `pod`.
    """

    pod: Obj
    origin: str
    digest: str


def resource_name(text: str) -> str:
    """Return a valid Kubernetes name for a text; different texts have different names."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if plain == text and len(text) <= _NAME_LENGTH:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{plain[: _NAME_LENGTH - 9].strip('-') or 'group'}-{digest}"


def parse_template(text: str, origin: str) -> Template:
    """Read a template from YAML.

    Raises:
        TemplateRefused: It is not a usable template; the message says what is wrong and where.
    """
    try:
        pod = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise TemplateRefused(f"{origin}: not YAML: {exc}") from exc
    return check_template(pod, origin)


def check_template(pod: object, origin: str) -> Template:
    """Return a template after checking its structure; the API server checks the rest.

    Raises:
        TemplateRefused: It is not a usable template; the message says what is wrong and where.
    """
    if faults := list(_faults(pod)):
        raise TemplateRefused(f"{origin}: {'; '.join(faults)}")
    assert isinstance(pod, dict)
    packed = orjson.dumps(pod, option=orjson.OPT_SORT_KEYS)
    return Template(pod, origin, hashlib.sha256(packed).hexdigest()[:16])


def _faults(pod: object) -> list[str]:
    if not isinstance(pod, dict) or not isinstance(pod.get("spec"), dict):
        return ["expected a mapping with `spec`, as a Deployment's `template` has it"]
    spec, faults = pod["spec"], []
    containers = spec.get("containers")
    named = [c.get("name") for c in containers or () if isinstance(c, dict)]
    if CONTAINER not in named:
        faults.append(f"spec.containers: one must be named `{CONTAINER}`")
    if spec.get("restartPolicy", "Always") != "Always":
        faults.append("spec.restartPolicy: must be Always")
    faults += [
        f"spec.volumes: {kind}: a consumer keeps nothing of its own on volumes; to stage "
        "on one, name a persistentVolumeClaim that all consumers and Spark mount"
        for volume in spec.get("volumes") or ()
        for kind in _REFUSED_VOLUMES
        if isinstance(volume, dict) and kind in volume
    ]
    if unknown := pod.keys() - {"metadata", "spec"}:
        faults.append(f"unknown: {', '.join(sorted(map(str, unknown)))}")
    return faults


@dataclass(frozen=True, slots=True)
class DeploymentSpec:
    """What the Deployments of one group are made from."""

    group: str
    namespace: str
    owner: Owner | None = None
    environment: Mapping[str, str] = field(default_factory=dict)  # of every consumer

    @property
    def resource_name(self) -> str:
        """Return the group's name, made valid for labels and names."""
        return resource_name(self.group)

    def name(self, slot: Slot) -> str:
        """Return the name of a slot's Deployment."""
        return f"{self.resource_name}-consumer-{slot}"

    def labels(self) -> dict[str, str]:
        """Return the labels of all Deployments and pods of the group."""
        return {
            "app.kubernetes.io/name": "binwright",
            "app.kubernetes.io/component": "consumer",
            "app.kubernetes.io/part-of": "binwright",
            "app.kubernetes.io/instance": self.resource_name,
            "app.kubernetes.io/managed-by": FIELD_MANAGER,
            GROUP_LABEL: self.resource_name,
        }

    def deployment(self, slot: Slot, template: Template) -> Obj:
        """Return the fields of a slot's Deployment that the controller manages."""
        labels = {**self.labels(), SLOT_LABEL: str(slot)}
        annotations = {GROUP_ANNOTATION: self.group, TEMPLATE_ANNOTATION: template.digest}
        metadata: Obj = {
            "name": self.name(slot),
            "namespace": self.namespace,
            "labels": labels,
            "annotations": annotations,
        }
        if self.owner is not None:
            metadata["ownerReferences"] = [self.owner.reference()]
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": 1,
                "minReadySeconds": STEADY_S,
                "revisionHistoryLimit": 1,
                "strategy": {"type": "Recreate"},  # a slot may have only one process at a time
                "selector": {
                    "matchLabels": {GROUP_LABEL: self.resource_name, SLOT_LABEL: str(slot)}
                },
                "template": self._pod(slot, template, labels),
            },
        }

    def _pod(self, slot: Slot, template: Template, labels: Mapping[str, str]) -> Obj:
        meta = template.pod.get("metadata") or {}
        metadata = {**meta, "labels": {**(meta.get("labels") or {}), **labels}}
        spec = template.pod["spec"]
        containers = [
            self._with_environment(slot, c) if c.get("name") == CONTAINER else c
            for c in spec["containers"]
        ]
        return {"metadata": metadata, "spec": {**spec, "containers": containers}}

    def _with_environment(self, slot: Slot, container: Obj) -> Obj:
        """Add the slot and the group's settings, before variables that may refer to them."""
        ours = {**self.environment, SLOT_VARIABLE: str(slot)}
        rest = [v for v in container.get("env") or () if v.get("name") not in ours]
        return {**container, "env": [*({"name": k, "value": v} for k, v in ours.items()), *rest]}


def slot_of(obj: Obj) -> Slot | None:
    """Return the slot of a Deployment or pod; None if its label is not a number."""
    text = label_of(obj, SLOT_LABEL)
    return Slot(int(text)) if text.isascii() and text.isdigit() else None


def is_available(deployment: Obj) -> bool:
    """Whether a pod of the Deployment's newest generation is ready."""
    status = deployment.get("status", {})
    newest = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    return bool(newest and status.get("availableReplicas") and status.get("updatedReplicas"))
