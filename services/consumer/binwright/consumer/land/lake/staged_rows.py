"""Frames of the rows of staged files: the server reads them, not this process.

A staged file has raw records, or decoded values: rows as the table has them, or `row`; where one
could not be decoded, `row` is NULL, and `bad` has its bytes and what is wrong with them. Those of
rows as the table has them are in a file beside it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql.connect import functions as sf
from pyspark.sql.connect.column import Column as SparkColumn
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.land.lake.table_columns import KAFKA_COLUMN, PLACE, RECORD_COLUMNS
from binwright.lake.lake_reader import quoted
from binwright.protocol.names import bad_file
from binwright.tables.columns import (
    KAFKA,
    KAFKA_DATE,
    Column,
    Columns,
    Simple,
    Struct,
    columns_text,
    is_variant,
    parse_columns,
)
from binwright.tables.columns import quoted as quoted_name
from binwright.tables.ports import Batch, Ranges

Frame = Callable[[SparkSession], DataFrame]

READING = {
    # The rows of a file that Spark skipped would be lost (†).
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
TASK_BYTES = 128 << 20
"""Staged bytes per task. Each task writes one file; more tasks do not speed up small batches."""
DAY = "date_from_unix_date(CAST(unix_seconds(timestamp) DIV 86400 AS INT))"
"""UTC, whatever the session's time zone; NULL without a timestamp."""
LANDED = ("topic", "partition", "offset", "timestamp")
"""What tells records of a topic apart, also of one that was made anew."""
FAULT = parse_columns("bad struct<value:binary,kind:string,reason:string>")


