"""ScaledGroup objects for the groups of a comparison, as text with what they rest on."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from binwright.kubernetes.objects import Obj
from binwright.lab.shadow.ranking import ASSIGNED, SCALED, Comparison
from binwright.look.savings_text import share_text
from binwright.runtime.control_characters import visible
from binwright.scaler.keda.translation import KIND as KEDA_KIND
from binwright.scaler.keda.translation import Translation
from binwright.scaler.objects.spec import API_VERSION, KIND, config_from

NAME_LENGTH = 63
_OF_DEPLOYMENT = re.compile(r"(.+)-[a-z0-9]{5,10}-[a-z0-9]{5}")
_OF_STATEFUL_SET = re.compile(r"(.+)-[0-9]{1,9}")
BASES = {
    "given": "as it was given",
    "measured": "measured while the group was behind",
    "seen": "the most that one has read: if it sustains more, raise recordsPerSecond",
}


def keda_objects(text: str) -> list[Obj]:
    """Return the ScaledObjects in a YAML text; raise `yaml.YAMLError`."""
    documents = list(yaml.safe_load_all(text))
    objects = [one for one in documents if isinstance(one, dict)]
    listed = [one for each in objects for one in each.get("items") or [each]]
    return [one for one in listed if one.get("kind") == KEDA_KIND]


def workload_of(group: str, clients: Sequence[str]) -> Obj | None:
    """Return the workload whose pods a group's members are, by their names; None: they do not say.

    The names are instance ids or client ids. Of a Deployment's pods they end in two hashes, of a
    StatefulSet's in numbers that differ.
    """
    # Kafka's own default for the client id of a Java consumer.
    if not clients or any(name.startswith(f"consumer-{group}-") for name in clients):
        return None
    for kind, pattern in (("Deployment", _OF_DEPLOYMENT), ("StatefulSet", _OF_STATEFUL_SET)):
        found = [pattern.fullmatch(name) for name in clients]
        names = {one[1] for one in found if one is not None}
        if all(found) and len(names) == 1:
            return {"kind": kind, "name": names.pop()}
    return None


def object_name(group: str, taken: Iterable[str] = ()) -> str:
    """Return a name that Kubernetes accepts and no other object has."""
    name = re.sub(r"[^a-z0-9]+", "-", group.lower()).strip("-")[:NAME_LENGTH].strip("-") or "group"
    numbered, number, others = name, 1, set(taken)
    while numbered in others:
        number += 1
        numbered = f"{name[: NAME_LENGTH - 5]}-{number}"
    return numbered


def scaled_group(one: Comparison, sla_s: float, name: str, keda: Translation | None) -> str:
    """Return the object of a group that was simulated, in mode observe.

    Args:
        one: What its simulations cost.
        sla_s: Within which a record is to be read, seconds.
        name: Of the object, unless KEDA's has one.
        keda: The ScaledObject that it takes the place of.
    """
    past = one.past
    named = None if keda else workload_of(past.group, past.clients)
    spec: dict[str, Any] = {
        "group": past.group,
        "workload": named or {"kind": "Deployment", "name": name},
        "maxReplicas": len(past.recorded.partitions),
        **(keda.spec if keda else {}),
    }
    spec |= {
        "recordsPerSecond": round(one.capacity.records_per_s, 1),
        "slaSeconds": sla_s,
        "beforeReplicas": round(past.members_mean, 2),
        "mode": "observe",
    }
    capacity = f"{one.capacity.records_per_s:,.0f} records/s, {BASES[one.capacity.basis]}"
    minutes, share = one.own.replica_minutes, one.own.within_sla
    comments = [
        f"{past.members_mean:.1f} members on average; one sustains {capacity}",
        f"as it is: {minutes:,.0f} replica-minutes, {share:.2%} within {sla_s:g} s, simulated",
    ]
    for text, rule in (("as below", SCALED), ("with assigns: true", ASSIGNED)):
        if (cost := one.rules[rule]) is not None:
            saved = share_text(cost, one.own)
            comments.append(f"{text}: {saved}, {cost.within_sla:.2%} in time")
    if keda is None and named is None:
        comments.append("the workload is not known: its name here is made of the group's")
    return _written(name, spec, comments, keda)


def translated(keda: Translation) -> str:
    """Return the object of a ScaledObject whose group was not simulated, in mode observe."""
    spec = {**keda.spec, "mode": "observe"}
    return _written(keda.name, spec, ["the recording does not have this group"], keda)


def _written(name: str, spec: Obj, comments: Sequence[str], keda: Translation | None) -> str:
    config_from(spec, f"the ScaledGroup {name}")
    meta = {"name": keda.name if keda and keda.name else name}
    if keda is not None:
        if keda.namespace:
            meta["namespace"] = keda.namespace
        taken = f"takes the place of the ScaledObject {keda.name}, which is to be deleted"
        left_out = f"; without: {', '.join(keda.left_out)}" if keda.left_out else ""
        comments = [*comments, taken + left_out]
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": spec}
    lines = "".join(f"# {visible(comment)}\n" for comment in comments)
    return lines + yaml.safe_dump(document, sort_keys=False, allow_unicode=False)
