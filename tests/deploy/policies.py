"""Evaluates the manifests in `deploy/`: which pod reaches which, and which account may what."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from binwright.controller.fleets.kubernetes.deployment import DeploymentSpec
from binwright.controller.fleets.kubernetes.template import parse_template
from binwright.protocol.model import Slot

DEPLOY = Path(__file__).parents[2] / "deploy"
Obj = dict[str, Any]
NAME = "kubernetes.io/metadata.name"


def objects(*files: str) -> list[Obj]:
    """Return the objects of these files."""
    return [each for file in files for each in yaml.safe_load_all((DEPLOY / file).read_text())]


@dataclass(frozen=True, slots=True)
class Place:
    """A pod, or what is not in the cluster."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)


OUTSIDE = Place("")


def pod_of(file: str, name: str, namespace: str = "binwright") -> Place:
    """Return the pod of a Deployment."""
    (template,) = (
        each["spec"]["template"]
        for each in objects(file)
        if each["kind"] == "Deployment" and each["metadata"]["name"] == name
    )
    return Place(namespace, template["metadata"]["labels"])


def consumer_of(namespace: str) -> Place:
    """Return a consumer's pod, as the controller makes it from the shipped template."""
    (configmap,) = (each for each in objects("consumers/consumer.yaml") if "data" in each)
    template = parse_template(configmap["data"]["pod.yaml"], "the shipped one")
    made = DeploymentSpec("orders", namespace).deployment(Slot(0), template)
    return Place(namespace, made["spec"]["template"]["metadata"]["labels"])


def executor() -> Place:
    """Return the pod of an executor."""
    found = objects("overlays/production/spark/executors.yaml")
    (configmap,) = (each for each in found if "data" in each)
    return Place(
        "binwright-spark", yaml.safe_load(configmap["data"]["pod.yaml"])["metadata"]["labels"]
    )


# --- network policies -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Network:
    """Namespaces with their labels, and each one's policies."""

    namespaces: Mapping[str, Mapping[str, str]]
    policies: Mapping[str, Iterable[Obj]]

    def reaches(self, source: Place, target: Place, port: int) -> bool:
        """Whether policies let a TCP connection through, at both ends."""
        out = self._permits("Egress", source, target, port)
        return out and self._permits("Ingress", target, source, port)

    def _permits(self, direction: str, pod: Place, peer: Place, port: int) -> bool:
        selecting = [
            policy["spec"]
            for policy in self.policies.get(pod.namespace, ())
            if direction in policy["spec"]["policyTypes"]
            and _selects(policy["spec"]["podSelector"], pod.labels)
        ]
        if not selecting:
            return True
        word = {"Egress": "to", "Ingress": "from"}[direction]
        return any(
            _has_port(rule, port) and self._is_peer(rule.get(word), peer, pod.namespace)
            for spec in selecting
            for rule in spec.get(direction.lower(), ())
        )

    def _is_peer(self, peers: list[Obj] | None, peer: Place, own: str) -> bool:
        if peers is None:
            return True
        return any(self._matches(each, peer, own) for each in peers)

    def _matches(self, wanted: Obj, peer: Place, own: str) -> bool:
        assert wanted.keys() <= {"podSelector", "namespaceSelector"}, "not evaluated here"
        if peer == OUTSIDE:
            return False
        if "namespaceSelector" in wanted:
            labels = {NAME: peer.namespace, **self.namespaces[peer.namespace]}
            near = _selects(wanted["namespaceSelector"], labels)
        else:
            near = peer.namespace == own
        return near and _selects(wanted.get("podSelector", {}), peer.labels)


def _has_port(rule: Obj, port: int) -> bool:
    ports = rule.get("ports")
    return ports is None or any(
        each.get("protocol", "TCP") == "TCP"
        and each["port"] <= port <= each.get("endPort", each["port"])
        for each in ports
    )


def _selects(selector: Obj, labels: Mapping[str, str]) -> bool:
    assert selector.keys() <= {"matchLabels", "matchExpressions"}, "not evaluated here"
    for each in selector.get("matchExpressions", ()):
        assert each["operator"] == "In", "not evaluated here"
        if labels.get(each["key"]) not in each["values"]:
            return False
    return all(labels.get(name) == value for name, value in selector.get("matchLabels", {}).items())


# --- rights ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one kind of object, or on some names of it."""

    resource: str  # GROUP/KIND; of the core group, KIND
    verb: str
    names: tuple[str, ...] = ()


def rights_of(account: str, made: Iterable[Obj]) -> Iterator[Right]:
    """Yield what an account may by the bindings among these objects, wherever they are."""
    every = list(made)
    roles = {
        (each["kind"], each["metadata"]["name"]): each
        for each in every
        if each["kind"] in {"Role", "ClusterRole"}
    }
    for binding in every:
        if binding["kind"] not in {"RoleBinding", "ClusterRoleBinding"}:
            continue
        if not any(subject["name"] == account for subject in binding["subjects"]):
            continue
        role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for kind in rule["resources"]:
                    for verb in rule["verbs"]:
                        names = tuple(rule.get("resourceNames", ()))
                        yield Right(f"{group}/{kind}".lstrip("/"), verb, names)
