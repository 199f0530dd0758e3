"""Creates Delta tables, also those whose creation was cut off. All calls block."""

import time
from collections.abc import Callable, Mapping
from zlib import crc32

from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType

from binwright.consumer.land.lake.faults import (
    ADDED_BEFORE,
    CONFLICTS,
    NO_VERSION,
    NOT_EMPTY,
    mentions,
)
from binwright.consumer.land.lake.staged_rows import literal_text
from binwright.consumer.land.lake.table_columns import Layout
from binwright.lake.lake_reader import quoted
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log
from binwright.tables.columns import Columns, columns_text

TABLE_COMPLETED = LogEvent.warning(
    "table.completed", "The creation of a table had been cut off, and was completed."
)

PROPERTIES = {
    # The log lists files removed by compaction for so long: 32 us per file and commit.
    "delta.deletedFileRetentionDuration": "interval 6 hours",
    "delta.logRetentionDuration": "interval 2 days",  # a claim reads back to the last full stamp
}
CHECKPOINT_INTERVALS = range(40, 60)
"""Commits between two checkpoints. One costs the CPU of a commit; each commit since adds 1 to 2 ms.

Tables differ, or those that began together would all write theirs together."""
STATISTICS = "delta.dataSkippingStatsColumns"
CREATION_S = 10.0  # another process may take so long to create the table
CREATION_PAUSE_S = 0.2


def create(
    spark: SparkSession, path: str, layout: Layout, comment: str, own: Mapping[str, str]
) -> None:
    """Create a table if it is missing; another process may be creating it, too.

    Args:
        spark: The session.
        path: Of the table.
        layout: Its columns.
        comment: On the table.
        own: Its properties that Delta does not read.
    """
    properties = {**_properties(path, layout), **own}
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {quoted(path)} "
        f"({columns_text((*layout.required, *layout.partitions, *layout.added))}) USING delta "
        f"{_partitioned_by(layout.partitions)}"
        f"COMMENT '{comment}' TBLPROPERTIES ({property_list(properties)})"
    ).collect()


def created(spark: SparkSession, path: str, layout: Layout) -> StructType:
    """Return the columns of a table that was just created.

    `CREATE TABLE IF NOT EXISTS` takes a directory with anything in it for a table, also one that it
    made itself before it was cut off: there is a log without a version, and no file. Such a table
    is created by a write without rows; it gets its owner as one that was created by hand.
    """
    try:
        return spark.table(quoted(path)).schema
    except PySparkException as exc:
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)
        if not mentions(exc, NO_VERSION) or not files.select("path").isEmpty():
            raise
    columns = columns_text((*layout.required, *layout.partitions, *layout.added))
    properties = _properties(path, layout)
    log(TABLE_COMPLETED, path=path)

    def write() -> None:
        writer = spark.createDataFrame([], columns).write.format("delta").options(**properties)
        by = [column.name for column in layout.partitions]
        writer.partitionBy(*by).mode("ignore").save(path)

    with_retries(write)
    return spark.table(quoted(path)).schema


def _properties(path: str, layout: Layout) -> dict[str, str]:
    """Return the properties that Delta itself reads."""
    return {
        **PROPERTIES,
        STATISTICS: ",".join(layout.statistics),
        "delta.checkpointInterval": str(checkpoint_interval(path.rpartition("/")[2])),
    }


def _partitioned_by(columns: Columns) -> str:
    return f"PARTITIONED BY ({', '.join(column.name for column in columns)}) " if columns else ""


def checkpoint_interval(name: str) -> int:
    """Return the number of commits between two checkpoints of the table in a directory `name`."""
    return CHECKPOINT_INTERVALS[crc32(name.encode()) % len(CHECKPOINT_INTERVALS)]


def with_retries(work: Callable[[], None]) -> None:
    """Do some work; after a conflict with another commit repeat it for `CREATION_S` seconds."""
    deadline: float | None = None
    while True:
        try:
            work()
        except Exception as exc:
            known = mentions(exc, *CONFLICTS, *ADDED_BEFORE, NOT_EMPTY)
            now = time.monotonic()
            deadline = now + CREATION_S if deadline is None else deadline  # one attempt may be long
            if not known or now > deadline:
                raise
            time.sleep(CREATION_PAUSE_S)
        else:
            return


def property_list(given: Mapping[str, str]) -> str:
    """Return properties as SQL lists them."""
    return ", ".join(f"'{key}' = {literal_text(value)}" for key, value in given.items())
