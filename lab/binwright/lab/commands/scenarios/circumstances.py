"""What a simulation takes from settings and options: policies, the controller's part, times."""

from dataclasses import replace

from binwright.cli.runner import split
from binwright.controller.decide.group import ControllerConfig
from binwright.controller.group_context import group_context
from binwright.lab.simulation.run import NAMES
from binwright.lab.simulation.scenario import Timing
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.settings import Settings


def simulated_config(settings: Settings) -> ControllerConfig:
    """Return the controller's settings, but every topic of the load is read and nobody approves."""
    return replace(group_context(settings).config, topics=None, mode="act")


def simulated_timing(settings: Settings, timing: Timing) -> Timing:
    """Return `timing` with the intervals of the settings."""
    return replace(
        timing,
        interval_s=settings.monitor.interval_s,
        window_s=settings.monitor.window_s,
        report_s=settings.consumer.report_s,
    )


def sustained_rate(settings: Settings, given: float | None) -> BytesPerSecond | None:
    """Return what consumers sustain: not the limit that is tried, but that of the first settings.

    None: each what its slot's limit is.
    """
    if given is not None:
        return BytesPerSecond(given)
    found = settings.controller
    return None if found.slot_limits else BytesPerSecond(found.limit_bytes_per_s)


def policy_names(text: str) -> list[str]:
    """Return the policies that `--policies` names, each once; raise `SettingsError` for others."""
    names = list(dict.fromkeys(split(text)))
    if unknown := [name for name in names if name not in NAMES]:
        raise SettingsError(
            f"--policies: no policy is called {', '.join(unknown)}; there are: {', '.join(NAMES)}"
        )
    if not names:
        raise SettingsError("--policies: name at least one")
    return names
