"""What each metric is, and how Prometheus gets its values."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4"  # the server adds the charset

# A series more for each histogram and its labels, which no rule reads.
disable_created_metrics()  # type: ignore[no-untyped-call]

Where = Literal[
    "service",
    "fleet",
    "fleet, scaler",
    "consumer",
    "group",
    "consumer, group",
    "scaler",
    "brokers",
    "steering",
]
"""Whose `/metrics` has it: every service, a controller, a consumer, the page, the scaler, the
balancer, or `binwright steer`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What one metric is; a name that ends in `_total` only grows while the process lives.

    Attributes:
        bounds: Of a histogram: the highest values of its buckets, ascending; the last one has none.
    """

    help: str
    labels: tuple[str, ...]
    where: Where
    bounds: tuple[float, ...] = ()


GROUP, SLOT, TABLE = ("group",), ("group", "slot"), ("group", "topic", "table")
TARGET = ("target", "group")
SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Up to a few times the largest `lake.freshness_s` that is usual."""

METRICS: Mapping[str, Metric] = {
    "binwright_up": Metric("1 while the service runs.", (), "service"),
    "binwright_ready": Metric("1 while the service can do its work.", (), "service"),
    "binwright_client_certificate_expires_seconds": Metric(
        "Time until kafka.ssl_certificate_file expires, below 0 after that; 0: it is unreadable.",
        (),
        "service",
    ),
    "binwright_brokers_dead_log_directories": Metric(
        "Log directories that a broker cannot read any more.", ("broker",), "brokers"
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
    "binwright_slot_disruption": Metric(
        "1 for each slot whose pod ends with its node (`node`), runs by an older template (`roll`) "
        "or is evicted (`evicted`).",
        (*SLOT, "kind"),
        "fleet",
    ),
    "binwright_fleet_refusals": Metric(
        "Reasons for which the cluster refuses changes.", GROUP, "fleet"
    ),
    "binwright_over_limit": Metric(
        "What the objects of a namespace would have beyond one of its limits.",
        ("namespace", "limit"),
        "fleet, scaler",
    ),
    "binwright_group_consumers": Metric(
        "Consumer processes that live, by the metadata topic.", GROUP, "group"
    ),
    "binwright_group_partitions": Metric("Partitions of the group's topics.", GROUP, "group"),
    "binwright_group_unread_partitions": Metric(
        "Partitions that no consumer reads.", GROUP, "group"
    ),
    "binwright_group_hot_partitions": Metric(
        "Partitions that get more than what stages them sustains.", GROUP, "group"
    ),
    "binwright_group_split_partitions": Metric(
        "Partitions that several consumers stage.", GROUP, "group"
    ),
    "binwright_group_orders": Metric(
        "People's orders in force: pins, cordons, drains, a freeze, a scale.", ("group",), "group"
    ),
    "binwright_group_held": Metric(
        "Sentences about what orders and settings hold back; 0: nothing.", ("group",), "group"
    ),
    "binwright_group_moves_in_flight": Metric(
        "Partitions that are not yet where the last plan has them.", GROUP, "group"
    ),
    "binwright_move_pause_seconds": Metric(
        "How long a partition was not read while it moved from one live consumer to another.",
        GROUP,
        "group",
        SECONDS,
    ),
    "binwright_group_lost_offsets_total": Metric(
        "Lost offsets of all consumers, ended ones too.", GROUP, "group"
    ),
    "binwright_group_simulated_consumer_seconds": Metric(
        "Time of all consumers together, of the load of the last `binwright savings --publish`:"
        " by its settings (binwright), for the peak all the time (peak), by KEDA's rule (lag).",
        (*GROUP, "rule"),
        "group",
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
    "binwright_consumer_zone_crossing_bytes_per_second": Metric(
        "Bytes/s that the consumer reads from other zones; 0 where zones are not known.",
        SLOT,
        "group",
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
    "binwright_staging_seconds": Metric(
        "How long the consumer took to write a staged file.", SLOT, "consumer", SECONDS
    ),
    "binwright_consumer_stuck_topics": Metric(
        "Topics of which the consumer cannot read or stage what comes next.", SLOT, "consumer"
    ),
    "binwright_consumer_decoding_seconds_total": Metric(
        "Time in which values were decoded.", (*SLOT, "topic", "table"), "consumer"
    ),
    "binwright_consumer_bad_records_total": Metric(
        "Records that could not be decoded, as often as they were staged.",
        (*SLOT, "topic", "table", "kind"),
        "consumer",
    ),
    "binwright_consumer_new_fields_total": Metric(
        "Fields of JSON without a column, left out or kept by `add`, as often as they were staged.",
        (*SLOT, "topic", "table"),
        "consumer",
    ),
    "binwright_consumer_schema_version": Metric(
        "Newest version of the subject of a table whose columns are those of its versions.",
        (*SLOT, "topic", "table"),
        "consumer",
    ),
    "binwright_consumer_registry_requests_total": Metric(
        "Requests to the schema registry that it answered, had nothing for, or failed.",
        (*SLOT, "outcome"),
        "consumer",
    ),
    "binwright_consumer_schema_faults_total": Metric(
        "How often records of a table had to wait since a schema of its subject cannot be used.",
        (*SLOT, "topic", "table"),
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
    "binwright_table_skipped_records_total": Metric(
        'Records that are in no table, as `tombstones = "skip"` wants.', TABLE, "consumer, group"
    ),
    "binwright_table_commits_total": Metric(
        "Commits made by the table's writer.", TABLE, "consumer, group"
    ),
    "binwright_commit_seconds": Metric(
        "How long a commit of rows to the table took.", TABLE, "consumer", SECONDS
    ),
    "binwright_oldest_row_age_seconds": Metric(
        "Age of the oldest row of a commit when the commit made it readable, from its fetch on.",
        TABLE,
        "consumer",
        SECONDS,
    ),
    "binwright_table_landing": Metric(
        "1 while the table's writer lands what is staged; 0 also while Spark is away.",
        TABLE,
        "consumer, group",
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
        "Records that the group has not committed, as far as they are there.", TARGET, "scaler"
    ),
    "binwright_scaled_group_lost_records": Metric(
        "Records that were deleted before the group had committed them.", TARGET, "scaler"
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
    """One number; `name` is one of `METRICS`, and no histogram."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def topic_label(topics: Collection[str]) -> str:
    """Return the label `topic` of a table's metric: empty if the table takes several topics."""
    return next(iter(topics)) if len(topics) == 1 else ""


def table_lands(state: str, fault: str) -> bool:
    """Return whether a table takes rows: while Spark is away it is `landing`, and has a fault."""
    return state == "landing" and not fault


@dataclass(frozen=True, slots=True)
class Samples(Collector):
    """Gives Prometheus samples of the moment at which it asks, of each metric together.

    Attributes:
        make: Makes them.
    """

    make: Callable[[], Iterable[Sample]]

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        """Return each metric with its values."""
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for sample in self.make():
            name, metric = sample.name, METRICS[sample.name]
            family = CounterMetricFamily if kind(name) == "counter" else GaugeMetricFamily
            if name not in families:
                families[name] = family(name, metric.help, labels=metric.labels)
            families[name].add_metric([sample.labels[each] for each in metric.labels], sample.value)
        return families.values()


def histogram(name: str, registry: CollectorRegistry) -> Histogram:
    """Return one of `METRICS`, without values, that a registry's exposition has."""
    metric = METRICS[name]
    return Histogram(name, metric.help, metric.labels, buckets=metric.bounds, registry=registry)


def kind(name: str) -> Literal["counter", "gauge", "histogram"]:
    """Return the type of a metric."""
    if METRICS[name].bounds:
        return "histogram"
    return "counter" if name.endswith("_total") else "gauge"


def series(name: str) -> tuple[str, ...]:
    """Return the names that a metric has in a query."""
    if kind(name) == "histogram":
        return tuple(f"{name}_{part}" for part in ("bucket", "sum", "count"))
    return (name,)
