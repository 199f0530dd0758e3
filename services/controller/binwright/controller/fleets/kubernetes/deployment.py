"""Builds a slot's Deployment: its name, its labels and its pod, from the operator's template."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import orjson

from binwright.controller.fleets.kubernetes.template import CONTAINER, Template
from binwright.kubernetes.api import FIELD_MANAGER
from binwright.kubernetes.objects import DOMAIN, GROUP_ANNOTATION, Obj, Owner, label_of
from binwright.protocol.model import Slot

GROUP_LABEL, SLOT_LABEL = f"{DOMAIN}/group", f"{DOMAIN}/slot"
TEMPLATE_ANNOTATION = f"{DOMAIN}/template"
ENVIRONMENT_ANNOTATION = f"{DOMAIN}/environment"
MANAGED_SELECTOR = f"app.kubernetes.io/managed-by={FIELD_MANAGER}"
SLOT_VARIABLE = "SLOT"
TEMPLATE_KEY = "pod.yaml"
STEADY_S = 3  # a pod that crashes sooner counts as neither renewed nor recovered
_NAME_LENGTH = 40  # leaves room for the slot and the suffixes of ReplicaSet and pod: 63 in all


def resource_name(text: str) -> str:
    """Return a valid Kubernetes name for a text; different texts have different names."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if plain == text and len(text) <= _NAME_LENGTH:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{plain[: _NAME_LENGTH - 9].strip('-') or 'group'}-{digest}"


@dataclass(frozen=True)
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

    @cached_property
    def environment_digest(self) -> str:
        """Return the hash of the variables that every consumer gets."""
        packed = orjson.dumps(dict(self.environment), option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(packed).hexdigest()[:16]

    def has_environment(self, deployment: Obj) -> bool:
        """Whether a Deployment has these variables; one that does not tell counts as such."""
        own, annotations = self.environment_digest, deployment["metadata"].get("annotations", {})
        digest: str = annotations.get(ENVIRONMENT_ANNOTATION, own)
        return digest == own

    def is_current(self, deployment: Obj, template: Template) -> bool:
        """Whether a Deployment is made from this template, with these variables."""
        return digest_of(deployment) == template.digest and self.has_environment(deployment)

    def deployment(self, slot: Slot, template: Template) -> Obj:
        """Return the fields of a slot's Deployment that the controller manages."""
        labels = {**self.labels(), SLOT_LABEL: str(slot)}
        annotations = {
            GROUP_ANNOTATION: self.group,
            TEMPLATE_ANNOTATION: template.digest,
            ENVIRONMENT_ANNOTATION: self.environment_digest,
        }
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


def digest_of(deployment: Obj) -> str:
    """Return the hash of the template that a Deployment is made from; empty: it has none."""
    digest: str = deployment["metadata"].get("annotations", {}).get(TEMPLATE_ANNOTATION, "")
    return digest


def is_available(deployment: Obj) -> bool:
    """Whether a pod of the Deployment's newest generation is ready."""
    status = deployment.get("status", {})
    newest = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    return bool(newest and status.get("availableReplicas") and status.get("updatedReplicas"))
