"""What an audit found, as metrics for a file that Prometheus' node exporter reads."""

from collections.abc import Iterable

from binwright.inspect.audit import AuditResult
from binwright.runtime.metrics import Metric, Sample

_PARTITION = ("topic", "table", "partition")
CLEAN = Metric(
    "binwright_audit_clean",
    "1 if each record of the topic had one row in the table, and there was no other row.",
    ("topic", "table"),
    "audit",
)
TIME = Metric("binwright_audit_time_seconds", "When the audit ended, Unix time.", (), "audit")
UNPLACED = Metric(
    "binwright_audit_unplaced_rows",
    "Rows without a partition or an offset, or without a topic.",
    ("topic", "table"),
    "audit",
)
ROWS = Metric("binwright_audit_rows", "Rows of the partition in the table.", _PARTITION, "audit")
MISSING = Metric(
    "binwright_audit_missing_records",
    "Records without a row, and offsets without one that could not be checked.",
    _PARTITION,
    "audit",
)
SURPLUS = Metric(
    "binwright_audit_surplus_rows", "Second and further rows of an offset.", _PARTITION, "audit"
)
BEYOND = Metric(
    "binwright_audit_beyond_rows", "Rows at or past the topic's end.", _PARTITION, "audit"
)
STALE = Metric(
    "binwright_audit_stale_rows",
    "Rows of a table of keys that are not of the newest change of their key.",
    _PARTITION,
    "audit",
)


def audit_samples(result: AuditResult, now_s: float) -> Iterable[Sample]:
    """Yield the numbers of an audit that ended at `now_s`, seconds since 1970."""
    yield Sample(TIME, now_s)
    for table in result.tables:
        labels = {"topic": table.topic, "table": table.name}
        yield Sample(CLEAN, table.clean and table.exists, labels)
        yield Sample(UNPLACED, table.unplaced, labels)
        for part in table.partitions:
            own = {**labels, "partition": str(part.partition)}
            yield Sample(ROWS, part.rows, own)
            yield Sample(MISSING, part.lost + part.lost_to_retention + part.unread, own)
            yield Sample(SURPLUS, part.surplus, own)
            yield Sample(BEYOND, part.beyond, own)
            yield Sample(STALE, part.stale, own)
