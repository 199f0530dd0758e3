"""SQL and writes for one Delta table over a Spark Connect session. All calls block."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any
from zlib import crc32

from pyspark.errors import PySparkException
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.lake.faults import CONFLICTS, NOT_EMPTY, mentions, reported_by_server
from binwright.consumer.staging.parquet import COLUMNS
from binwright.protocol.errors import TableRefused
from binwright.protocol.ports.lake import (
    Batch,
    Commit,
    Compaction,
    FileSlice,
    History,
    Table,
    TableFiles,
)

METADATA = "spark.databricks.delta.commitInfo.userMetadata"
"""The session's `userMetadata` of commits that have no option for it."""
DDL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
READING = {
    # The rows of a file that Spark skipped would be lost (†).
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
TASK_BYTES = 128 << 20
"""Staged bytes per task. Each task writes one file; more tasks do not speed up small batches."""
COMPILED = {
    # Statistics and projections of many rows take less CPU compiled; for few rows, compiling takes
    # more than all of it, so servers that land small appends have it off.
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""Settings of a session while it appends what takes more than one task."""
PROPERTIES = {
    # What people filter by. The topic is the same in all rows, and its statistics cost the most.
    "delta.dataSkippingStatsColumns": "partition,offset,timestamp",
    # The log lists files removed by compaction for so long: 32 us per file and commit.
    "delta.deletedFileRetentionDuration": "interval 6 hours",
    "delta.logRetentionDuration": "interval 2 days",  # a claim reads back to the last full stamp
}
CHECKPOINT_INTERVALS = range(40, 60)
"""Commits between two checkpoints. One costs the CPU of a commit; each commit since adds 1 to 2 ms.

Tables differ, or those that began together would all write theirs together."""
GROUP, CLUSTER, WRITER = "binwright.group", "binwright.cluster", "binwright.writer"
CREATION_S = 10.0  # another process may take so long to create the table
CREATION_PAUSE_S = 0.2


# --- open --------------------------------------------------------------------------------------


def ensure(spark: SparkSession, path: str, table: Table) -> None:
    """Create the table if it is missing; raise `TableRefused` if this group may not write it."""
    try:
        check_columns(spark, path)
    except PySparkException as exc:
        if not reported_by_server(exc):
            raise
        create(spark, path, table)
        check_columns(spark, path)
    check_owner(spark, path, table)


def create(spark: SparkSession, path: str, table: Table) -> None:
    """Create the table if it is missing; another process may be creating it, too."""
    interval = {"delta.checkpointInterval": str(checkpoint_interval(table.topic))}
    execute_with_retries(
        spark,
        f"CREATE TABLE IF NOT EXISTS {quoted(path)} ({DDL}) USING delta "
        f"COMMENT 'Records of the Kafka topic {table.topic}, landed by binwright' "
        f"TBLPROPERTIES ({_property_list({**PROPERTIES, **interval, **_owner(table)})})",
    )


def execute_with_retries(spark: SparkSession, statement: str) -> None:
    """Execute a statement; retry for `CREATION_S` seconds after conflicts with other commits."""
    deadline = time.monotonic() + CREATION_S
    while True:
        try:
            spark.sql(statement).collect()
        except Exception as exc:
            if not mentions(exc, *CONFLICTS, NOT_EMPTY) or time.monotonic() > deadline:
                raise
            time.sleep(CREATION_PAUSE_S)
        else:
            return


def check_columns(spark: SparkSession, path: str) -> None:
    """Raise `TableRefused` unless the table takes our rows; it may have more, nullable columns."""
    there = {field.name: field for field in spark.table(quoted(path)).schema.fields}
    faults = [
        f"{name} {kind} (there: {there[name].dataType.simpleString() if name in there else 'none'})"
        for name, kind in COLUMNS.items()
        if name not in there or there[name].dataType.simpleString() != kind
    ]
    faults += [
        f"{name} may not be NOT NULL: we have nothing to put there"
        for name, field in there.items()
        if name not in COLUMNS and not field.nullable
    ]
    if faults:
        raise TableRefused(
            f"the table at {path} has other columns than ours: {'; '.join(faults)}. Move it away, "
            "or name another lake (--lake, or lake.path)"
        )


def check_owner(spark: SparkSession, path: str, table: Table) -> None:
    """Own a table that has no owner; raise `TableRefused` if another group owns it."""
    actual = properties(spark, path)
    if GROUP not in actual and CLUSTER not in actual:  # created by hand
        execute_with_retries(
            spark, f"ALTER TABLE {quoted(path)} SET TBLPROPERTIES ({_property_list(_owner(table))})"
        )
        actual = properties(spark, path)
    owner = (actual.get(GROUP), actual.get(CLUSTER))
    if owner != (table.group, table.cluster):
        raise TableRefused(
            f"the table at {path} belongs to group {owner[0]} of Kafka cluster {owner[1]}; this is "
            f"group {table.group} of cluster {table.cluster}. Two groups would land every row "
            f"twice: name another lake (--lake, or lake.path){_renamed(owner[1], table)}"
        )


def _renamed(cluster: str | None, table: Table) -> str:
    """Return what else to do if only the group differs; offsets of clusters cannot be compared."""
    if cluster != table.cluster:
        return ""
    return f", or, if the group was renamed, set the table's property {GROUP}: '{table.group}'"


def properties(spark: SparkSession, path: str) -> Mapping[str, str]:
    """Return the table's properties."""
    rows = spark.sql(f"SHOW TBLPROPERTIES {quoted(path)}").collect()
    return {row[0]: row[1] for row in rows}


def checkpoint_interval(topic: str) -> int:
    """Return the number of commits between two checkpoints of a topic's table."""
    return CHECKPOINT_INTERVALS[crc32(topic.encode()) % len(CHECKPOINT_INTERVALS)]


def _owner(table: Table) -> Mapping[str, str]:
    return {GROUP: table.group, CLUSTER: table.cluster}


def _property_list(given: Mapping[str, str]) -> str:
    return ", ".join(f"'{key}' = '{_escaped(value)}'" for key, value in given.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


# --- frames of staged files: the server reads them, not this process ---------------------------


def tasks_for(size: int) -> int:
    """Return the number of tasks, and so of files, for `size` staged bytes."""
    return max(1, -(-size // TASK_BYTES))


def frame_of(batch: Batch, directory: str, lease: str) -> Callable[[SparkSession], DataFrame]:
    """Return a function that builds the frame of a batch of files in `directory`.

    The lease is read like a staged file: by a task, so after the commit's snapshot (†).
    """
    whole = [lease, *(part.file for part in batch.slices if part.whole)]
    parts = [part for part in batch.slices if not part.whole]

    def build(spark: SparkSession) -> DataFrame:
        frames = [_read(spark, directory, whole)]
        frames += [_read(spark, directory, [part.file]).where(condition(part)) for part in parts]
        return reduce(DataFrame.unionAll, frames).coalesce(tasks_for(batch.bytes))

    return build


def _read(spark: SparkSession, directory: str, files: list[str]) -> DataFrame:
    paths = [_literal(f"{directory}/{file}") for file in files]
    return spark.read.schema(DDL).options(**READING).parquet(*paths)


def condition(part: FileSlice) -> str:
    """Return the SQL condition of the rows that a slice takes from its file."""
    return " OR ".join(
        f"(partition = {int(p)} AND offset >= {int(first)} AND offset < {int(end)})"
        for p, (first, end) in sorted(part.ranges.items())
    )


def _literal(path: str) -> str:
    return re.sub(r"([*?{}\[\]\\])", r"\\\1", path)  # else a glob pattern


# --- write and read ----------------------------------------------------------------------------


def claim(spark: SparkSession, path: str, writer: str, stamp: str) -> None:
    """Commit the writer's id to the table's metadata; the id must be another one than is there."""
    with _settings(spark, {METADATA: stamp}):
        properties = _property_list({WRITER: writer})
        spark.sql(f"ALTER TABLE {quoted(path)} SET TBLPROPERTIES ({properties})").collect()


@contextmanager
def _settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set these of the session for as long as the block lasts."""
    try:
        for key, value in values.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key in values:
            spark.conf.unset(key)


def append(
    frame: Callable[[SparkSession], DataFrame],
    path: str,
    stamp: str,
    transaction: tuple[str, int] | None = None,
) -> Callable[[SparkSession], None]:
    """Return a function that appends a frame.

    Args:
        frame: Builds what is appended.
        path: Of the table.
        stamp: The commit's `userMetadata`.
        transaction: An app id and a version that it has not had yet. Delta commits no rows only
            with one; to look the version up, it rebuilds the table's state.
    """

    def work(spark: SparkSession) -> None:
        # Not by `save`: if the table was deleted, it would create another one.
        writer = frame(spark).writeTo(quoted(path)).option("userMetadata", stamp)
        if transaction is not None:
            app, version = transaction
            writer = writer.option("txnAppId", app).option("txnVersion", str(version))
        writer.append()

    return work


def append_batch(
    batch: Batch, directory: str, lease: str, path: str, stamp: str
) -> Callable[[SparkSession], None]:
    """Return a function that appends a batch of files in `directory`; compiled if it is large."""
    work = append(frame_of(batch, directory, lease), path, stamp)
    if tasks_for(batch.bytes) == 1:
        return work

    def compiled(spark: SparkSession) -> None:
        with _settings(spark, COMPILED):
            work(spark)

    return compiled


def history(spark: SparkSession, path: str, limit: int) -> History:
    """Return the newest `limit` versions, newest first."""
    rows = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT {int(limit)}")
    commits = [Commit(*row) for row in rows.select("version", "userMetadata").collect()]
    return History(commits, complete=len(commits) < limit or commits[-1].version == 0)


def highest_offsets(spark: SparkSession, path: str) -> dict[int, int]:
    """Return the highest offset of each partition that has rows."""
    query = f"SELECT partition, max(offset) FROM {quoted(path)} GROUP BY partition"  # noqa: S608
    return dict(map(tuple, spark.sql(query).collect()))


# --- maintenance -------------------------------------------------------------------------------


def files(spark: SparkSession, path: str) -> TableFiles:
    """Return the number of the table's files and their size in bytes."""
    detail = spark.sql(f"DESCRIBE DETAIL {quoted(path)}").select("numFiles", "sizeInBytes")
    count, size = detail.collect()[0]
    return TableFiles(count, size)


def compact(spark: SparkSession, path: str) -> Compaction:
    """Merge small files; the session's settings say which files are small."""
    metrics: Any = spark.sql(f"OPTIMIZE {quoted(path)}").select(
        "metrics.numFilesRemoved", "metrics.numFilesAdded"
    )
    return Compaction(*metrics.collect()[0])


def vacuum(spark: SparkSession, path: str, retain_s: float) -> None:
    """Delete files that no version of the last `retain_s` seconds refers to."""
    spark.sql(f"VACUUM {quoted(path)} RETAIN {retain_s / 3600:f} HOURS").collect()


def quoted(path: str) -> str:
    """Return a table's path as SQL names it."""
    return f"delta.`{path.replace('`', '``')}`"


def spark_path(path: str) -> str:
    """Return a path as Spark's file systems name it, without the options for Arrow behind a `?`."""
    scheme, mark, rest = path.partition("://")
    rest = rest.partition("?")[0]
    return f"{'s3a' if scheme == 's3' else scheme}://{rest}" if mark else path
