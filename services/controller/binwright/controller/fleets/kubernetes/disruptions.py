"""Which slots' pods will end or should: their nodes go, their template has changed, or an eviction.

A node goes when it is cordoned, or has a taint that announces its end (`kubernetes.ending_taints`).
A taint of effect NoExecute ends the pods that do not tolerate it for ever.
"""

from collections.abc import Collection, Iterable, Mapping

from binwright.controller.fleets.kubernetes.template import CONTAINER, Template
from binwright.kubernetes.objects import Obj, name_of
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Disruption

EVICTED = "DisruptionTarget"
"""A pod's condition: the platform ends it, and why."""


def find_disruptions(
    pods: Iterable[tuple[Slot, Obj]],
    nodes: Mapping[str, Obj],
    taints: Collection[str],
    changes: Mapping[Slot, str],
) -> dict[Slot, Disruption]:
    """Return what disrupts slots; one that has a pod which stays is not evicted.

    Args:
        pods: Of the slots; several of one slot while one pod replaces another.
        nodes: By name, those that are known.
        taints: Keys of taints that announce a node's end, with any effect.
        changes: What has changed in the templates of slots that run by an older one, a clause.
    """
    evicted: dict[Slot, Disruption] = {}
    disruptions = {slot: Disruption("roll", change) for slot, change in changes.items()}
    active = set[Slot]()
    for slot, pod in pods:
        if pod["metadata"].get("deletionTimestamp"):
            if reason := eviction_reason(pod):
                evicted[slot] = Disruption("evicted", reason)
            continue
        active.add(slot)
        node = nodes.get(pod["spec"].get("nodeName", ""))
        if node is not None and (reason := end_reason(node, pod, taints)):
            disruptions[slot] = Disruption("node", reason)
    return {**{slot: why for slot, why in evicted.items() if slot not in active}, **disruptions}


def end_reason(node: Obj, pod: Obj, taints: Collection[str]) -> str:
    """Return why this pod will end with its node, or because of it, a clause; empty: it will not.

    Args:
        node: Of the pod, as `kept_of_node` has it.
        pod: The pod; its tolerations count.
        taints: Keys of taints that announce a node's end, with any effect.
    """
    name, spec = name_of(node), node["spec"]
    present = spec.get("taints") or ()
    for taint in present:
        if taint["key"] in taints:
            return f"node {name} is about to end (taint {taint['key']})"
    if spec.get("unschedulable"):
        return f"node {name} is cordoned"
    tolerations = pod["spec"].get("tolerations") or ()
    for taint in present:
        if taint["effect"] == "NoExecute" and not any(_tolerates(t, taint) for t in tolerations):
            return f"node {name} ends its pods (taint {taint['key']})"
    return ""


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    """Whether a pod with this toleration may stay for ever."""
    if "tolerationSeconds" in toleration or toleration.get("effect", "") not in ("", "NoExecute"):
        return False
    exists: bool = toleration.get("operator", "Equal") == "Exists"
    if not toleration.get("key"):
        return exists
    same_key: bool = toleration["key"] == taint["key"]
    same_value: bool = toleration.get("value", "") == taint.get("value", "")
    return same_key and (exists or same_value)


def eviction_reason(pod: Obj) -> str:
    """Return why the platform has asked a pod to end, a clause; empty: it has not said."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == EVICTED and condition["status"] == "True":
            return f"its pod is evicted ({condition.get('reason', EVICTED)})"
    return ""


def kept_of_node(node: Obj) -> Obj:
    """Return what is read of a node: the rest is long, and changes with each of its reports."""
    spec = node.get("spec", {})
    kept = {key: spec[key] for key in ("taints", "unschedulable") if key in spec}
    return {"metadata": {"name": name_of(node), "uid": node["metadata"]["uid"]}, "spec": kept}


def template_change(deployment: Obj, template: Template) -> str:
    """Return what changes for a Deployment of an older template, a clause."""
    before, after = _image(deployment["spec"]["template"]), _image(template.pod)
    if before != after:
        return f"its image changes from {before} to {after}"
    return "its template or its settings change"


def _image(pod: Obj) -> str:
    containers = pod["spec"]["containers"]
    image: str = next(c.get("image", "") for c in containers if c["name"] == CONTAINER)
    return image
