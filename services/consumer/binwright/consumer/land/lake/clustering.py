"""How rows lie in a table's files: statistics of columns, compaction, and clustering.

Where a table is clustered, Delta sorts the rows of a *cube* of files together, so that each of them
has few values; what is new is sorted with the cubes that are not full. A compaction fills cubes of
one file, and so rewrites little. Once enough has landed, `cluster` makes cubes of many files.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import (
    DataType,
    DateType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampType,
)

from binwright.consumer.land.lake.creation import STATISTICS, with_retries
from binwright.consumer.land.lake.delta import COMPILED, set_properties, settings
from binwright.consumer.land.lake.staged_rows import literal_text
from binwright.consumer.land.lake.table_columns import layout_of
from binwright.lake.lake_reader import properties, quoted
from binwright.tables.columns import KAFKA_DATE, parse_path
from binwright.tables.ports import Compaction, Portion, Table

_CUBES = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize"
FULL_CUBE, NEW_CUBE = f"{_CUBES}.threshold", f"{_CUBES}.targetCubeSize"
_OPTIMIZE = "spark.databricks.delta.optimize"
SMALL_FILE, LARGE_FILE = f"{_OPTIMIZE}.minFileSize", f"{_OPTIMIZE}.maxFileSize"
WRITES = {
    f"{_OPTIMIZE}.maxThreads": "1",
    "spark.sql.parquet.compression.codec": "zstd",  # as consumers write; snappy takes twice as much
}
"""How files are written again."""
STEP = f"{_OPTIMIZE}.batchSize"
"""Bytes after which an OPTIMIZE commits: what it has done then is not done again."""


def arrange(spark: SparkSession, path: str, table: Table) -> tuple[str, ...]:
    """Make statistics and clustering of a table those that its settings name.

    Returns:
        What waits until the table has a column of this name whose values have an order.
    """
    there = spark.table(quoted(path)).schema
    named = dict.fromkeys((*table.cluster_by, *table.statistics))
    waiting = tuple(name for name in named if not _has_order(there, name))
    first = (*layout_of(table.columns).statistics, *named)
    wanted = ",".join(dict.fromkeys(name for name in first if name not in waiting))
    if properties(spark, path).get(STATISTICS) != wanted:
        with_retries(lambda: set_properties(spark, path, {STATISTICS: wanted}))
    if table.cluster_by and not {*table.cluster_by} & {*waiting}:
        with_retries(lambda: _cluster_by(spark, path, table.cluster_by))
    return waiting


def _cluster_by(spark: SparkSession, path: str, wanted: tuple[str, ...]) -> None:
    detail: Any = spark.sql(f"DESCRIBE DETAIL {quoted(path)}").select("clusteringColumns")
    there = detail.collect()[0][0] or ()
    if [*map(_folded, there)] != [*map(_folded, wanted)]:
        spark.sql(f"ALTER TABLE {quoted(path)} CLUSTER BY ({', '.join(wanted)})").collect()


def _folded(path: str) -> tuple[str, ...]:
    return tuple(name.casefold() for name in parse_path(path))


def _has_order(there: StructType, path: str) -> bool:
    """Return whether a table has this column, or field, and files can have statistics of it."""
    here: DataType = there
    for name in parse_path(path):
        fields = here.fields if isinstance(here, StructType) else ()
        types = (f.dataType for f in fields if f.name.casefold() == name.casefold())
        here = next(types, NullType())
    return isinstance(here, NumericType | StringType | DateType | TimestampType)


def compact(spark: SparkSession, path: str, portion: Portion, file_bytes: int) -> Compaction:
    """Merge a portion's files into ones of `file_bytes`.

    One file after the other is written, by one task: the server's other cores stay free for what
    lands. Cubes are of a table that is clustered.
    """
    small, size = str(portion.below_bytes), str(file_bytes)
    sizes = {SMALL_FILE: small, LARGE_FILE: size, FULL_CUBE: small, NEW_CUBE: size}
    return _optimize(spark, path, sizes, portion.day)


def cluster(spark: SparkSession, path: str, cube_bytes: int, file_bytes: int) -> Compaction:
    """Sort the rows of all cubes below `cube_bytes` into cubes of that size."""
    size = str(cube_bytes)
    sizes = {LARGE_FILE: str(file_bytes), FULL_CUBE: size, NEW_CUBE: size, STEP: size}
    return _optimize(spark, path, sizes)


def _optimize(
    spark: SparkSession, path: str, sizes: Mapping[str, str], day: str | None = None
) -> Compaction:
    where = "" if day is None else f" WHERE {KAFKA_DATE} = DATE{literal_text(day)}"
    with settings(spark, {**COMPILED, **WRITES, **sizes}):
        metrics: Any = spark.sql(f"OPTIMIZE {quoted(path)}{where}").select(
            "metrics.numFilesRemoved",
            "metrics.numFilesAdded",
            "metrics.filesRemoved.totalSize",
            "metrics.filesAdded.totalSize",
        )
        removed, added, removed_bytes, added_bytes = metrics.collect()[0]
    return Compaction(removed, added, removed_bytes or 0, added_bytes or 0)
