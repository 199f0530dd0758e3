"""Kubernetes objects, as JSON: their names, labels and owners."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic.alias_generators import to_camel

Obj = dict[str, Any]
"""A Kubernetes object, as JSON."""

DOMAIN = "binwright.dev"
GROUP_ANNOTATION = f"{DOMAIN}/group-name"
"""The group that a Deployment of the controller's belongs to."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An object that Events are about; what it owns is deleted along with it."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str

    @classmethod
    def from_object(cls, obj: Obj, api_version: str, kind: str) -> "Owner":
        """Return an object as an owner; version and kind are passed, because lists lack them."""
        meta = obj["metadata"]
        return cls(api_version, kind, meta["name"], meta["uid"], meta["namespace"])

    def reference(self) -> Obj:
        """Return the entry of `ownerReferences`."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
        }


def name_of(obj: Obj) -> str:
    """Return an object's name."""
    name: str = obj["metadata"]["name"]
    return name


def namespace_of(obj: Obj) -> str:
    """Return an object's namespace; empty for kinds that have none."""
    namespace: str = obj["metadata"].get("namespace", "")
    return namespace


def key_of(obj: Obj) -> tuple[str, str]:
    """Return an object's namespace and name, unique within its kind."""
    return namespace_of(obj), name_of(obj)


def age_of(obj: Obj) -> tuple[str, tuple[str, str]]:
    """Return what sorts objects, the oldest first; those of one second by their names."""
    created: str = obj["metadata"]["creationTimestamp"]
    return created, key_of(obj)


def label_of(obj: Obj, label: str) -> str:
    """Return a label's value; empty if the object does not have it."""
    value: str = obj["metadata"].get("labels", {}).get(label, "")
    return value


def now() -> str:
    """Return the current time as Kubernetes writes it (RFC 3339, UTC, seconds)."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def collection_path(root: str, namespace: str, plural: str) -> str:
    """Return the path of a kind's objects in a namespace; empty: in all namespaces."""
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def field_name(setting: str) -> str:
    """Return the name of a setting in an object: `recordsPerSecond` of `records_per_s`."""
    spelled = re.sub(r"_s$", "_seconds", re.sub(r"_per_s$", "_per_second", setting))
    return to_camel(spelled)


def renamed(fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the given fields of an object under our names; `names` has theirs -> ours."""
    return {ours: fields[theirs] for theirs, ours in names.items() if theirs in fields}
