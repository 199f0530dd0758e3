"""Metrics of a group, for Prometheus."""

from collections.abc import Iterator

from binwright.look.status import ConsumerStatus, Status
from binwright.look.table_status import TableStatus
from binwright.runtime import group_metrics
from binwright.runtime.metrics import (
    GROUP,
    SECONDS,
    SLOT,
    TABLE,
    Metric,
    Sample,
    topic_label,
)

GROUP_CONSUMERS = Metric(
    "binwright_group_consumers",
    "Consumer processes that live, by the metadata topic.",
    GROUP,
    "group",
)
GROUP_PARTITIONS = Metric(
    "binwright_group_partitions", "Partitions of the group's topics.", GROUP, "group"
)
GROUP_UNREAD_PARTITIONS = Metric(
    "binwright_group_unread_partitions", "Partitions that no consumer reads.", GROUP, "group"
)
GROUP_HOT_PARTITIONS = Metric(
    "binwright_group_hot_partitions",
    "Partitions that get more than what stages them sustains.",
    GROUP,
    "group",
)
GROUP_SPLIT_PARTITIONS = Metric(
    "binwright_group_split_partitions", "Partitions that several consumers stage.", GROUP, "group"
)
GROUP_ORDERS = Metric(
    "binwright_group_orders",
    "People's orders in force: pins, cordons, drains, a freeze, a scale.",
    ("group",),
    "group",
)
GROUP_HELD = Metric(
    "binwright_group_held",
    "Sentences about what orders and settings hold back; 0: nothing.",
    ("group",),
    "group",
)
GROUP_MOVES_IN_FLIGHT = Metric(
    "binwright_group_moves_in_flight",
    "Partitions that are not yet where the last plan has them.",
    GROUP,
    "group",
)
MOVE_PAUSE_SECONDS = Metric(
    "binwright_move_pause_seconds",
    "How long a partition was not read while it moved from one live consumer to another.",
    GROUP,
    "group",
    SECONDS,
)
GROUP_LOST_OFFSETS_TOTAL = Metric(
    "binwright_group_lost_offsets_total",
    "Lost offsets of all consumers, ended ones too.",
    GROUP,
    "group",
)
GROUP_SIMULATED_CONSUMER_SECONDS = Metric(
    "binwright_group_simulated_consumer_seconds",
    "Time of all consumers together, of the load of the last `binwright shadow own --publish`:"
    " by its settings (binwright), for the peak all the time (peak), by KEDA's rule (lag).",
    (*GROUP, "rule"),
    "group",
)
CONSUMER_LOAD_BYTES_PER_SECOND = Metric(
    "binwright_consumer_load_bytes_per_second",
    "Bytes/s written to what the consumer reads.",
    SLOT,
    "group",
)
CONSUMER_ZONE_CROSSING_BYTES_PER_SECOND = Metric(
    "binwright_consumer_zone_crossing_bytes_per_second",
    "Bytes/s that the consumer reads from other zones; 0 where zones are not known.",
    SLOT,
    "group",
)
TABLE_LAG_RECORDS = Metric(
    "binwright_table_lag_records",
    "Records that the table's topic keeps and that wait to land.",
    TABLE,
    "group",
)


def group_samples(status: Status) -> Iterator[Sample]:
    """Yield the metrics of a group, its consumers and its tables, for Prometheus."""
    labels = {"group": status.group}
    living = sum(each.state != "silent" for each in status.consumers)
    yield Sample(GROUP_CONSUMERS, living, labels)
    yield Sample(GROUP_PARTITIONS, status.partitions, labels)
    yield Sample(GROUP_UNREAD_PARTITIONS, len(status.unread), labels)
    yield Sample(GROUP_HOT_PARTITIONS, len(status.hot), labels)
    yield Sample(GROUP_SPLIT_PARTITIONS, len(status.splits), labels)
    yield Sample(GROUP_MOVES_IN_FLIGHT, len(status.moves), labels)
    yield Sample(GROUP_ORDERS, len(status.orders), labels)
    yield Sample(GROUP_HELD, len(status.held), labels)
    yield Sample(GROUP_LOST_OFFSETS_TOTAL, status.lost_offsets, labels)
    if status.savings:
        for cost in (status.savings.own, *status.savings.others):
            by_rule = {**labels, "rule": cost.rule}
            yield Sample(GROUP_SIMULATED_CONSUMER_SECONDS, 60 * cost.replica_minutes, by_rule)
    for consumer in status.consumers:
        yield from _consumer(status.group, consumer)
    for table in status.tables:
        yield from _table(status.group, table)


def _consumer(group: str, consumer: ConsumerStatus) -> Iterator[Sample]:
    labels = {"group": group, "slot": str(consumer.slot)}
    yield Sample(group_metrics.CONSUMER_READY, consumer.state in {"ready", "leaving"}, labels)
    yield Sample(group_metrics.CONSUMER_PARTITIONS, len(consumer.partitions), labels)
    yield Sample(CONSUMER_LOAD_BYTES_PER_SECOND, consumer.load, labels)
    crossing = consumer.crossing
    yield Sample(CONSUMER_ZONE_CROSSING_BYTES_PER_SECOND, crossing, labels)
    yield Sample(group_metrics.CONSUMER_STAGING_BYTES_PER_SECOND, consumer.staging, labels)
    yield Sample(group_metrics.CONSUMER_STAGED_BYTES, consumer.staged_bytes, labels)
    yield Sample(group_metrics.CONSUMER_BUSY_RATIO, consumer.busy, labels)
    if consumer.capacity is not None:
        capacity = consumer.capacity.bytes_per_s
        yield Sample(group_metrics.CONSUMER_CAPACITY_BYTES_PER_SECOND, capacity, labels)
    yield Sample(group_metrics.CONSUMER_LOST_OFFSETS_TOTAL, consumer.lost_offsets, labels)


def _table(group: str, table: TableStatus) -> Iterator[Sample]:
    labels = {"group": group, "topic": topic_label(table.topics), "table": table.name}
    yield from group_metrics.table_samples(labels, table.report, table.state, table.freshness_s)
    for topic in table.topics:
        lag = sum(each.lag for each in table.partitions if each.topic == topic)
        yield Sample(TABLE_LAG_RECORDS, lag, {**labels, "topic": topic})
