"""From KEDA's ScaledObjects with its own Kafka trigger to specs of ScaledGroups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import SettingsError
from binwright.scaler.objects.spec import config_from

KIND = "ScaledObject"
TRIGGER_KINDS = frozenset({"kafka", "apache-kafka"})
LAG_THRESHOLD = 10.0
"""KEDA's, where a trigger gives none."""
PAUSED_ANNOTATION = "autoscaling.keda.sh/paused"
SPEC = {"minReplicaCount": ("minReplicas", 0), "maxReplicaCount": ("maxReplicas", 100),
        "cooldownPeriod": ("idleSeconds", 300)}  # fmt: skip
"""Fields of a ScaledObject -> those of a ScaledGroup, and KEDA's defaults."""
CONNECTION = ("bootstrapServers", "sasl", "tls", "ca", "cert", "key", "version", "awsRegion")
"""How metadata of the connection begin: the scaler has its own."""
HAS_A_PLACE = frozenset({"consumerGroup", "topic", "lagThreshold", "activationLagThreshold",
                         "offsetResetPolicy"})  # fmt: skip
IN_OTHER_WAYS = frozenset({"scaleTargetRef", "triggers", "pollingInterval", *SPEC})


@dataclass(frozen=True, slots=True)
class Translation:
    """What a ScaledObject comes to.

    Attributes:
        name: Of the object.
        namespace: Of the object; empty: it does not say.
        spec: Of a ScaledGroup: group, workload, bounds; nothing that sizes it.
        lag_threshold: At which KEDA's rule adds a replica, records.
        left_out: What has no counterpart, as NAME or NAME=VALUE.
    """

    name: str
    namespace: str
    spec: Mapping[str, Any]
    lag_threshold: float
    left_out: tuple[str, ...]

    @property
    def group(self) -> str:
        """Return Kafka's name of the consumer group."""
        group: str = self.spec["group"]
        return group


def translate(obj: Obj) -> Translation:
    """Return what a ScaledObject comes to.

    Raises:
        SettingsError: It has no trigger for Kafka, or those of several groups, or a name or a
            number in it does not hold.
    """
    meta, spec = obj.get("metadata") or {}, obj.get("spec") or {}
    origin = f"ScaledObject {meta.get('name', '')}"
    every = spec.get("triggers") or []
    triggers = [one.get("metadata") or {} for one in every if one.get("type") in TRIGGER_KINDS]
    groups = {str(trigger.get("consumerGroup", "")) for trigger in triggers}
    if len(groups) != 1 or groups == {""}:
        raise SettingsError(
            f"{origin}: expected triggers of KEDA's type kafka for one consumer group"
        )
    target = spec.get("scaleTargetRef") or {}
    first = triggers[0]
    wanted: Obj = {
        "group": groups.pop(),
        "workload": {"kind": target.get("kind", "Deployment"), "name": target.get("name", "")},
        **{ours: spec.get(keda, default) for keda, (ours, default) in SPEC.items()},
    }
    if all(trigger.get("topic") for trigger in triggers):
        wanted["topics"] = sorted({str(trigger["topic"]) for trigger in triggers})
    if reset := first.get("offsetResetPolicy"):
        wanted["startsAt"] = reset
    if (activation := first.get("activationLagThreshold", "0")) not in {"0", 0}:
        wanted["idleLag"] = activation
    if str((meta.get("annotations") or {}).get(PAUSED_ANNOTATION, "")).lower() == "true":
        wanted["paused"] = True
    config = config_from(wanted, origin)
    if config.idle_lag:
        wanted["idleLag"] = config.idle_lag  # KEDA's metadata are texts
    left_out = [name for name in spec if name not in IN_OTHER_WAYS]
    left_out += [
        f"trigger {one.get('type')}" for one in every if one.get("type") not in TRIGGER_KINDS
    ]
    left_out += [
        f"{name}={value}"
        for trigger in triggers
        for name, value in trigger.items()
        if name not in HAS_A_PLACE and not name.startswith(CONNECTION)
    ]
    try:
        thresholds = [float(one.get("lagThreshold", LAG_THRESHOLD)) for one in triggers]
    except ValueError as exc:
        raise SettingsError(f"{origin}: lagThreshold: {exc}") from exc
    return Translation(
        str(meta.get("name", "")),
        str(meta.get("namespace", "")),
        wanted,
        min(thresholds),
        tuple(sorted(set(left_out))),
    )
