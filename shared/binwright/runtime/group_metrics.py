"""Metrics of consumers and of tables: a consumer has its own, the page those of a group."""

from collections.abc import Iterator, Mapping

from binwright.protocol.metadata import TableReport
from binwright.runtime.metrics import SLOT, TABLE, Metric, Sample

CONSUMER_READY = Metric(
    "binwright_consumer_ready",
    "1 while the consumer can stage, so that it may get partitions.",
    SLOT,
    "consumer, group",
)
CONSUMER_PARTITIONS = Metric(
    "binwright_consumer_partitions", "Partitions that the consumer reads.", SLOT, "consumer, group"
)
CONSUMER_STAGING_BYTES_PER_SECOND = Metric(
    "binwright_consumer_staging_bytes_per_second",
    "Bytes/s that the consumer stages.",
    SLOT,
    "consumer, group",
)
CONSUMER_STAGED_BYTES = Metric(
    "binwright_consumer_staged_bytes",
    "Bytes in the consumer's staged files that wait to land.",
    SLOT,
    "consumer, group",
)
CONSUMER_BUSY_RATIO = Metric(
    "binwright_consumer_busy_ratio",
    "Share of the time in which fetching waited for staging.",
    SLOT,
    "consumer, group",
)
CONSUMER_CAPACITY_BYTES_PER_SECOND = Metric(
    "binwright_consumer_capacity_bytes_per_second",
    "Bytes/s, as stored, that the consumer could read, as it has measured.",
    SLOT,
    "consumer, group",
)
CONSUMER_LOST_OFFSETS_TOTAL = Metric(
    "binwright_consumer_lost_offsets_total",
    "Offsets that retention took unread, or that could not be decoded.",
    SLOT,
    "consumer, group",
)
TABLE_AGE_SECONDS = Metric(
    "binwright_table_age_seconds",
    "Age of the oldest staged row that has not landed; 0: none.",
    TABLE,
    "consumer, group",
)
TABLE_FRESHNESS_SECONDS = Metric(
    "binwright_table_freshness_seconds",
    "Age of the newest record that has landed, now; none before the first.",
    TABLE,
    "consumer, group",
)
TABLE_PENDING_BYTES = Metric(
    "binwright_table_pending_bytes",
    "Bytes in staged files of the table that wait to land.",
    TABLE,
    "consumer, group",
)
TABLE_ROWS_TOTAL = Metric(
    "binwright_table_rows_total",
    "Rows landed by the table's writer, about.",
    TABLE,
    "consumer, group",
)
TABLE_BAD_RECORDS_TOTAL = Metric(
    "binwright_table_bad_records_total",
    "Bad records landed by the table's writer; `binwright_table_rows_total` has them, too.",
    TABLE,
    "consumer, group",
)
TABLE_SKIPPED_RECORDS_TOTAL = Metric(
    "binwright_table_skipped_records_total",
    "Records that are in no table, as `tombstones` and `where` want.",
    TABLE,
    "consumer, group",
)
TABLE_COMMITS_TOTAL = Metric(
    "binwright_table_commits_total", "Commits made by the table's writer.", TABLE, "consumer, group"
)
TABLE_SMALL_FILES = Metric(
    "binwright_table_small_files",
    "Small files of the table that can be merged with others, about.",
    TABLE,
    "consumer, group",
)
TABLE_SMALL_BYTES = Metric(
    "binwright_table_small_bytes",
    "Bytes in the table's small files.",
    TABLE,
    "consumer, group",
)
TABLE_COMPACTION_SECONDS_TOTAL = Metric(
    "binwright_table_compaction_seconds_total",
    "Time that the table's writer had Spark merge small files, or sort rows by `cluster_by`.",
    TABLE,
    "consumer, group",
)
TABLE_COMPACTION_READ_FILES_TOTAL = Metric(
    "binwright_table_compaction_read_files_total",
    "Files that were merged, or whose rows were sorted.",
    TABLE,
    "consumer, group",
)
TABLE_COMPACTION_READ_BYTES_TOTAL = Metric(
    "binwright_table_compaction_read_bytes_total",
    "Bytes in files that were merged, or whose rows were sorted.",
    TABLE,
    "consumer, group",
)
TABLE_COMPACTION_WRITTEN_FILES_TOTAL = Metric(
    "binwright_table_compaction_written_files_total",
    "Files that replaced those that were merged or sorted.",
    TABLE,
    "consumer, group",
)
TABLE_COMPACTION_WRITTEN_BYTES_TOTAL = Metric(
    "binwright_table_compaction_written_bytes_total",
    "Bytes in files that replaced those that were merged or sorted.",
    TABLE,
    "consumer, group",
)
TABLE_OPERATION_RUNNING = Metric(
    "binwright_table_operation_running",
    "1 while the table's writer does the work that a person ordered last; 0: it has ended.",
    (*TABLE, "work"),
    "consumer, group",
)
TABLE_OPERATION_FAILED = Metric(
    "binwright_table_operation_failed",
    "1 while the work that a person ordered last has failed, or does not go on.",
    (*TABLE, "work"),
    "consumer, group",
)
TABLE_OPERATION_RECORDS = Metric(
    "binwright_table_operation_records",
    "Records of the work that a person ordered last: moved, left, skipped or masked (replay); "
    "erased, bad_erased or bad_left (erase); rows, bad, skipped, gone or to_go (backfill; the last "
    "two are offsets).",
    (*TABLE, "work", "outcome"),
    "consumer, group",
)
TABLE_LANDING = Metric(
    "binwright_table_landing",
    "1 while the table's writer lands what is staged; 0 also while Spark is away.",
    TABLE,
    "consumer, group",
)
TABLE_REFUSED = Metric(
    "binwright_table_refused",
    "1 while the table refuses writes (column, constraint, right).",
    TABLE,
    "consumer, group",
)
TABLE_REGISTERED = Metric(
    "binwright_table_registered",
    "1 once the table has its name in the catalog; 0 until then; none without `register_as`.",
    TABLE,
    "consumer, group",
)
TABLE_PAUSED = Metric(
    "binwright_table_paused", "1 while a person has paused the table.", TABLE, "consumer, group"
)


