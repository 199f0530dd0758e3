"""Numbers for Prometheus, as its text format has them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain"

HELP = {
    "binwright_up": "1 while the service runs.",
    "binwright_ready": "1 while the service can do its work.",
    "binwright_slots_wanted": "Consumers that the group's plan asks the fleet for.",
    "binwright_slot_trouble": "1 for each slot whose consumer cannot run, with the reason.",
    "binwright_fleet_refusals": "Reasons for which the cluster or the engine refuses orders.",
}
"""Every gauge there is, and what it says."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One number; `name` is one of `HELP`."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def exposition(samples: Iterable[Sample]) -> str:
    """Return the samples as a page, each gauge's together."""
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.name, []).append(sample)
    lines = []
    for name, each in sorted(found.items()):
        lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} gauge"]
        lines += [f"{name}{_labels(sample.labels)} {sample.value:g}" for sample in each]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
