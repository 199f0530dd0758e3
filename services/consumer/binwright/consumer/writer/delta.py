"""What is said to Delta, over a session of Spark Connect. All of it blocks.

A write names its app id and version, and Delta skips one whose version is not higher than the last
of its app id. A skipped write says "OK" too: only the session's last commit tells them apart.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.rows import COLUMNS
from binwright.consumer.writer.faults import CONFLICTS, NOT_EMPTY, answered, names
from binwright.core.errors import TableRefused
from binwright.core.ports import Commit, Compaction, History, Table, TableFiles

LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
"""Of the session, not of a table: unset before a write, it is that write's version or nothing."""

DDL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
PROPERTIES = {
    "delta.dataSkippingNumIndexedCols": "4",  # keys, values and headers need no statistics
    # A checkpoint costs as much CPU as a commit; each commit since one adds 1 to 2 ms to the next.
    "delta.checkpointInterval": "50",
    # Compaction leaves its old files in the log for so long: 32 us of every commit for each.
    "delta.deletedFileRetentionDuration": "interval 6 hours",
    "delta.logRetentionDuration": "interval 2 days",  # a writer reads back to its last full stamp
}
GROUP, CLUSTER = "binwright.group", "binwright.cluster"
FORGETTING = "delta.setTransactionRetentionDuration"
_DEFAULT_OF_FORGETTING = (
    "spark.databricks.delta.properties.defaults.setTransactionRetentionDuration"
)
CREATION_S = 10.0  # for so long others' files may be another creator's table in the making
CREATION_PAUSE_S = 0.2


# --- open --------------------------------------------------------------------------------------


def ensure(spark: SparkSession, path: str, table: Table) -> None:
    """Create the table unless it is there; raise `TableRefused` unless it is ours to write."""
    try:
        check_columns(spark, path)
    except PySparkException as exc:
        if not answered(exc):
            raise
        create(spark, path, table)
        check_columns(spark, path)
    check_memory(spark, path)
    check_owner(spark, path, table)


def create(spark: SparkSession, path: str, table: Table) -> None:
    """Create the table unless it is there; others may be creating it at this moment."""
    repeated(
        spark,
        f"CREATE TABLE IF NOT EXISTS {quoted(path)} ({DDL}) USING delta "
        f"COMMENT 'Records of the Kafka topic {table.topic}, landed by binwright' "
        f"TBLPROPERTIES ({_listed({**PROPERTIES, **_owner(table)})})",
    )


def repeated(spark: SparkSession, statement: str) -> None:
    """Execute a statement; again for some seconds if others' commits come between."""
    deadline = time.monotonic() + CREATION_S
    while True:
        try:
            spark.sql(statement).collect()
        except Exception as exc:
            if not names(exc, *CONFLICTS, NOT_EMPTY) or time.monotonic() > deadline:
                raise
            time.sleep(CREATION_PAUSE_S)
        else:
            return


def check_columns(spark: SparkSession, path: str) -> None:
    """Raise `TableRefused` unless the table takes our rows; it may have more columns than ours."""
    found = {field.name: field for field in spark.table(quoted(path)).schema.fields}
    faults = [
        f"{name} {kind} (there: {found[name].dataType.simpleString() if name in found else 'none'})"
        for name, kind in COLUMNS.items()
        if name not in found or found[name].dataType.simpleString() != kind
    ]
    faults += [
        f"{name} may not be NOT NULL: we have nothing to put there"
        for name, field in found.items()
        if name not in COLUMNS and not field.nullable
    ]
    if faults:
        raise TableRefused(
            f"the table at {path} has other columns than ours: {'; '.join(faults)}. Move it away, "
            "or set another lake.path"
        )


def check_memory(spark: SparkSession, path: str) -> None:
    """Raise `TableRefused` if Delta would forget the numbers of the table's writers (†)."""
    where = [
        f"the property {FORGETTING} of the table at {path} ({kept}): unset it by ALTER TABLE "
        f"{quoted(path)} UNSET TBLPROPERTIES ('{FORGETTING}')"
        for kept in [properties(spark, path).get(FORGETTING)]
        if kept is not None
    ] + [
        f"Spark's setting {_DEFAULT_OF_FORGETTING} ({kept}): remove it"
        for kept in [spark.conf.get(_DEFAULT_OF_FORGETTING, None)]
        if kept is not None
    ]
    if where:
        raise TableRefused(
            "Delta must not forget which commits of a writer it has seen: rows could land twice. "
            f"It is told to by {'; and by '.join(where)}"
        )