def table_samples(
    labels: Mapping[str, str], table: TableReport, state: str, freshness_s: float | None
) -> Iterator[Sample]:
    """Yield the metrics of a table.

    Args:
        labels: Its own.
        table: What its writer reports.
        state: Of the report, or of who has read it and knows more: its writer may be silent.
        freshness_s: Age of the newest record that has landed; None: not known.
    """
    yield Sample(TABLE_AGE_SECONDS, table.age_s, labels)
    if freshness_s is not None:
        yield Sample(TABLE_FRESHNESS_SECONDS, freshness_s, labels)
    yield Sample(TABLE_PENDING_BYTES, table.pending_bytes, labels)
    yield Sample(TABLE_ROWS_TOTAL, table.rows, labels)
    yield Sample(TABLE_BAD_RECORDS_TOTAL, table.bad, labels)
    yield Sample(TABLE_SKIPPED_RECORDS_TOTAL, table.skipped, labels)
    yield Sample(TABLE_COMMITS_TOTAL, table.commits, labels)
    # While Spark is away a table is `landing`, and has a fault.
    yield Sample(TABLE_LANDING, state == "landing" and not table.fault, labels)
    yield Sample(TABLE_REFUSED, state == "refused", labels)
    yield Sample(TABLE_PAUSED, state == "paused", labels)
    if (compaction := table.compaction) is not None:
        yield Sample(TABLE_SMALL_FILES, compaction.small_files, labels)
        yield Sample(TABLE_SMALL_BYTES, compaction.small_bytes, labels)
        yield Sample(TABLE_COMPACTION_SECONDS_TOTAL, compaction.seconds, labels)
        yield Sample(TABLE_COMPACTION_READ_FILES_TOTAL, compaction.files_read, labels)
        yield Sample(TABLE_COMPACTION_READ_BYTES_TOTAL, compaction.bytes_read, labels)
        yield Sample(TABLE_COMPACTION_WRITTEN_FILES_TOTAL, compaction.files_written, labels)
        yield Sample(TABLE_COMPACTION_WRITTEN_BYTES_TOTAL, compaction.bytes_written, labels)
    if table.registration is not None:
        yield Sample(TABLE_REGISTERED, table.registration.registered, labels)
    if (operation := table.operation) is not None:
        own = {**labels, "work": operation.work}
        yield Sample(TABLE_OPERATION_RUNNING, operation.state == "running", own)
        yield Sample(TABLE_OPERATION_FAILED, bool(operation.fault), own)
        for outcome, count in operation.outcomes.items():
            yield Sample(TABLE_OPERATION_RECORDS, count, {**own, "outcome": outcome})
