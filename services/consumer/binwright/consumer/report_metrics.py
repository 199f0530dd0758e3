"""A consumer's own metrics, from the report that it sends.

`views.page.server` derives those of a whole group from its status, under the same names.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from binwright.consumer.decoding.decoders import DecodingTotals
from binwright.protocol.messages import Report, TableReport
from binwright.runtime.metrics import Sample, table_lands, topic_label
from binwright.runtime.settings import Target

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
    yield Sample("binwright_consumer_ready", report.ready, labels)
    yield Sample("binwright_consumer_partitions", len(report.reading), labels)
    yield Sample("binwright_consumer_staging_bytes_per_second", report.rate, labels)
    yield Sample("binwright_consumer_staged_rows_total", report.staged_rows, labels)
    yield Sample("binwright_consumer_staged_bytes", report.staged_bytes, labels)
    yield Sample("binwright_consumer_busy_ratio", report.busy, labels)
    if report.capacity is not None:
        capacity = report.capacity.bytes_per_s
        yield Sample("binwright_consumer_capacity_bytes_per_second", capacity, labels)
    yield Sample("binwright_consumer_lost_offsets_total", report.lost_offsets, labels)
    yield Sample("binwright_consumer_stuck_topics", len(report.faults), labels)
    yield from _decoding(labels, decoding)
    for name, table in sorted(report.writing.items()):
        topic = topic_label(table.topics_of(name))
        yield from _table({"group": group, "topic": topic, "table": name}, table, now_ms)


def _by_name(found: Mapping[Target, T]) -> list[tuple[Target, T]]:
    return sorted(found.items(), key=lambda each: each[0].name)


def _labels(target: Target) -> dict[str, str]:
    return {"topic": target.topic, "table": target.name}


def _decoding(labels: Mapping[str, str], totals: DecodingTotals) -> Iterator[Sample]:
    for outcome, count in sorted(totals.requests.items()):
        name = "binwright_consumer_registry_requests_total"
        yield Sample(name, count, {**labels, "outcome": outcome})
    for target, count in _by_name(totals.schema_faults):
        name = "binwright_consumer_schema_faults_total"
        yield Sample(name, count, {**labels, **_labels(target)})
    for target, seconds in _by_name(totals.seconds):
        name = "binwright_consumer_decoding_seconds_total"
        yield Sample(name, seconds, {**labels, **_labels(target)})
    for (target, kind), count in sorted(totals.bad.items(), key=lambda e: (e[0][0].name, e[0][1])):
        name = "binwright_consumer_bad_records_total"
        yield Sample(name, count, {**labels, **_labels(target), "kind": kind})
    for target, names in _by_name(totals.new_fields):
        name = "binwright_consumer_new_fields_total"
        yield Sample(name, sum(names.values()), {**labels, **_labels(target)})
    for target, version in _by_name(totals.versions):
        yield Sample("binwright_consumer_schema_version", version, {**labels, **_labels(target)})


def _table(labels: Mapping[str, str], table: TableReport, now_ms: int) -> Iterator[Sample]:
    yield Sample("binwright_table_age_seconds", table.age_s, labels)
    if table.newest_ms is not None:
        age_s = max(0, now_ms - table.newest_ms) / 1000
        yield Sample("binwright_table_freshness_seconds", age_s, labels)
    yield Sample("binwright_table_pending_bytes", table.pending_bytes, labels)
    yield Sample("binwright_table_rows_total", table.rows, labels)
    yield Sample("binwright_table_bad_records_total", table.bad, labels)
    yield Sample("binwright_table_skipped_records_total", table.skipped, labels)
    yield Sample("binwright_table_commits_total", table.commits, labels)
    yield Sample("binwright_table_landing", table_lands(table.state, table.fault), labels)
    yield Sample("binwright_table_refused", table.state == "refused", labels)
    yield Sample("binwright_table_paused", table.state == "paused", labels)
