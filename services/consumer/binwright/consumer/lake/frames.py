"""Builds Spark data frames of staged files: the server reads them, not this process."""

import re
from collections.abc import Callable
from functools import reduce

from pyspark.sql.connect import functions as F  # noqa: N812 - the usual name
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.staging.rows import COLUMNS
from binwright.protocol.ports.lake import Batch, FileSlice

DDL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
READING = {
    # The rows of a file that Spark skipped would be lost (†).
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
TASK_BYTES = 128 << 20
"""Staged bytes per task. Each task writes one file; more tasks do not speed up small batches."""


def tasks_for(size: int) -> int:
    """Return the number of tasks, and so of files, for `size` staged bytes."""
    return max(1, -(-size // TASK_BYTES))


def frame_of(batch: Batch, directory: str) -> Callable[[SparkSession], DataFrame]:
    """Return a function that builds the frame of a batch of files in `directory`."""
    if not batch.slices:
        return empty_frame
    whole = [part for part in batch.slices if part.whole]
    parts = [part for part in batch.slices if not part.whole]

    def build(spark: SparkSession) -> DataFrame:
        frames = [_read(spark, directory, whole)] if whole else []
        frames += [_read(spark, directory, [part]).where(condition(part)) for part in parts]
        return reduce(DataFrame.unionAll, frames).coalesce(tasks_for(batch.bytes))

    return build


def _read(spark: SparkSession, directory: str, parts: list[FileSlice]) -> DataFrame:
    paths = [_literal(f"{directory}/{part.file}") for part in parts]
    frame = spark.read.schema(DDL).options(**READING).parquet(*paths)
    return frame.select(*(F.col(name).cast(kind).alias(name) for name, kind in COLUMNS.items()))


def condition(part: FileSlice) -> str:
    """Return the SQL condition of the rows that a slice takes from its file."""
    return " OR ".join(
        f"(partition = {int(p)} AND offset >= {int(first)} AND offset < {int(end)})"
        for p, (first, end) in sorted(part.ranges.items())
    )


def empty_frame(spark: SparkSession) -> DataFrame:
    """Return a frame without rows, built without a call of the server."""
    columns = [f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in COLUMNS.items()]
    return spark.range(1).where("false").selectExpr(*columns)


def spark_path(path: str) -> str:
    """Return a path as Spark's file systems name it, without the options for Arrow behind a `?`."""
    scheme, mark, rest = path.partition("://")
    rest = rest.partition("?")[0]
    return f"{'s3a' if scheme == 's3' else scheme}://{rest}" if mark else path


def _literal(path: str) -> str:
    return re.sub(r"([*?{}\[\]\\])", r"\\\1", path)  # else a glob pattern
