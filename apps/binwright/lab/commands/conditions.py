"""What a simulation takes from settings and options: policies, the controller's part, times."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from binwright.cli.runner import split
from binwright.controller.group_context import group_context
from binwright.group.config import GroupConfig
from binwright.lab.simulation.outcome import CountSteps
from binwright.lab.simulation.policies.catalogue import lag_threshold
from binwright.lab.simulation.run import NAMES, Run
from binwright.lab.simulation.scenario import Scenario, Timing, warm_up_s
from binwright.lab.simulation.sources import Source
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import BytesPerSecond, PerSlot
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.programs import FILE_VARIABLE


def simulated_config(settings: Settings) -> GroupConfig:
    """Return the controller's settings, but every topic of the load is read and nobody approves."""
    return replace(group_context(settings).config.with_settings(mode="act"), topics=None)


def simulated_timing(settings: Settings, timing: Timing) -> Timing:
    """Return `timing` with the intervals of the settings."""
    return replace(
        timing,
        interval_s=settings.monitor.interval_s,
        window_s=settings.monitor.window_s,
        report_s=settings.consumer.report_s,
    )


def sustained_rate(settings: Settings, sustains: float | None) -> BytesPerSecond | None:
    """Return what consumers sustain: not the limit that is tried, but that of the first settings.

    None: each what its slot's limit is.
    """
    if sustains is not None:
        return BytesPerSecond(sustains)
    controller = settings.controller
    return None if controller.slot_limits else BytesPerSecond(controller.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is the same in all simulations of one load.

    Attributes:
        source: Of the load.
        timing: How long things take, but for the intervals, which the settings give.
        sla_s: Within which a record is to be read, seconds.
        sustained: What a consumer really sustains, bytes/s; None: its limit.
        limits: Of consumers, instead of those of the settings; None: the settings'.
        members: That the group had; None: that is not known.
    """

    source: Source
    timing: Timing
    sla_s: float
    sustained: BytesPerSecond | None = None
    limits: PerSlot | None = None
    members: CountSteps | None = None

    def run(self, policy: str, variant: str, settings: Settings) -> Run:
        """Return the simulation of a policy under these settings."""
        config = simulated_config(settings)
        if self.limits is not None:
            config = config.with_limits(self.limits)
        timing = simulated_timing(settings, self.timing)
        scenario = Scenario(
            load=self.source.load(warm_up_s(config, timing)),
            config=config,
            sustained=self.sustained,
            timing=timing,
            published=self.source.published(timing.window_s),
            members=self.members,
        )
        return Run(
            label=" ".join(filter(None, (policy, variant))),
            policy=policy,
            scenario=scenario,
            packing=settings.controller.packing,
            sla_s=self.sla_s,
        )


def policy_names(text: str) -> list[str]:
    """Return the policies that `--policies` names, each once; raise `SettingsError` for others."""
    names = list(dict.fromkeys(split(text)))
    if unknown := [name for name in names if name not in NAMES and not lag_threshold(name)]:
        raise SettingsError(
            f"--policies: no policy is called {', '.join(unknown)}; there are: "
            f"{', '.join(NAMES)}, lag:THRESHOLD"
        )
    if not names:
        raise SettingsError("--policies: name at least one")
    return names


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
        tried = [Variant("", _load(None, capacity, {}))]
    else:
        names = [file.name if len(files) > 1 else "" for file in files]
        tried = [
            Variant(name, _load(file, capacity, {}))
            for name, file in zip(names, files, strict=True)
        ]
    first = files[0] if files else None
    for text in varied:
        name, values = _parse(text)
        tried += [Variant(f"{name}={v}", _load(first, capacity, {name: v})) for v in values]
    return tried


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
        Variant(" ".join(f"{name}={v}" for name, v in values), _load(file, capacity, dict(values)))
        for values in product(*axes)
    ]


def _parse(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    wanted = [value.strip() for value in values.split(",") if value.strip()]
    if not equals or not wanted:
        raise SettingsError(f"--vary: expected NAME=VALUE,VALUE,... of controller, got {text!r}")
    return name.strip().removeprefix("controller."), wanted


def _load(file: Path | None, capacity: float | None, changed: Mapping[str, str]) -> Settings:
    with _settings_file(file):
        scaled: dict[str, object] = {}
        if capacity is not None:
            before = load_settings().controller
            ratio = before.limit / before.capacity
            scaled = {"capacity_bytes_per_s": capacity, "limit_bytes_per_s": capacity * ratio}
        return load_settings(controller={**scaled, **changed})


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
