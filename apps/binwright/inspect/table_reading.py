"""Reads what a table's log has for people. All calls block, and raise what pyspark raises."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from binwright.consumer.land.lake.creation import STATISTICS
from binwright.inspect.decide.table_facts import BadRecord, CommitFacts, Facts, commit_facts
from binwright.lake.lake_reader import delta_table, is_of_columns, quoted
from binwright.lake.log_generations import any_stamp
from binwright.protocol.names import BAD_SUFFIX

COMMITS = 10  # that are described
BAD_RECORDS = 10  # likewise
_COMMITS = ("version", "unix_millis(timestamp)", "operation", "operationMetrics", "userMetadata")
_BAD = ("_kafka.partition", "_kafka.offset", "kind", "reason")


@dataclass(frozen=True, slots=True)
class Details:
    """What there is of one table beside `Facts`."""

    columns: Mapping[str, str]  # name -> Spark's type, in order
    files: int
    bytes: int
    reader_version: int  # of Delta's protocol
    writer_version: int
    features: tuple[str, ...]  # likewise, in order
    clustered_by: tuple[str, ...]
    statistics: tuple[str, ...]  # columns of which files have them; none: Delta's first 32
    bad_kinds: Mapping[str, int]
    bad_records: tuple[BadRecord, ...]  # that landed last, newest first
    paused: str  # who paused it, when and why, as its newest stamp has it; empty: it lands
    commits: tuple[CommitFacts, ...]  # the newest, newest first


def read_facts(spark: Any, path: str) -> Facts | None:
    """Return what the log of a table has in numbers, without a scan; None: there is no table."""
    if (table := delta_table(spark, path)) is None:
        return None
    return _facts(spark, path, table, _history(spark, path, 1)[0][0])


def read_details(spark: Any, path: str) -> tuple[Facts, Details] | None:
    """Return all that is known of a table; None: there is none. Scans its bad records."""
    if (table := delta_table(spark, path)) is None:
        return None
    commits = _history(spark, path, COMMITS)
    facts = _facts(spark, path, table, commits[0][0])
    detail = spark.sql(f"DESCRIBE DETAIL {quoted(path)}").collect()[0].asDict()
    stamps = (any_stamp(metadata, "") for *_, metadata in commits)
    newest = next((stamp for stamp in stamps if stamp is not None), None)
    bad = spark.table(quoted(path + BAD_SUFFIX)) if facts.bad else None
    statistics = detail["properties"].get(STATISTICS, "")
    return facts, Details(
        columns={field.name: field.dataType.simpleString() for field in table.schema.fields},
        files=detail["numFiles"],
        bytes=detail["sizeInBytes"],
        reader_version=detail["minReaderVersion"],
        writer_version=detail["minWriterVersion"],
        features=tuple(sorted(detail["tableFeatures"] or ())),
        clustered_by=tuple(detail["clusteringColumns"] or ()),
        statistics=tuple(statistics.split(",")) if statistics else (),
        bad_kinds={} if bad is None else _bad_kinds(bad),
        bad_records=() if bad is None else _bad_records(bad),
        paused="" if newest is None else newest.paused,
        commits=tuple(commit_facts(*row[:4]) for row in commits),
    )


def _facts(spark: Any, path: str, table: Any, version: int) -> Facts:
    bad = delta_table(spark, path + BAD_SUFFIX) if is_of_columns(table) else None
    return Facts(version, table.count(), None if bad is None else bad.count())


def _history(spark: Any, path: str, commits: int) -> list[tuple[Any, ...]]:
    """Return `_COMMITS` of the newest versions, newest first."""
    history = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT {commits}")
    return [tuple(row) for row in history.selectExpr(*_COMMITS).collect()]


def _bad_kinds(bad: Any) -> Mapping[str, int]:
    return dict(sorted(map(tuple, bad.groupBy("kind").count().collect())))


def _bad_records(bad: Any) -> tuple[BadRecord, ...]:
    order = ("landed_at", "_kafka.partition", "_kafka.offset")
    newest = bad.orderBy(*order, ascending=False).limit(BAD_RECORDS)
    return tuple(BadRecord(*row) for row in newest.select(*_BAD).collect())
