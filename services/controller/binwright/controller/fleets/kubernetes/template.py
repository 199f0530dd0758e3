"""Reads and checks the pod template for consumers, which the people of a namespace write."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

import orjson
import yaml

from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import TemplateRefused

CONTAINER = "consumer"
TEXT_BYTES, DEPTH, NUMBER_LENGTH = 256_000, 64, 100
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


class _Loader(yaml.SafeLoader):
    """Refuses what makes a short text a large value, or a slow one."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        """Compose a node, within `DEPTH`, that is no alias of another one."""
        if self.check_event(yaml.AliasEvent):  # ten lines of aliases can stand for terabytes
            raise yaml.YAMLError("aliases (`*name`) are not allowed: write the value again")
        self.depth += 1
        if self.depth > DEPTH:
            raise yaml.YAMLError(f"nested deeper than {DEPTH}")
        node = super().compose_node(parent, index)
        self.depth -= 1
        # A number in base 60 takes quadratic time.
        if _is_number(node) and len(node.value) > NUMBER_LENGTH:
            raise yaml.YAMLError(f"not a text, and longer than {NUMBER_LENGTH} characters")
        return node


def _is_number(node: yaml.Node | None) -> TypeGuard[yaml.ScalarNode]:
    return isinstance(node, yaml.ScalarNode) and not node.tag.endswith(":str")


@lru_cache(maxsize=64)
def parse_template(text: str, origin: str) -> Template:
    """Read a template from YAML; a long one takes a second.

    Raises:
        TemplateRefused: It is not a usable template; the message says what is wrong and where.
    """
    if (size := len(text.encode(errors="replace"))) > TEXT_BYTES:
        raise TemplateRefused(f"{origin}: has {size} bytes, {TEXT_BYTES} at most")
    try:
        pod = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as exc:
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
    try:
        packed = orjson.dumps(pod, option=orjson.OPT_SORT_KEYS)
    except TypeError as exc:
        raise TemplateRefused(f"{origin}: cannot be written as JSON: {exc}") from exc
    return Template(pod, origin, hashlib.sha256(packed).hexdigest()[:16])


def _faults(pod: object) -> Iterator[str]:
    if not isinstance(pod, dict) or not isinstance(pod.get("spec"), dict):
        yield "expected a mapping with `spec`, as a Deployment's `template` has it"
        return
    spec, metadata = pod["spec"], pod.get("metadata") or {}
    if not isinstance(metadata, dict) or not isinstance(metadata.get("labels") or {}, dict):
        yield "metadata, metadata.labels: must be mappings"
    yield from _faults_of_containers(spec.get("containers"))
    yield from _faults_of_volumes(spec.get("volumes") or [])
    if spec.get("restartPolicy", "Always") != "Always":
        yield "spec.restartPolicy: must be Always"
    if unknown := pod.keys() - {"metadata", "spec"}:
        yield f"unknown: {', '.join(sorted(map(str, unknown)))}"


def _faults_of_containers(containers: Any) -> Iterator[str]:
    if not _are_mappings(containers):
        yield "spec.containers: must be a list of mappings"
        return
    if CONTAINER not in [container.get("name") for container in containers]:
        yield f"spec.containers: one must be named `{CONTAINER}`"
    if not all(_are_mappings(container.get("env") or []) for container in containers):
        yield "spec.containers.env: must be a list of mappings"


def _faults_of_volumes(volumes: Any) -> Iterator[str]:
    if not _are_mappings(volumes):
        yield "spec.volumes: must be a list of mappings"
        return
    for kind in (kind for volume in volumes for kind in _REFUSED_VOLUMES if kind in volume):
        yield (
            f"spec.volumes: {kind}: a consumer keeps nothing of its own on volumes; to stage on "
            "one, name a persistentVolumeClaim that all consumers and Spark mount"
        )


def _are_mappings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)
