"""Reads what a table's log has for people. All calls block, and raise what pyspark raises."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from binwright.audit.lake_reader import delta_table, is_of_columns, quoted
from binwright.audit.log_generations import any_stamp
from binwright.consumer.decide.table_facts import CommitFacts, Facts, commit_facts
from binwright.consumer.lake.delta import STATISTICS
from binwright.protocol.names import BAD_SUFFIX

COMMITS = 10  # that are described
_COMMITS = ("version", "unix_millis(timestamp)", "operation", "operationMetrics", "userMetadata")


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
    paused: str  # who paused it, when and why, as its newest stamp has it; empty: it lands
    commits: tuple[CommitFacts, ...]  # the newest, newest first


def read_facts(spark: Any, path: str) -> Facts | None:
    """Return what the log of a table has in numbers, without a scan; None: there is no table."""
    if (table := delta_table(spark, path)) is None:
        return None
    bad = delta_table(spark, path + BAD_SUFFIX) if is_of_columns(table) else None
    newest = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT 1").select("version").collect()[0]
    return Facts(newest.version, table.count(), None if bad is None else bad.count())


def read_details(spark: Any, path: str, topic: str) -> tuple[Facts, Details] | None:
    """Return all that is known of a topic's table; None: there is none. Scans its bad records."""
    if (facts := read_facts(spark, path)) is None:
        return None
    schema = spark.table(quoted(path)).schema
    detail = spark.sql(f"DESCRIBE DETAIL {quoted(path)}").collect()[0].asDict()
    history = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT {COMMITS}")
    commits = [tuple(row) for row in history.selectExpr(*_COMMITS).collect()]
    stamps = (any_stamp(metadata, topic) for *_, metadata in commits)
    newest = next((stamp for stamp in stamps if stamp is not None), None)
    statistics = detail["properties"].get(STATISTICS, "")
    return facts, Details(
        columns={field.name: field.dataType.simpleString() for field in schema.fields},
        files=detail["numFiles"],
        bytes=detail["sizeInBytes"],
        reader_version=detail["minReaderVersion"],
        writer_version=detail["minWriterVersion"],
        features=tuple(sorted(detail["tableFeatures"] or ())),
        clustered_by=tuple(detail["clusteringColumns"] or ()),
        statistics=tuple(statistics.split(",")) if statistics else (),
        bad_kinds=_bad_kinds(spark, path + BAD_SUFFIX) if facts.bad else {},
        paused="" if newest is None else newest.paused,
        commits=tuple(commit_facts(*row[:4]) for row in commits),
    )


def _bad_kinds(spark: Any, path: str) -> Mapping[str, int]:
    counted = spark.table(quoted(path)).groupBy("kind").count()
    return dict(sorted(map(tuple, counted.collect())))
