"""The fields of a consumer's pod that a ConsumerGroup may set over the operator's template.

They give no right: neither an account, a Secret, a volume or the host, nor another program. What is
not listed here is refused. `deploy/restricted-templates` says the same to the API server.
"""

import re
from collections.abc import Collection, Container, Iterator, Mapping
from typing import Any

from binwright.controller.fleets.kubernetes.template import CONTAINER, Template, check_template
from binwright.kubernetes.objects import Obj
from binwright.kubernetes.settings import KubernetesSettings
from binwright.protocol.errors import TemplateRefused

SETTING = 'kubernetes.templates = "restricted"'
POD: Mapping[str, type] = {
    "affinity": dict,
    "nodeSelector": dict,
    "priorityClassName": str,
    "terminationGracePeriodSeconds": int,
    "tolerations": list,
    "topologySpreadConstraints": list,
}
"""Fields of a pod's spec, besides `containers`: where it runs, and how long it may take to end."""
RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Other resources are devices of the host."""
CONTROL_PLANE = ("node-role.kubernetes.io/", "CriticalAddonsOnly")
"""What keys of taints begin with that keep nodes for the cluster's own programs. A toleration
without a key tolerates these, too.
"""
NAMESPACES = ("namespaces", "namespaceSelector")
"""Fields of a term of `affinity` by which it counts pods of other namespaces. One that repels them
would keep them off nodes: the scheduler holds it against every later pod.
"""
VARIABLES = (
    r"^(BINWRIGHT_CONSUMER__[A-Z_]+|BINWRIGHT_LOG_(LEVEL|FORMAT)"
    r"|MALLOC_(ARENA_MAX|MMAP_THRESHOLD_|TRIM_THRESHOLD_))$"
)
"""Variables that tune the program: sizes and times of reading and staging, its log, its memory.

All others are refused: some load code (LD_*, PYTHON*), some name servers, files and keys.
"""
_SHOWN, _NAME_LENGTH = 10, 100


def check_patch(patch: object, origin: str, settings: KubernetesSettings) -> None:
    """Check that a template has only fields that an object may set, as the settings say.

    Raises:
        TemplateRefused: It has others; the message has the path of each.
    """
    if faults := list(_faults(patch, settings)):
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise TemplateRefused(
            f"{origin}: not allowed with {SETTING}: {'; '.join(faults[:_SHOWN])}{more}"
        )


def patched(template: Template, patch: Obj, origin: str) -> Template:
    """Return the operator's template with the fields of an object's, which `check_patch` passed.

    The operator's labels, annotations and `nodeSelector` stand, since policies and pools of nodes
    may go by them; the object's are added. Else mappings are merged, variables by their names, and
    the object's values replace the operator's.

    Raises:
        TemplateRefused: The result is not usable.
    """
    spec: Obj = dict(patch.get("spec", {}))
    changes: Obj = next(iter(spec.pop("containers", [])), {})
    containers = [
        _merged_container(each, changes) if each.get("name") == CONTAINER else each
        for each in template.pod["spec"]["containers"]
    ]
    if "nodeSelector" in spec:
        operators = template.pod["spec"].get("nodeSelector") or {}
        spec["nodeSelector"] = {**spec["nodeSelector"], **operators}
    pod = {
        "metadata": _merged(patch.get("metadata", {}), template.pod.get("metadata") or {}),
        "spec": {**_merged(template.pod["spec"], spec), "containers": containers},
    }
    return check_template(pod, f"{template.origin} with {origin}")


def _merged(under: Obj, over: Obj) -> Obj:
    both = {
        name: _merged(under[name], value)
        for name, value in over.items()
        if isinstance(value, dict) and isinstance(under.get(name), dict)
    }
    return {**under, **over, **both}


def _merged_container(under: Obj, over: Obj) -> Obj:
    env = over.get("env", [])
    named = {each["name"] for each in env}
    rest = [each for each in under.get("env") or [] if each.get("name") not in named]
    return {**_merged(under, over), "env": [*rest, *env]}


def _faults(patch: object, settings: KubernetesSettings) -> Iterator[str]:
    yield from _unknown(patch, "", {"metadata", "spec"})
    metadata, spec = _part(patch, "metadata"), _part(patch, "spec")
    yield from _unknown(metadata, "metadata.", {"labels", "annotations"})
    for named in ("labels", "annotations"):
        # Some give a pod rights: the role of a cloud, a network, a place behind a Service.
        yield from _unknown_names(
            _part(metadata, named), f"metadata.{named}.", settings.template_labels
        )
    yield from _unknown(spec, "spec.", {*POD, "containers"})
    if not isinstance(spec, dict):
        return
    for name, kind in POD.items():
        if name in spec and not isinstance(spec[name], kind):
            yield f"spec.{name} that is no {_KINDS[kind]}"
    priority = spec.get("priorityClassName")
    if isinstance(priority, str) and priority not in settings.template_priority_classes:
        yield f"spec.priorityClassName {priority[:_NAME_LENGTH]}"
    if any(_reaches_control_plane(each) for each in _listed(spec, "tolerations")):
        yield "spec.tolerations of the control plane"
    if any(name in term for term in _affinity_terms(spec.get("affinity")) for name in NAMESPACES):
        yield "spec.affinity of other namespaces"
    if "containers" in spec:
        yield from _faults_of_containers(spec["containers"])


def _affinity_terms(affinity: object) -> Iterator[Obj]:
    """Yield what an affinity says of other pods, as far as it has the form of one."""
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = _part(affinity, kind)
        terms = [*_listed(rules, "requiredDuringSchedulingIgnoredDuringExecution")]
        preferred = _listed(rules, "preferredDuringSchedulingIgnoredDuringExecution")
        terms += [_part(each, "podAffinityTerm") for each in preferred]
        yield from (each for each in terms if isinstance(each, dict))


def _reaches_control_plane(toleration: object) -> bool:
    """Whether a toleration, as far as it has the form of one, is for nodes of the cluster's own."""
    if not isinstance(toleration, dict):
        return False
    key = toleration.get("key") or ""
    return isinstance(key, str) and (not key or key.startswith(CONTROL_PLANE))


