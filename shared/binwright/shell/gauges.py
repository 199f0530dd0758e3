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
    "binwright_group_consumers": "Consumer processes that live, as the metadata topic has it.",
    "binwright_group_partitions": "Partitions of the group's topics.",
    "binwright_group_unread_partitions": "Partitions that no consumer reads.",
    "binwright_group_moves_in_flight": "Partitions that are not yet where the last plan has them.",
    "binwright_consumer_ready": "1 while the consumer can stage, so that it may get partitions.",
    "binwright_consumer_partitions": "Partitions that the consumer reads.",
    "binwright_consumer_load_bytes_per_second": "Bytes/s written to what the consumer reads.",
    "binwright_consumer_staging_bytes_per_second": "Bytes/s that the consumer stages.",
    "binwright_consumer_staged_rows_total": "Rows that this consumer process has staged.",
    "binwright_consumer_staged_bytes": "Bytes in the consumer's staged files that wait to land.",
    "binwright_consumer_busy_ratio": "Share of the time in which fetching waited for staging.",
    "binwright_consumer_lost_offsets_total": "Offsets that retention took before they were read.",
    "binwright_table_age_seconds": "Age of the oldest staged row that has not landed; 0: none.",
    "binwright_table_pending_bytes": "Bytes in staged files of the table that wait to land.",
    "binwright_table_lag_records": "Records that the table's topic keeps and that wait to land.",
    "binwright_table_rows_total": "Rows landed by the table's writer, about.",
    "binwright_table_commits_total": "Commits made by the table's writer.",
    "binwright_table_landing": "1 while the table's writer lands what is staged.",
    "binwright_table_refused": "1 while the table takes nothing: a column, a constraint, a right.",
}
"""Every number there is, and what it says; those named `_total` only grow while a process lives."""


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
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_labels(sample.labels)} {sample.value:g}" for sample in each]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
