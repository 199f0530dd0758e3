"""Reads a ScaledGroup object: what is wanted of the group, and which workload runs it."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from pydantic import ValidationError

from binwright.kubernetes.objects import DOMAIN, Obj, renamed
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings import ScaledGroupSettings
from binwright.scaler.decide.config import ScaledGroup

API_VERSION, KIND = f"{DOMAIN}/v1alpha1", "ScaledGroup"
PLURAL = "scaledgroups"
WorkloadKind = Literal["Deployment", "StatefulSet"]
FIELDS = {
    "group": "group",
    "topics": "topics",
    "minReplicas": "min_replicas",
    "maxReplicas": "max_replicas",
    "recordsPerSecond": "records_per_s",
    "catchUpSeconds": "catch_up_s",
    "slaSeconds": "sla_s",
    "slaShare": "sla_share",
    "burstSeconds": "burst_s",
    "startSeconds": "start_s",
    "rebalanceSeconds": "rebalance_s",
    "commitIntervalSeconds": "commit_interval_s",
    "cooldownUpSeconds": "cooldown_up_s",
    "cooldownDownSeconds": "cooldown_down_s",
    "idleSeconds": "idle_s",
    "mode": "mode",
    "pause": "pause",
}
"""The fields of a spec, and the settings that they are."""
SCHEDULE_FIELDS = {
    "days": "days",
    "start": "start",
    "end": "end",
    "timeZone": "time_zone",
    "minReplicas": "min_replicas",
    "maxReplicas": "max_replicas",
}


class WorkloadRef(NamedTuple):
    """The workload of a group."""

    kind: WorkloadKind
    namespace: str
    name: str

    def __str__(self) -> str:
        """Write it as `kubectl` does."""
        return f"{self.kind.lower()}/{self.name}"


def workload_of(obj: Obj) -> WorkloadRef:
    """Return the workload that an object names; raise `SettingsError` for a kind unknown here."""
    chosen = obj["spec"]["workload"]
    kind: WorkloadKind = chosen.get("kind", "Deployment")
    if kind not in get_args(WorkloadKind):
        raise SettingsError(f"workload.kind: one of {get_args(WorkloadKind)}, got {kind!r}")
    return WorkloadRef(kind, obj["metadata"]["namespace"], chosen["name"])


def config_of(obj: Obj) -> ScaledGroup:
    """Return what an object wants; raise `SettingsError`, which names every fault."""
    spec = obj["spec"]
    schedules = [renamed(each, SCHEDULE_FIELDS) for each in spec.get("schedules", ())]
    return config_from({**renamed(spec, FIELDS), "schedules": schedules}, "the spec")


def config_from(values: Mapping[str, Any], origin: str) -> ScaledGroup:
    """Return what these settings of a group want; raise `SettingsError` that names `origin`."""
    try:
        return ScaledGroupSettings(**values).config()
    except ValidationError as exc:
        theirs = {ours: name for name, ours in {**FIELDS, **SCHEDULE_FIELDS}.items()}
        faults = [
            f"{'.'.join(theirs.get(str(at), str(at)) for at in e['loc']) or 'values'}: {e['msg']}"
            for e in exc.errors()
        ]
        raise SettingsError(f"{origin} does not hold: {'; '.join(faults)}") from exc
