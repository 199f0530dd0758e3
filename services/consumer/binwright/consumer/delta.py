"""What is said to Delta, over a session of Spark Connect. All of it blocks.

A write names its app id and version, and Delta skips one whose version is not higher than the last
of its app id. A skipped write says "OK" too: only the session's last commit tells them apart.
"""

import time
from collections.abc import Callable, Collection

from pyspark.errors import PySparkException
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.faults import CONFLICTS, NOT_EMPTY, answered, names
from binwright.consumer.rows import COLUMNS
from binwright.core.errors import UserError
from binwright.core.ports import Commit, History

LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
"""Of the session, not of a table: unset before a write, it is that write's version or nothing."""

DDL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
PROPERTIES = {
    "delta.dataSkippingNumIndexedCols": "4",  # keys, values and headers need no statistics
    "delta.checkpointInterval": "100",  # at a commit a second every tenth would be too many
}
CREATION_S = 10.0  # for so long others' files may be another creator's table in the making
CREATION_PAUSE_S = 0.2

FIRST_LOOK = 64  # commits: enough where a hint, or an own commit of late, says how far back
LONGEST_LOOK = 20_000  # commits: some seconds; beyond, asking the rows is quicker


def ensure(spark: SparkSession, path: str, topic: str) -> None:
    """Create the table unless it is there; raise `UserError` unless it takes our rows."""
    try:
        check_columns(spark, path)
    except PySparkException as exc:
        if not answered(exc):
            raise
        create(spark, path, topic)
        check_columns(spark, path)


def create(spark: SparkSession, path: str, topic: str) -> None:
    """Create the table unless it is there; others may be creating it at this moment."""
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
    statement = (
        f"CREATE TABLE IF NOT EXISTS {quoted(path)} ({DDL}) USING delta "
        f"COMMENT 'Records of the Kafka topic {topic}, landed by binwright' "
        f"TBLPROPERTIES ({properties})"
    )
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
    """Raise `UserError` unless the table takes our rows; it may have more columns than ours."""
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
        raise UserError(
            f"the table at {path} has other columns than ours: {'; '.join(faults)}. Move it away, "
            "or name another lake.path"
        )


def table_id(spark: SparkSession, path: str) -> str:
    """Return what tells this table from one made later in the same place."""
    return str(spark.sql(f"DESCRIBE DETAIL {quoted(path)}").select("id").collect()[0][0])


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


def history(spark: SparkSession, path: str, after: int) -> History:
    """Return the versions later than `after`, at most `LONGEST_LOOK` of them."""

    def latest(limit: int) -> list[Commit]:
        rows = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT {limit}")
        return [Commit(*row) for row in rows.select("version", "userMetadata").collect()]

    return look_back(latest, after)


def look_back(latest: Callable[[int], list[Commit]], after: int) -> History:
    """Ask for as many commits as are needed to reach back to `after`; `latest` comes first."""
    limit = FIRST_LOOK
    while True:
        found = latest(limit)
        newest, oldest = found[0].version, found[-1].version
        reached = oldest <= after + 1
        if reached or len(found) < limit or limit >= LONGEST_LOOK:
            return History([c for c in found if c.version > after], complete=reached)
        # Some more: others may commit while we ask again.
        limit = min(newest - after + FIRST_LOOK, LONGEST_LOOK)


def newest(spark: SparkSession, path: str, partitions: Collection[int]) -> dict[int, int]:
    """Return the highest offset of each of these partitions that has rows."""
    wanted = ", ".join(str(int(number)) for number in sorted(partitions))
    query = (
        f"SELECT partition, max(offset) FROM {quoted(path)} "  # noqa: S608 - a path and numbers
        f"WHERE partition IN ({wanted}) GROUP BY partition"
    )
    return dict(map(tuple, spark.sql(query).collect()))


def quoted(path: str) -> str:
    """Return a table's path as SQL names it."""
    return f"delta.`{path.replace('`', '``')}`"