def tasks_for(size: int) -> int:
    """Return the number of tasks, and so of files, for `size` staged bytes."""
    return max(1, -(-size // TASK_BYTES))


def rows(batch: Batch, directory: str, lease: str, bad_path: str, *, dated: bool = False) -> Frame:
    """Return a function that builds the frame of a batch, without its bad records.

    Args:
        batch: What to read; its `columns` say whether its files have raw records.
        directory: Of the staged files and the lease.
        lease: Read like a staged file: by a task, so after the commit's snapshot (†).
        bad_path: Of the table of bad records.
        dated: Whether rows have the day of their record.
    """

    def build(spark: SparkSession) -> DataFrame:
        if batch.columns is None:
            frame = _staged(spark, batch, directory, lease, RECORD_COLUMNS)
        else:
            # A stamp's frame has no columns, and a struct cannot have none.
            staged = _as_staged(batch.columns)
            row = (Column("row", Struct(staged)),) if staged else ()
            fault = FAULT if batch.bad else ()
            frame = _staged(spark, batch, directory, lease, (*PLACE, *row, *fault))
            frame = frame.where("bad IS NULL") if fault else frame
            frame = _not_landed(spark, frame, batch, bad_path)
            day = (sf.expr(DAY).alias(KAFKA_DATE),) if dated else ()
            frame = frame.select(_place(), *day, *_values(batch.columns))
        return frame.coalesce(tasks_for(batch.bytes))

    return build


def bad_records(batch: Batch, directory: str, lease: str, bad_path: str) -> Frame:
    """Return a function that builds the frame of a batch's bad records; see `rows`, `of_bad`."""

    def build(spark: SparkSession) -> DataFrame:
        frame = _staged(spark, batch, directory, lease, (*PLACE, *FAULT))
        frame = _not_landed(spark, frame.where("bad IS NOT NULL"), batch, bad_path)
        topic_id = _topic_id(batch.topic_ids).alias("topic_id")
        fault = ("bad.kind", "bad.reason", "bad.value")
        landed_at = sf.current_timestamp().alias("landed_at")
        frame = frame.select(_place(), topic_id, *fault, landed_at)
        return frame.coalesce(tasks_for(batch.bytes))

    return build


def of_bad(batch: Batch) -> Batch:
    """Return a batch of the files that have the bad records of this one; those beside are small."""
    beside = (replace(p, file=bad_file(p.file)) for p in batch.slices if p.file in batch.beside)
    others = [part for part in batch.slices if part.file not in batch.as_table]
    size = sum(part.bytes for part in others)
    return replace(batch, slices=(*others, *beside), bytes=size, as_table=frozenset())


def _topic_id(topic_ids: Mapping[str, str | None]) -> SparkColumn:
    """Return the id of a row's topic; NULL where Kafka has none."""
    topic_id_of = sf.lit(None)
    for topic, topic_id in sorted(topic_ids.items()):
        topic_id_of = sf.when(sf.col("topic") == topic, sf.lit(topic_id)).otherwise(topic_id_of)
    return topic_id_of.cast("string")


def _staged(
    spark: SparkSession, batch: Batch, directory: str, lease: str, columns: Columns
) -> DataFrame:
    """Return the rows of a batch; columns and fields that a file lacks are NULL."""
    whole = [part.file for part in batch.slices if part.whole]
    parts = [part for part in batch.slices if not part.whole]

    def read(files: Sequence[str], *, as_table: bool) -> DataFrame:
        paths = [literal(f"{directory}/{file}") for file in files]
        there = (KAFKA_COLUMN, *(batch.columns or ())) if as_table else columns
        frame = spark.read.schema(columns_text(there)).options(**READING).parquet(*paths)
        return frame.select(*_of_table(columns)) if as_table else frame

    frames = [read([lease, *(f for f in whole if f not in batch.as_table)], as_table=False)]
    if of_table := [file for file in whole if file in batch.as_table]:
        frames.append(read(of_table, as_table=True))
    for part in parts:
        frame = read([part.file], as_table=part.file in batch.as_table)
        frames.append(frame.where(condition(part.ranges)))
    return reduce(lambda all_of, more: all_of.unionAll(more), frames)


def _of_table(columns: Columns) -> Iterator[SparkColumn]:
    """Yield these columns, of a file whose rows are as the table's; none of its records is bad."""
    for column in columns:
        match column:
            case Column("row", Struct(fields)):
                row = sf.struct(*(sf.col(quoted_name(each.name)) for each in fields))
                yield row.alias("row")
            case Column("bad"):
                yield sf.lit(None).cast(str(column.type)).alias("bad")
            case _:
                yield sf.col(f"{KAFKA}.{column.name}")


def _values(columns: Columns) -> list[SparkColumn]:
    """Return the columns of a row; each variant is parsed, which fails the commit if it cannot."""
    if not any(map(is_variant, columns)):
        return [sf.col("row.*")] if columns else []
    return [_value(column) for column in columns]


def _value(column: Column) -> SparkColumn:
    value = sf.col(f"row.{quoted_name(column.name)}")
    return (sf.parse_json(value) if is_variant(column) else value).alias(column.name)


def _as_staged(columns: Columns) -> Columns:
    """Return the columns as they are in files: variants are text."""
    text = Simple("string")
    return tuple(Column(c.name, text) if is_variant(c) else c for c in columns)


def _place() -> SparkColumn:
    return sf.struct(*(column.name for column in PLACE)).alias(KAFKA)


def _not_landed(spark: SparkSession, frame: DataFrame, batch: Batch, bad_path: str) -> DataFrame:
    """Leave out the rows that have landed as bad records, whatever they decode to now (†).

    Records of another topic of the same name may have the same offsets, and after a truncation of
    the log so may records of this one: these have other timestamps.
    """
    if not batch.landed_in_part:
        return frame
    landed = (
        spark.table(quoted(bad_path))
        .selectExpr("topic_id", *(f"{KAFKA}.{name}" for name in LANDED))
        .where(" OR ".join(f"({part})" for part in _landed_before(batch)))
        .selectExpr(*(f"{name} AS landed_{name}" for name in LANDED))
    )
    same = sf.expr(" AND ".join(f"{name} <=> landed_{name}" for name in LANDED))
    return frame.join(landed, same, "left_anti")


def _landed_before(batch: Batch) -> Iterator[str]:
    """Yield conditions of the bad records that may be of a batch, one for each topic."""
    for topic, bounds in sorted(_bounds(batch).items()):
        topic_id = batch.topic_ids.get(topic)
        known = "NULL" if topic_id is None else literal_text(topic_id)
        yield f"topic = {literal_text(topic)} AND topic_id <=> {known} AND ({condition(bounds)})"


def _bounds(batch: Batch) -> Mapping[str, Ranges]:
    """Return one range of each topic's partitions that has all of the batch's."""
    bounds: dict[str, dict[int, tuple[int, int]]] = {}
    for part in batch.slices:
        of_topic = bounds.setdefault(part.topic, {})
        for partition, (first, end) in part.ranges.items():
            low, high = of_topic.get(partition, (first, end))
            of_topic[partition] = min(low, first), max(high, end)
    return bounds


def literal_text(value: str) -> str:
    """Return a literal of SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def condition(ranges: Ranges) -> str:
    """Return the SQL condition of the rows with these offsets."""
    return " OR ".join(
        f"(partition = {int(p)} AND offset >= {int(first)} AND offset < {int(end)})"
        for p, (first, end) in sorted(ranges.items())
    )


def literal(path: str) -> str:
    """Return a path for Spark's reader, which takes some characters for a pattern."""
    return re.sub(r"([*?{}\[\]\\])", r"\\\1", path)  # else a glob pattern
