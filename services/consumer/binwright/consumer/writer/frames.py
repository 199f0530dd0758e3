"""Staged files as a frame of Spark's: the server reads them, nothing passes through here."""

import re
from collections.abc import Callable
from functools import reduce

from pyspark.sql.connect import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.rows import COLUMNS
from binwright.core.writer.batch import Batch, FileSlice

DDL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
READING = {
    # A file that Spark passes over would be rows that are lost (†).
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
TASK_BYTES = 128 << 20
"""A task more is a file more in the table, and small batches are no sooner there by it."""


def tasks_for(size: int) -> int:
    """Return in how many tasks, and so files, this many staged bytes are best written."""
    return max(1, -(-size // TASK_BYTES))


def frame_of(batch: Batch, directory: str) -> Callable[[SparkSession], DataFrame]:
    """Return what makes the frame of a batch, of files in `directory`."""
    if not batch.slices:
        return nothing
    whole = [part for part in batch.slices if part.whole]
    parts = [part for part in batch.slices if not part.whole]

    def made(spark: SparkSession) -> DataFrame:
        frames = [_read(spark, directory, whole)] if whole else []
        frames += [_read(spark, directory, [part]).where(condition(part)) for part in parts]
        return reduce(DataFrame.unionAll, frames).coalesce(tasks_for(batch.bytes))

    return made


def _read(spark: SparkSession, directory: str, parts: list[FileSlice]) -> DataFrame:
    paths = [_literal(f"{directory}/{part.file}") for part in parts]
    frame = spark.read.schema(DDL).options(**READING).parquet(*paths)
    return frame.select(*(F.col(name).cast(kind).alias(name) for name, kind in COLUMNS.items()))


def condition(part: FileSlice) -> str:
    """Return, in SQL, which rows of a file are taken."""
    return " OR ".join(
        f"(partition = {int(p)} AND offset >= {int(first)} AND offset < {int(end)})"
        for p, (first, end) in sorted(part.ranges.items())
    )


def nothing(spark: SparkSession) -> DataFrame:
    """Return a frame without rows; the server is asked nothing for it."""
    columns = [f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in COLUMNS.items()]
    return spark.range(1).where("false").selectExpr(*columns)


def spark_path(path: str) -> str:
    """Return a place as Spark's file systems name it; what is behind a ? is for Arrow's."""
    scheme, mark, rest = path.partition("://")
    rest = rest.partition("?")[0]
    return f"{'s3a' if scheme == 's3' else scheme}://{rest}" if mark else path


def _literal(path: str) -> str:
    return re.sub(r"([*?{}\[\]\\])", r"\\\1", path)  # they would be a pattern
