"""A consumer's own metrics, from the report that it sends.

`views.page.server` derives those of a whole group from its status, under the same names.
"""

from collections.abc import Iterator, Mapping

from binwright.consumer.decoding.decoders import DecodingTotals
from binwright.consumer.timings import Timings
from binwright.protocol.messages import Report, TableReport
from binwright.runtime.metrics import Sample


def consumer_samples(
    group: str, report: Report, now_ms: int, decoding: DecodingTotals, timings: Timings
) -> Iterator[Sample]:
    """Yield the metrics of one consumer, and of the tables that it writes.

    Args:
        group: Its group.
        report: What it reports.
        now_ms: Wall clock.
        decoding: What it has decoded.
        timings: How long its writing takes; of tables that it no longer writes, too.
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
    yield Sample("binwright_staging_seconds", timings.staging, labels)
    for topic, took in sorted(timings.commits.items()):
        yield Sample("binwright_commit_seconds", took, {"group": group, "topic": topic})
    for topic, ages in sorted(timings.oldest_rows.items()):
        yield Sample("binwright_oldest_row_age_seconds", ages, {"group": group, "topic": topic})
    yield from _decoding(labels, decoding)
    for topic, table in sorted(report.writing.items()):
        yield from _table(group, topic, table, now_ms)


def _decoding(labels: Mapping[str, str], totals: DecodingTotals) -> Iterator[Sample]:
    for outcome, count in sorted(totals.requests.items()):
        name = "binwright_consumer_registry_requests_total"
        yield Sample(name, count, {**labels, "outcome": outcome})
    for topic, seconds in sorted(totals.seconds.items()):
        name = "binwright_consumer_decoding_seconds_total"
        yield Sample(name, seconds, {**labels, "topic": topic})
    for (topic, kind), count in sorted(totals.bad.items()):
        name = "binwright_consumer_bad_records_total"
        yield Sample(name, count, {**labels, "topic": topic, "kind": kind})
    for topic, version in sorted(totals.versions.items()):
        yield Sample("binwright_consumer_schema_version", version, {**labels, "topic": topic})


def _table(group: str, topic: str, table: TableReport, now_ms: int) -> Iterator[Sample]:
    labels = {"group": group, "topic": topic}
    yield Sample("binwright_table_age_seconds", table.age_s, labels)
    if table.newest_ms is not None:
        age_s = max(0, now_ms - table.newest_ms) / 1000
        yield Sample("binwright_table_freshness_seconds", age_s, labels)
    yield Sample("binwright_table_pending_bytes", table.pending_bytes, labels)
    yield Sample("binwright_table_rows_total", table.rows, labels)
    yield Sample("binwright_table_bad_records_total", table.bad, labels)
    yield Sample("binwright_table_skipped_records_total", table.skipped, labels)
    yield Sample("binwright_table_commits_total", table.commits, labels)
    yield Sample("binwright_table_landing", table.state == "landing", labels)
    yield Sample("binwright_table_refused", table.state == "refused", labels)
    yield Sample("binwright_table_paused", table.state == "paused", labels)
