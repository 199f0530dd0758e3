"""A consumer's own metrics, from the report that it sends.

`look.page.metrics` derives those of a whole group from its status, under the same names.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from binwright.consumer import metrics
from binwright.consumer.decode.decoders import DecodingTotals
from binwright.protocol.metadata import Report
from binwright.runtime import group_metrics
from binwright.runtime.metrics import Sample, topic_label
from binwright.tables.targets import Target

T = TypeVar("T")


def consumer_samples(
    group: str, report: Report, now_ms: int, decoding: DecodingTotals
) -> Iterator[Sample]:
    """Yield the metrics of one consumer, and of the tables that it writes.

    Args:
        group: Its group.
        report: What it reports.
        now_ms: Wall clock.
        decoding: What it has decoded.
    """
    labels = {"group": group, "slot": str(report.slot)}
    yield Sample(group_metrics.CONSUMER_READY, report.ready, labels)
    yield Sample(group_metrics.CONSUMER_PARTITIONS, len(report.reading), labels)
    yield Sample(group_metrics.CONSUMER_STAGING_BYTES_PER_SECOND, report.rate, labels)
    yield Sample(metrics.CONSUMER_STAGED_ROWS_TOTAL, report.staged_rows, labels)
    yield Sample(group_metrics.CONSUMER_STAGED_BYTES, report.staged_bytes, labels)
    yield Sample(group_metrics.CONSUMER_BUSY_RATIO, report.busy, labels)
    if report.capacity is not None:
        capacity = report.capacity.bytes_per_s
        yield Sample(group_metrics.CONSUMER_CAPACITY_BYTES_PER_SECOND, capacity, labels)
    yield Sample(group_metrics.CONSUMER_LOST_OFFSETS_TOTAL, report.lost_offsets, labels)
    yield Sample(metrics.CONSUMER_STUCK_TOPICS, len(report.faults), labels)
    yield from _decoding(labels, decoding)
    for name, table in sorted(report.writing.items()):
        topic = topic_label(table.topics_of(name))
        of_table = {"group": group, "topic": topic, "table": name}
        fresh_s = table.freshness_s(now_ms)
        yield from group_metrics.table_samples(of_table, table, table.state, fresh_s)


def _by_name(of_targets: Mapping[Target, T]) -> list[tuple[Target, T]]:
    return sorted(of_targets.items(), key=lambda each: each[0].name)


def _labels(target: Target) -> dict[str, str]:
    return {"topic": target.topic, "table": target.name}


def _decoding(labels: Mapping[str, str], totals: DecodingTotals) -> Iterator[Sample]:
    for outcome, count in sorted(totals.requests.items()):
        yield Sample(
            metrics.CONSUMER_REGISTRY_REQUESTS_TOTAL, count, {**labels, "outcome": outcome}
        )
    for target, count in _by_name(totals.schema_faults):
        yield Sample(metrics.CONSUMER_SCHEMA_FAULTS_TOTAL, count, {**labels, **_labels(target)})
    for target, seconds in _by_name(totals.seconds):
        yield Sample(
            metrics.CONSUMER_DECODING_SECONDS_TOTAL, seconds, {**labels, **_labels(target)}
        )
    for (target, kind), count in sorted(totals.bad.items(), key=lambda e: (e[0][0].name, e[0][1])):
        yield Sample(
            metrics.CONSUMER_BAD_RECORDS_TOTAL, count, {**labels, **_labels(target), "kind": kind}
        )
    for target, names in _by_name(totals.new_fields):
        yield Sample(
            metrics.CONSUMER_NEW_FIELDS_TOTAL, sum(names.values()), {**labels, **_labels(target)}
        )
    for target, version in _by_name(totals.versions):
        yield Sample(metrics.CONSUMER_SCHEMA_VERSION, version, {**labels, **_labels(target)})
