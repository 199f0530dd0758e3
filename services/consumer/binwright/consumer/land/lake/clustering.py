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
from binwright.consumer.land.lake.delta import set_properties, settings
from binwright.consumer.land.lake.table_columns import layout_of
from binwright.lake.lake_reader import properties, quoted
from binwright.tables.columns import parse_path
from binwright.tables.ports import Compaction, Table

_CUBES = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize"
FULL_CUBE, NEW_CUBE = f"{_CUBES}.threshold", f"{_CUBES}.targetCubeSize"
STEP = "spark.databricks.delta.optimize.batchSize"
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


def compact(spark: SparkSession, path: str, small_bytes: int, file_bytes: int) -> Compaction:
    """Merge files below `small_bytes` into ones of `file_bytes`.

    The session's settings have the same sizes; those of cubes are for a table that is clustered.
    """
    return _optimize(spark, path, {FULL_CUBE: str(small_bytes), NEW_CUBE: str(file_bytes)})


def cluster(spark: SparkSession, path: str, cube_bytes: int) -> Compaction:
    """Sort the rows of all cubes below `cube_bytes` into cubes of that size."""
    size = str(cube_bytes)
    return _optimize(spark, path, {FULL_CUBE: size, NEW_CUBE: size, STEP: size})


def _optimize(spark: SparkSession, path: str, sizes: Mapping[str, str]) -> Compaction:
    with settings(spark, sizes):
        metrics: Any = spark.sql(f"OPTIMIZE {quoted(path)}").select(
            "metrics.numFilesRemoved", "metrics.numFilesAdded"
        )
        return Compaction(*metrics.collect()[0])