def _faults_of_containers(containers: object) -> Iterator[str]:
    match containers:
        case [{"name": str(name), **fields}] if name == CONTAINER:
            pass
        case _:
            yield f"spec.containers other than one named `{CONTAINER}`"
            return
    at = f"spec.containers.{CONTAINER}."
    yield from _unknown(fields, at, {"resources", "env"})
    resources = _part(fields, "resources")
    yield from _unknown(resources, f"{at}resources.", {"requests", "limits"})
    for kind in ("requests", "limits"):
        yield from _unknown(_part(resources, kind), f"{at}resources.{kind}.", RESOURCES)
    env = fields.get("env", [])
    if not isinstance(env, list):
        yield f"{at}env that is no {_KINDS[list]}"
        return
    for number, entry in enumerate(env):
        yield from _faults_of_variable(entry, f"{at}env.{number}")


def _faults_of_variable(entry: object, at: str) -> Iterator[str]:
    match entry:
        case {"name": str(name)} if not re.fullmatch(VARIABLES, name):
            yield f"{at} ({name[:_NAME_LENGTH]})"
        case {"name": str(), "value": str(value), **rest} if not rest:
            if "$(" in value:  # stands for another variable's value, which may be a secret
                yield f"{at}.value with $("
        case {"name": str(name)}:
            yield f"{at} ({name}) without a literal `value`, or with more"
        case _:
            yield f"{at} without a name"


_KINDS = {dict: "mapping", list: "list", int: "number", str: "text"}


def _part(value: object, name: str) -> Any:
    """Return a part of a mapping; an empty one if there is none."""
    return value.get(name, {}) if isinstance(value, dict) else {}


def _listed(value: object, name: str) -> list[Any]:
    """Return a list in a mapping; an empty one if there is none, or something else."""
    items = _part(value, name)
    return items if isinstance(items, list) else []


def _unknown(value: object, at: str, allowed: Container[str]) -> Iterator[str]:
    """Yield the paths of a mapping's fields that are not allowed."""
    if not isinstance(value, dict):
        yield f"{at.removesuffix('.') or 'a template'} that is no {_KINDS[dict]}"
        return
    yield from (f"{at}{str(name)[:_NAME_LENGTH]}" for name in value if name not in allowed)


def _unknown_names(value: object, at: str, allowed: Collection[str]) -> Iterator[str]:
    """Yield the paths of labels or annotations that are not allowed, by name or prefix."""
    prefixes = tuple(name for name in allowed if name.endswith("/"))
    under = (
        {str(name) for name in value if str(name).startswith(prefixes)}
        if isinstance(value, dict)
        else set()
    )
    yield from _unknown(value, at, {*allowed, *under})
