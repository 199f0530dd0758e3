"""A slot as a Deployment: names, labels, and the pod template that a person gave."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson
import yaml

from binwright.controller.kube.api import Obj
from binwright.core.errors import TemplateRefused
from binwright.core.model import Slot

MANAGER = "binwright-controller"
DOMAIN = "binwright.dev"
GROUP_LABEL, SLOT_LABEL = f"{DOMAIN}/group", f"{DOMAIN}/slot"
GROUP_NOTE, TEMPLATE_NOTE = f"{DOMAIN}/group-name", f"{DOMAIN}/template"
MANAGED = f"app.kubernetes.io/managed-by={MANAGER}"
CONTAINER = "consumer"
SLOT_VARIABLE = "SLOT"
TEMPLATE_KEY = "pod.yaml"
STEADY_S = 3  # a pod that crashes at once must not count as renewed, or recovered
_NAME_LENGTH = 40  # room for the slot, and for what the ReplicaSet and the pod add: 63 in all
_KEEPING = ("ephemeral", "hostPath")
"""Volumes that would tie a slot to a node, or to its pod. A claim is one for all consumers: the
template names it, so they share it, and it may be the staging place that Spark reaches, too."""


@dataclass(frozen=True, slots=True)
class Template:
    """What a consumer's pod is made from."""

    pod: Obj  # metadata and spec, as in a Deployment's `template`
    origin: str  # where it came from, for people
    digest: str


@dataclass(frozen=True, slots=True)
class Owner:
    """Whoever the Deployments vanish with: the controller's Deployment, or a group object."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str

    @classmethod
    def of(cls, obj: Obj, api_version: str, kind: str) -> "Owner":
        """Return an object as an owner; lists leave version and kind out, so they are given."""
        meta = obj["metadata"]
        return cls(api_version, kind, meta["name"], meta["uid"], meta["namespace"])

    def reference(self) -> Obj:
        """Return it as what it owns names it."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
        }


def short(text: str) -> str:
    """Return a name that Kubernetes takes, the same for the same text, another for another."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if plain == text and len(text) <= _NAME_LENGTH:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{plain[: _NAME_LENGTH - 9].strip('-') or 'group'}-{digest}"


def parse(text: str, origin: str) -> Template:
    """Read a template from YAML.

    Raises:
        TemplateRefused: It is not one; says what is wrong and where.
    """
    try:
        pod = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise TemplateRefused(f"{origin}: not YAML: {exc}") from exc
    return checked(pod, origin)


def checked(pod: object, origin: str) -> Template:
    """Return a template whose shape is right; the API server checks the rest.

    Raises:
        TemplateRefused: It cannot be used; says what is wrong and where.
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
        for kind in _KEEPING
        if isinstance(volume, dict) and kind in volume
    ]
    if unknown := pod.keys() - {"metadata", "spec"}:
        faults.append(f"unknown: {', '.join(sorted(map(str, unknown)))}")
    return faults


@dataclass(frozen=True, slots=True)
class Shape:
    """How the Deployments of one group look."""

    group: str
    namespace: str
    owner: Owner | None = None
    environment: Mapping[str, str] = field(default_factory=dict)  # of every consumer

    @property
    def short(self) -> str:
        """Return the group's name as labels and names may hold it."""
        return short(self.group)

    def name(self, slot: Slot) -> str:
        """Return the name of a slot's Deployment."""
        return f"{self.short}-consumer-{slot}"

    def labels(self) -> dict[str, str]:
        """Return what all Deployments and pods of the group bear."""
        return {
            "app.kubernetes.io/name": "binwright",
            "app.kubernetes.io/component": "consumer",
            "app.kubernetes.io/part-of": "binwright",
            "app.kubernetes.io/instance": self.short,
            "app.kubernetes.io/managed-by": MANAGER,
            GROUP_LABEL: self.short,
        }

    def deployment(self, slot: Slot, template: Template) -> Obj:
        """Return the fields of a slot's Deployment that are ours to decide."""
        own = {**self.labels(), SLOT_LABEL: str(slot)}
        notes = {GROUP_NOTE: self.group, TEMPLATE_NOTE: template.digest}
        metadata: Obj = {
            "name": self.name(slot),
            "namespace": self.namespace,
            "labels": own,
            "annotations": notes,
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
                "strategy": {"type": "Recreate"},  # two processes of a slot would fence each other
                "selector": {"matchLabels": {GROUP_LABEL: self.short, SLOT_LABEL: str(slot)}},
                "template": self._pod(slot, template, own),
            },
        }

    def _pod(self, slot: Slot, template: Template, own: Mapping[str, str]) -> Obj:
        given = template.pod.get("metadata") or {}
        metadata = {**given, "labels": {**(given.get("labels") or {}), **own}}
        spec = template.pod["spec"]
        containers = [
            self._told(slot, c) if c.get("name") == CONTAINER else c for c in spec["containers"]
        ]
        return {"metadata": metadata, "spec": {**spec, "containers": containers}}

    def _told(self, slot: Slot, container: Obj) -> Obj:
        """Give the consumer its slot and its group's settings, before what may refer to them."""
        ours = {**self.environment, SLOT_VARIABLE: str(slot)}
        rest = [v for v in container.get("env") or () if v.get("name") not in ours]
        return {**container, "env": [*({"name": k, "value": v} for k, v in ours.items()), *rest]}


def slot_of(obj: Obj) -> Slot | None:
    """Return the slot that a Deployment or pod is of; None if its label is no number."""
    text = obj["metadata"].get("labels", {}).get(SLOT_LABEL, "")
    return Slot(int(text)) if text.isascii() and text.isdigit() else None


def is_available(deployment: Obj) -> bool:
    """Whether the pod of the Deployment's newest form is ready."""
    status = deployment.get("status", {})
    newest = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    return bool(newest and status.get("availableReplicas") and status.get("updatedReplicas"))
