"""A group's metrics for Prometheus, from its status: one scrape for the whole group."""

from collections.abc import Iterator

from binwright.runtime.metrics import Sample
from binwright.views.status import ConsumerStatus, Status
from binwright.views.table_status import TableStatus


def group_samples(status: Status) -> Iterator[Sample]:
    """Yield the samples of a group, its consumers and its tables."""
    labels = {"group": status.group}
    yield Sample("binwright_group_consumers", len(status.consumers), labels)
    yield Sample("binwright_group_partitions", status.partitions, labels)
    yield Sample("binwright_group_unread_partitions", len(status.unread), labels)
    yield Sample("binwright_group_moves_in_flight", len(status.moves), labels)
    yield Sample("binwright_group_lost_offsets_total", status.lost_offsets, labels)
    for consumer in status.consumers:
        yield from _consumer(status.group, consumer)
    for table in status.tables:
        yield from _table(status.group, table)


def _consumer(group: str, consumer: ConsumerStatus) -> Iterator[Sample]:
    labels = {"group": group, "slot": str(consumer.slot)}
    yield Sample("binwright_consumer_ready", consumer.state in {"ready", "leaving"}, labels)
    yield Sample("binwright_consumer_partitions", len(consumer.partitions), labels)
    yield Sample("binwright_consumer_load_bytes_per_second", consumer.load, labels)
    yield Sample("binwright_consumer_staging_bytes_per_second", consumer.staging, labels)
    yield Sample("binwright_consumer_staged_bytes", consumer.staged_bytes, labels)
    yield Sample("binwright_consumer_busy_ratio", consumer.busy, labels)
    yield Sample("binwright_consumer_lost_offsets_total", consumer.lost_offsets, labels)


def _table(group: str, table: TableStatus) -> Iterator[Sample]:
    labels = {"group": group, "topic": table.topic}
    yield Sample("binwright_table_age_seconds", table.age_s, labels)
    yield Sample("binwright_table_pending_bytes", table.pending_bytes, labels)
    yield Sample("binwright_table_lag_records", table.lag, labels)
    yield Sample("binwright_table_rows_total", table.rows, labels)
    yield Sample("binwright_table_commits_total", table.commits, labels)
    yield Sample("binwright_table_landing", table.state == "landing", labels)
    yield Sample("binwright_table_refused", table.state == "refused", labels)
