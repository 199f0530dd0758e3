"""Reads settings from the file and the environment; reports every fault at once."""

import json
import os
import stat
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SecretStr, ValidationError

from binwright.protocol.errors import SettingsError
from binwright.protocol.section import Section
from binwright.runtime.settings.faults import SettingSources, source_fault, validation_faults
from binwright.runtime.settings.programs import (
    EVERY_NAME,
    FILE_VARIABLE,
    PREFIX,
    ProgramSettings,
)

Program = TypeVar("Program", bound=ProgramSettings)
_SERVICE_HOST = "_SERVICE_HOST"
_OTHER_VARIABLES = {FILE_VARIABLE, f"{PREFIX}CACHE", f"{PREFIX}IVY_SETTINGS"}
"""Environment variables of binwright that are not settings."""


def _is_service_variable(name: str) -> bool:
    """Return whether Kubernetes set it, for a Service whose name begins with binwright."""
    hosts = (key for key in os.environ if key.endswith(_SERVICE_HOST))
    services = [host.removesuffix(_SERVICE_HOST) for host in hosts]
    return any(name.startswith((f"{s}_SERVICE_", f"{s}_PORT")) for s in services)


def _settings_file() -> Path | None:
    path = os.environ.get(FILE_VARIABLE)
    return Path(path) if path else None


def load(program: type[Program], **given: Any) -> Program:
    """Read what a program reads from the file and the environment; `given` wins over both.

    Raises:
        SettingsError: A value or key is wrong, or the file cannot be read; names every fault.
    """
    file = _settings_file()
    if file and not file.is_file():
        raise SettingsError(f"no such file: {file} (--settings, or {FILE_VARIABLE})")
    known = {f"{PREFIX}{name}".upper() for name in EVERY_NAME} | _OTHER_VARIABLES
    unknown = [
        name
        for name in sorted(os.environ)
        if name.startswith(PREFIX)
        and name.partition("__")[0] not in known
        and not _is_service_variable(name)
    ]
    if unknown:
        near = {name: get_close_matches(name, known, n=1, cutoff=0.8) for name in unknown}
        meant = (f"{n} (did you mean {m[0]}?)" if m else n for n, m in near.items())
        raise SettingsError(f"unknown variables: {', '.join(meant)}")
    try:
        return program(**given)
    except ValidationError as exc:
        faults = validation_faults(exc, program, SettingSources(given, file))
        raise SettingsError("\n".join(["invalid settings:", *faults])) from exc
    except ValueError as exc:  # TOML or JSON that cannot be parsed
        raise SettingsError(f"settings cannot be read: {source_fault(exc, file)}") from exc


def readable_password() -> Path | None:
    """Return the settings file if it has a password and every user of the machine may read it."""
    file = _settings_file()
    if file is None or not file.stat().st_mode & stat.S_IROTH:
        return None
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return file if "sasl_password" in tables.get("kafka", {}) else None


def settings_environment(settings: ProgramSettings) -> dict[str, str]:
    """Return the variables from which `load` reads these settings again."""
    variables: dict[str, str] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Section):
            for key in type(value).model_fields:
                inner = getattr(value, key)
                if inner is not None:
                    variables[f"{PREFIX}{name}__{key}".upper()] = _as_variable(inner)
        else:
            variables[f"{PREFIX}{name}".upper()] = _as_variable(value)
    return variables


def _as_variable(value: object) -> str:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case tuple() | dict():
            return json.dumps(value, default=_as_json)
        case _:
            return str(value)


def _as_json(value: object) -> object:
    assert isinstance(value, Section), value
    return value.model_dump(mode="json", exclude_none=True)
