"""The settings that a simulation tries: of files, and with values of the controller changed."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings import FILE_VARIABLE, Settings, load_settings


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings, and what the outcome is called behind the policy's name."""

    label: str
    settings: Settings


def variants(files: Sequence[Path], varied: Sequence[str], capacity: float | None) -> list[Variant]:
    """Return the settings of each file, then those of the first file with one value changed.

    Args:
        files: Settings files; none: the settings as they are.
        varied: NAME=VALUE,VALUE,... of the section `controller`: a variant for each value.
        capacity: What a plan fills a consumer to, bytes/s; the limit keeps its ratio to it. None:
            that of the settings.

    Raises:
        SettingsError: A file, a name or a value is wrong.
    """
    if not files:
        found = [Variant("", _load(None, capacity, {}))]
    else:
        names = [file.name if len(files) > 1 else "" for file in files]
        found = [
            Variant(name, _load(file, capacity, {}))
            for name, file in zip(names, files, strict=True)
        ]
    first = files[0] if files else None
    for text in varied:
        name, values = _parse(text)
        found += [Variant(f"{name}={v}", _load(first, capacity, {name: v})) for v in values]
    return found


def combinations(file: Path | None, varied: Sequence[str], capacity: float | None) -> list[Variant]:
    """Return the settings of a file with every combination of the values that vary.

    Args:
        file: A settings file; None: the settings as they are.
        varied: As for `variants`; none: the settings as they are, alone.
        capacity: As for `variants`.

    Raises:
        SettingsError: The file, a name or a value is wrong.
    """
    axes = [[(name, value) for value in values] for name, values in map(_parse, varied)]
    return [
        Variant(" ".join(f"{name}={v}" for name, v in chosen), _load(file, capacity, dict(chosen)))
        for chosen in product(*axes)
    ]


def _parse(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    found = [value.strip() for value in values.split(",") if value.strip()]
    if not equals or not found:
        raise SettingsError(f"--vary: expected NAME=VALUE,VALUE,... of controller, got {text!r}")
    return name.strip().removeprefix("controller."), found


def _load(file: Path | None, capacity: float | None, changed: Mapping[str, str]) -> Settings:
    with _settings_file(file):
        given: dict[str, object] = {}
        if capacity is not None:
            before = load_settings().controller
            ratio = before.limit_bytes_per_s / before.capacity
            given = {"capacity_bytes_per_s": capacity, "limit_bytes_per_s": capacity * ratio}
        return load_settings(controller={**given, **changed})


@contextmanager
def _settings_file(file: Path | None) -> Iterator[None]:
    """Name the settings file for as long as settings are read."""
    before = os.environ.get(FILE_VARIABLE)
    if file is not None:
        os.environ[FILE_VARIABLE] = str(file)
    try:
        yield
    finally:
        if before is not None:
            os.environ[FILE_VARIABLE] = before
        elif file is not None:
            del os.environ[FILE_VARIABLE]
