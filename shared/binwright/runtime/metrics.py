"""Metrics in the text format of Prometheus."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

CONTENT_TYPE = "text/plain"

Where = Literal[
    "service", "fleet", "consumer", "group", "consumer, group", "scaler", "brokers", "steering"
]
"""Whose `/metrics` has it: every service, a controller, a consumer, the page, the scaler, the
balancer, or `binwright steer`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What one metric is; a name that ends in `_total` only grows while the process lives."""

    help: str
    labels: tuple[str, ...]
    where: Where


GROUP, SLOT, TABLE = ("group",), ("group", "slot"), ("group", "topic")
TARGET = ("target", "group")

METRICS: Mapping[str, Metric] = {
    "binwright_up": Metric("1 while the service runs.", (), "service"),
    "binwright_ready": Metric("1 while the service can do its work.", (), "service"),
    "binwright_client_certificate_expires_seconds": Metric(
        "Time until kafka.ssl_certificate_file expires, below 0 after that; 0: it is unreadable.",
        (),
        "service",
    ),
    "binwright_brokers_imbalance_ratio": Metric(
        "Largest use of a resource of a broker, in units of the mean.",
        ("resource",),
        "brokers",
    ),
    "binwright_brokers_proposed_bytes": Metric(
        "Bytes that the proposed plan for brokers copies; without a proposal there is none.",
        (),
        "brokers",
    ),
    "binwright_brokers_left_partitions": Metric(
        "Partitions that the plan under way has still to move; without one there is none.",
        (),
        "brokers",
    ),
    "binwright_slots_wanted": Metric("Consumers that the group's plan wants.", GROUP, "fleet"),
    "binwright_slot_trouble": Metric(
        "1 for each slot whose consumer cannot run, with the reason.", (*SLOT, "reason"), "fleet"
    ),
    "binwright_fleet_refusals": Metric(
        "Reasons for which the cluster refuses changes.", GROUP, "fleet"
    ),
    "binwright_group_consumers": Metric(
        "Consumer processes that live, by the metadata topic.", GROUP, "group"
    ),
    "binwright_group_partitions": Metric("Partitions of the group's topics.", GROUP, "group"),
    "binwright_group_unread_partitions": Metric(
        "Partitions that no consumer reads.", GROUP, "group"
    ),
    "binwright_group_hot_partitions": Metric(
        "Partitions that get more than a consumer sustains.", GROUP, "group"
    ),
    "binwright_group_moves_in_flight": Metric(
        "Partitions that are not yet where the last plan has them.", GROUP, "group"
    ),
    "binwright_group_lost_offsets_total": Metric(
        "Lost offsets of all consumers, ended ones too.", GROUP, "group"
    ),
    "binwright_consumer_ready": Metric(
        "1 while the consumer can stage, so that it may get partitions.", SLOT, "consumer, group"
    ),
    "binwright_consumer_partitions": Metric(
        "Partitions that the consumer reads.", SLOT, "consumer, group"
    ),
    "binwright_consumer_load_bytes_per_second": Metric(
        "Bytes/s written to what the consumer reads.", SLOT, "group"
    ),
    "binwright_consumer_staging_bytes_per_second": Metric(
        "Bytes/s that the consumer stages.", SLOT, "consumer, group"
    ),
    "binwright_consumer_staged_rows_total": Metric(
        "Rows that this consumer process has staged.", SLOT, "consumer"
    ),
    "binwright_consumer_staged_bytes": Metric(
        "Bytes in the consumer's staged files that wait to land.", SLOT, "consumer, group"
    ),
    "binwright_consumer_busy_ratio": Metric(
        "Share of the time in which fetching waited for staging.", SLOT, "consumer, group"
    ),
    "binwright_consumer_capacity_bytes_per_second": Metric(
        "Bytes/s, as stored, that the consumer could read, as it has measured.",
        SLOT,
        "consumer, group",
    ),
    "binwright_consumer_lost_offsets_total": Metric(
        "Offsets that retention took unread, or that could not be decoded.", SLOT, "consumer, group"
    ),
    "binwright_consumer_stuck_topics": Metric(
        "Topics of which the consumer cannot read or stage what comes next.", SLOT, "consumer"
    ),
    "binwright_consumer_decoding_seconds_total": Metric(
        "Time in which values of the topic were decoded.", (*SLOT, "topic"), "consumer"
    ),
    "binwright_consumer_bad_records_total": Metric(
        "Records that could not be decoded, as often as they were staged.",
        (*SLOT, "topic", "kind"),
        "consumer",
    ),
    "binwright_consumer_schema_version": Metric(
        "Newest version of the subject of a table whose columns are those of its versions.",
        (*SLOT, "topic"),
        "consumer",
    ),
    "binwright_consumer_registry_requests_total": Metric(
        "Requests to the schema registry that it answered, had nothing for, or failed.",
        (*SLOT, "outcome"),
        "consumer",
    ),
    "binwright_table_age_seconds": Metric(
        "Age of the oldest staged row that has not landed; 0: none.", TABLE, "consumer, group"
    ),
    "binwright_table_freshness_seconds": Metric(
        "Age of the newest record that has landed, now; none before the first.",
        TABLE,
        "consumer, group",
    ),
    "binwright_table_pending_bytes": Metric(
        "Bytes in staged files of the table that wait to land.", TABLE, "consumer, group"
    ),
    "binwright_table_lag_records": Metric(
        "Records that the table's topic keeps and that wait to land.", TABLE, "group"
    ),
    "binwright_table_rows_total": Metric(
        "Rows landed by the table's writer, about.", TABLE, "consumer, group"
    ),
    "binwright_table_bad_records_total": Metric(
        "Of these rows: records that could not be decoded, in the table of bad records.",
        TABLE,
        "consumer, group",
    ),
    "binwright_table_commits_total": Metric(
        "Commits made by the table's writer.", TABLE, "consumer, group"
    ),
    "binwright_table_landing": Metric(
        "1 while the table's writer lands what is staged.", TABLE, "consumer, group"
    ),
    "binwright_table_refused": Metric(
        "1 while the table refuses writes (column, constraint, right).",
        TABLE,
        "consumer, group",
    ),
    "binwright_table_paused": Metric(
        "1 while a person has paused the table.", TABLE, "consumer, group"
    ),
    "binwright_scaler_pass_seconds": Metric(
        "How long the last pass over all scaled groups took.", (), "scaler"
    ),
    "binwright_scaler_passes_total": Metric("Passes over all scaled groups.", (), "scaler"),
    "binwright_scaled_group_fault": Metric(
        "1 while the group's offsets or its workload cannot be looked up or changed.",
        TARGET,
        "scaler",
    ),
    "binwright_scaled_group_replicas": Metric(
        "Replicas that the group's workload is set to.", TARGET, "scaler"
    ),
    "binwright_scaled_group_wanted_replicas": Metric(
        "Replicas that the group needs, within its bounds.", TARGET, "scaler"
    ),
    "binwright_scaled_group_lag_records": Metric(
        "Records that the group has not committed.", TARGET, "scaler"
    ),
    "binwright_scaled_group_records_per_second": Metric(
        "Records/s that arrive at what the group reads.", TARGET, "scaler"
    ),
    "binwright_scaled_group_hot_partitions": Metric(
        "Partitions that are faster than one replica.", TARGET, "scaler"
    ),
    "binwright_scaled_group_blocked": Metric(
        "1 while the number is left alone: paused, or another owner changes it.",
        TARGET,
        "scaler",
    ),
    "binwright_scaled_group_proposal_waits": Metric(
        "1 while a change waits for approval.", TARGET, "scaler"
    ),
    "binwright_steered_group_passes_total": Metric(
        "How often the group was looked at.", GROUP, "steering"
    ),
    "binwright_steered_group_fault": Metric(
        "1 while the group cannot be looked at or steered, or does not rebalance.",
        GROUP,
        "steering",
    ),
    "binwright_steered_group_members": Metric("Members of the group.", GROUP, "steering"),
    "binwright_steered_group_imbalance": Metric(
        "Largest load of a member over the mean, by records/s.", GROUP, "steering"
    ),
    "binwright_steered_group_plan_generation": Metric(
        "Generation of the plan that was published last.", GROUP, "steering"
    ),
    "binwright_steered_group_rebalances_total": Metric(
        "Rebalances that were asked for.", GROUP, "steering"
    ),
    "binwright_steered_group_moved_partitions_total": Metric(
        "Partitions that get another reader by those rebalances.", GROUP, "steering"
    ),
}
"""Every metric there is."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One number; `name` is one of `METRICS`."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def exposition(samples: Iterable[Sample]) -> str:
    """Return the samples as text, grouped by metric."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    lines = []
    for name, each in sorted(by_name.items()):
        lines += [f"# HELP {name} {METRICS[name].help}", f"# TYPE {name} {kind(name)}"]
        lines += [f"{name}{_labels(sample.labels)} {sample.value:g}" for sample in each]
    return "\n".join(lines) + "\n"


def kind(name: str) -> Literal["counter", "gauge"]:
    """Return the type of a metric."""
    return "counter" if name.endswith("_total") else "gauge"


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