def check_owner(spark: SparkSession, path: str, table: Table) -> None:
    """Take a table that is nobody's; raise `TableRefused` if it is another group's."""
    found = properties(spark, path)
    if GROUP not in found and CLUSTER not in found:  # landed by version 0.1
        repeated(spark, f"ALTER TABLE {quoted(path)} SET TBLPROPERTIES ({_listed(_owner(table))})")
        found = properties(spark, path)
    owner = (found.get(GROUP), found.get(CLUSTER))
    if owner != (table.group, table.cluster):
        raise TableRefused(
            f"the table at {path} belongs to group {owner[0]} of Kafka cluster {owner[1]}; this is "
            f"group {table.group} of cluster {table.cluster}. Two groups would land every row "
            f"twice: set another lake.path, or change the table's properties {GROUP} and {CLUSTER} "
            "if the other one is no more"
        )


def properties(spark: SparkSession, path: str) -> Mapping[str, str]:
    """Return the table's properties."""
    rows = spark.sql(f"SHOW TBLPROPERTIES {quoted(path)}").collect()
    return {row[0]: row[1] for row in rows}


def _owner(table: Table) -> Mapping[str, str]:
    return {GROUP: table.group, CLUSTER: table.cluster}


def _listed(given: Mapping[str, str]) -> str:
    return ", ".join(f"'{key}' = '{_text(value)}'" for key, value in given.items())


def _text(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


# --- write and read ----------------------------------------------------------------------------


def append(
    frame: Callable[[SparkSession], DataFrame],
    path: str,
    app: str,
    version: int,
    stamp: str | None,
) -> Callable[[SparkSession], int | None]:
    """Return the work of one append: the table's version, or None if Delta skipped it."""

    def work(spark: SparkSession) -> int | None:
        spark.conf.unset(LAST_COMMIT)
        # Not by `save`: that would make a table of its own where ours was taken away.
        writer = frame(spark).writeTo(quoted(path))
        writer = writer.option("txnAppId", app).option("txnVersion", str(version))
        if stamp is not None:
            writer = writer.option("userMetadata", stamp)
        writer.append()
        committed = spark.conf.get(LAST_COMMIT, None)
        return None if committed is None else int(committed)

    return work


def history(spark: SparkSession, path: str, limit: int) -> History:
    """Return the newest `limit` versions, newest first."""
    rows = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT {int(limit)}")
    found = [Commit(*row) for row in rows.select("version", "userMetadata").collect()]
    return History(found, complete=len(found) < limit or found[-1].version == 0)


def newest(spark: SparkSession, path: str) -> dict[int, int]:
    """Return the highest offset of each partition that has rows."""
    query = f"SELECT partition, max(offset) FROM {quoted(path)} GROUP BY partition"  # noqa: S608
    return dict(map(tuple, spark.sql(query).collect()))


# --- housekeeping ------------------------------------------------------------------------------


def files(spark: SparkSession, path: str) -> TableFiles:
    """Return the number and size of the table's files."""
    detail = spark.sql(f"DESCRIBE DETAIL {quoted(path)}").select("numFiles", "sizeInBytes")
    count, size = detail.collect()[0]
    return TableFiles(count, size)


def compact(spark: SparkSession, path: str) -> Compaction:
    """Merge small files; which ones are small, the session's settings say."""
    found: Any = spark.sql(f"OPTIMIZE {quoted(path)}").select(
        "metrics.numFilesRemoved", "metrics.numFilesAdded"
    )
    return Compaction(*found.collect()[0])


def vacuum(spark: SparkSession, path: str, retain_s: float) -> None:
    """Delete files that no version of the last `retain_s` seconds needs."""
    spark.sql(f"VACUUM {quoted(path)} RETAIN {retain_s / 3600:f} HOURS").collect()


def quoted(path: str) -> str:
    """Return a table's path as SQL names it."""
    return f"delta.`{path.replace('`', '``')}`"
