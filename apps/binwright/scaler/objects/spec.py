"""Reads a ScaledGroup object: what is wanted of the group, and which workload runs it."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from pydantic import ConfigDict, ValidationError

from binwright.kubernetes.objects import DOMAIN, Obj, field_name
from binwright.protocol.errors import SettingsError
from binwright.scaler.decide.config import ScaledGroupSettings, ScheduleSettings

API_VERSION, KIND = f"{DOMAIN}/v1alpha1", "ScaledGroup"
PLURAL = "scaledgroups"
WorkloadKind = Literal["Deployment", "StatefulSet"]


class ScheduleSpec(ScheduleSettings):
    """One of a spec's schedules."""

    model_config = ConfigDict(alias_generator=field_name, extra="ignore")


class ScaledGroupSpec(ScaledGroupSettings):
    """The settings of a group by their names in a spec."""

    model_config = ConfigDict(alias_generator=field_name, extra="ignore")
    schedules: tuple[ScheduleSpec, ...] = ()


class WorkloadRef(NamedTuple):
    """The workload of a group."""

    kind: WorkloadKind
    namespace: str
    name: str

    def __str__(self) -> str:
        """Write it as `kubectl` does."""
        return f"{self.kind.lower()}/{self.name}"


def workload_of(obj: Obj) -> WorkloadRef:
    """Return the workload that an object names; raise `SettingsError` for another kind."""
    match obj["spec"].get("workload"):
        case {"name": str(name), **more}:
            kind: Any = more.get("kind", "Deployment")
        case _:
            raise SettingsError("workload: expected a kind and a name")
    if kind not in get_args(WorkloadKind):
        raise SettingsError(f"workload.kind: one of {get_args(WorkloadKind)}, got {kind!r}")
    return WorkloadRef(kind, obj["metadata"]["namespace"], name)


def config_from(spec: Mapping[str, Any], origin: str) -> ScaledGroupSettings:
    """Return what a spec wants; raise `SettingsError`, which names `origin` and every fault."""
    try:
        return ScaledGroupSpec.model_validate(spec)
    except ValidationError as exc:
        faults = [f"{'.'.join(map(str, e['loc'])) or 'values'}: {e['msg']}" for e in exc.errors()]
        raise SettingsError(f"{origin} does not hold: {'; '.join(faults)}") from exc
