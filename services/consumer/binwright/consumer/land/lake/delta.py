"""SQL and writes for one Delta table over a Spark Connect session. All calls block."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.connect import functions as sf
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType

from binwright.consumer.decide.land.compaction import MOST_ROW_GROUPS
from binwright.consumer.decide.widening import type_there
from binwright.consumer.land.lake.creation import create, created, property_list, with_retries
from binwright.consumer.land.lake.faults import NO_EXTENSION, mentions
from binwright.consumer.land.lake.staged_rows import Frame, literal_text, tasks_for
from binwright.consumer.land.lake.table_columns import (
    BAD,
    Layout,
    check_layout,
    layout_of,
    missing_columns,
)
from binwright.lake.lake_reader import is_of_columns, properties, quoted
from binwright.lake.session import reported_by_server
from binwright.protocol.errors import TableRefused
from binwright.protocol.keeping import (
    PRIMARY_KEY,
    SEQUENCE_BY,
    SKIPPED,
    changed_filters,
    changed_keeping,
)
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.logs import log
from binwright.tables.columns import KAFKA, KAFKA_DATE, Column, Columns
from binwright.tables.ports import (
    ColumnsThere,
    Commit,
    Compaction,
    History,
    PartitionOffsets,
    SmallFiles,
    Table,
)
from binwright.tables.stamp import FIRST_TOPIC

TABLE_WIDENED = LogEvent.info(
    "table.widened", "Columns of a table became wider; some readers no longer read it."
)

MERGE_REFUSED = LogEvent.debug(
    "merge.refused", "Row groups of a table's files cannot be copied; Spark writes the rows again."
)

METADATA = "spark.databricks.delta.commitInfo.userMetadata"
"""The session's `userMetadata` of commits that have no option for it."""
COMPILED = {
    # Statistics and projections of many rows take less CPU compiled; for few rows, compiling takes
    # more than all of it, so servers that land small appends have it off.
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""Settings of a session while it appends what takes more than one task."""
WIDENS = "delta.enableTypeWidening"
GROUP, CLUSTER, WRITER = "binwright.group", "binwright.cluster", "binwright.writer"
CATALOG = "binwright"
"""Of the server's extension, by `spark.sql.catalog.binwright`."""
DAY_MS = 86_400_000
MOST_CONDITIONS = 64  # by which bad records of one topic are looked for


@dataclass(frozen=True, slots=True)
class Added:
    """What became of files that were to be committed as they are."""

    verdict: str
    what: str  # the file, or the reason, or both


# --- open --------------------------------------------------------------------------------------


def ensure(spark: SparkSession, path: str, table: Table) -> tuple[bool, str]:
    """Create the table if it is missing, and give it the columns that it lacks.

    Returns:
        Whether its rows have the day of their record; and the first topic that it took.

    Raises:
        TableRefused: This group may not write it, or it has other columns.
    """
    comment = f"Records of {_kafka_topics(table)}, landed by binwright"
    layout = layout_of(table.columns, by_date=table.by_date)
    there, owned = _ensure(spark, path, table, layout, comment)
    if table.by_date:
        _check_partitions(spark, path)
    if table.columns is not None:
        columns = table.columns
        with_retries(lambda: add_columns(spark, path, columns, widen=table.widen))
    return KAFKA_DATE in there.names, owned.get(FIRST_TOPIC, table.name)


def _kafka_topics(table: Table) -> str:
    return f"the Kafka topic {table.topic}" if not table.more_topics else "Kafka topics"


def _check_partitions(spark: SparkSession, path: str) -> None:
    detail = spark.sql(f"DESCRIBE DETAIL {quoted(path)}").select("partitionColumns")
    if (there := [*(detail.collect()[0][0] or ())]) != [KAFKA_DATE]:
        by = ", ".join(there) or "nothing"
        raise TableRefused(
            f"the table at {path} is not partitioned by {KAFKA_DATE}, but by {by}, and an entry of "
            "`tables` has that as `partition_by`. Delta partitions a table when it creates it: "
            "take partition_by out, or move the table away"
        )


def ensure_bad(spark: SparkSession, path: str, table: Table) -> None:
    """Create the table of bad records if it is missing; raises like `ensure`."""
    comment = f"Records of {_kafka_topics(table)} that binwright could not decode"
    _ensure(spark, path, table, BAD, comment)


def _ensure(
    spark: SparkSession, path: str, table: Table, layout: Layout, comment: str
) -> tuple[StructType, Mapping[str, str]]:
    """Create a table if it is missing, and check it; return its columns and its properties."""
    try:
        there = spark.table(quoted(path)).schema
    except PySparkException as exc:
        if not reported_by_server(exc):
            raise
        own = {**_owner(table), **changed_keeping({}, table.keep_s, wall_ms()), **_skipped(table)}
        own |= changed_filters({}, table.where)
        with_retries(lambda: create(spark, path, layout, comment, own))
        there = created(spark, path, layout)
    check_layout(path, layout, there)
    owned = check_owner(spark, path, table)
    _check_keys(path, owned, table)
    changes = changed_keeping(owned, table.keep_s, wall_ms())
    if table.skips_tombstones and SKIPPED not in owned:
        changes |= _skipped(table)
    changes |= changed_filters(owned, table.where)
    if changes:
        with_retries(lambda: set_properties(spark, path, changes))
    return there, owned


def _check_keys(path: str, owned: Mapping[str, str], table: Table) -> None:
    """Raise `TableRefused` where a table has other rows than the settings want of it."""
    there = owned.get(PRIMARY_KEY, "")
    if there != (wanted := ", ".join(table.primary_key)):
        rows = [f"one of each {key}" if key else "one of each record" for key in (there, wanted)]
        raise TableRefused(
            f"the rows of the table at {path} are {rows[0]}, and by the settings {rows[1]} (mode, "
            "primary_key). They are not changed into each other: give the entry another `name`, "
            f"or move the table away{_marked(there, wanted)}"
        )
    if (order := owned.get(SEQUENCE_BY, "")) != (by := ", ".join(table.sequence_by)):
        orders = [f"by {names}" if names else "as they are in Kafka" for names in (order, by)]
        raise TableRefused(
            f"changes of the table at {path} are ordered {orders[0]}, and by the settings "
            f"{orders[1]} (sequence_by). What was deleted is noted in that order: give the entry "
            "another `name`, or move the table away, or, if no change comes late any more, set the "
            f"table's property, and that of its bad records, {SEQUENCE_BY}: '{by}'"
        )


def _marked(there: str, wanted: str) -> str:
    """Return what else to do with a table of other keys, or of none that is marked."""
    if not wanted or there:
        return ""
    return f", or, if it has one row of each key, set its property {PRIMARY_KEY}: '{wanted}'"


def columns_there(spark: SparkSession, path: str, comment: str) -> ColumnsThere:
    """Return the columns of the table, and which of them have this comment."""
    there = spark.table(quoted(path)).schema
    commented_fields = (
        (field.name, type_there(field.dataType.simpleString()))
        for field in there.fields
        if field.metadata.get("comment") == comment
    )
    commented = tuple(Column(name, kind) for name, kind in commented_fields if kind is not None)
    return ColumnsThere(frozenset(there.names), commented)


def add_columns(
    spark: SparkSession, path: str, columns: Columns, comment: str = "", *, widen: bool = False
) -> None:
    """Add the columns, and the fields of structs, that the table lacks.

    Args:
        spark: The session.
        path: Of the table.
        columns: Those wanted.
        comment: Of those that are added as a whole; "": none.
        widen: Whether a column becomes wider where that is wanted. Nothing else changes.

    Raises:
        TableRefused: The table has one of another type.
    """
    lacking = missing_columns(path, columns, spark.table(quoted(path)).schema, widen=widen)
    if missing := [each for each in lacking if each.actual is None]:
        described = f" COMMENT {literal_text(comment)}" if comment else ""
        added = ", ".join(f"{each.name} {each.wanted}{described}" for each in missing)
        spark.sql(f"ALTER TABLE {quoted(path)} ADD COLUMNS ({added})").collect()
    if wider := [each for each in lacking if each.actual is not None]:
        if properties(spark, path).get(WIDENS) != "true":
            set_properties(spark, path, {WIDENS: "true"})
        types = ", ".join(f"{each.name} TYPE {each.wanted}" for each in wider)
        spark.sql(f"ALTER TABLE {quoted(path)} ALTER COLUMN {types}").collect()
        log(TABLE_WIDENED, path=path, columns=[*map(str, wider)])


def check_owner(spark: SparkSession, path: str, table: Table) -> Mapping[str, str]:
    """Own a table that has no owner; raise `TableRefused` if another group owns it.

    Returns:
        The table's properties.
    """
    actual = properties(spark, path)
    if GROUP not in actual and CLUSTER not in actual:  # created by hand
        with_retries(lambda: set_properties(spark, path, _owner(table)))
        actual = properties(spark, path)
    owner = (actual.get(GROUP), actual.get(CLUSTER))
    if owner != (table.group, table.cluster):
        raise TableRefused(
            f"the table at {path} belongs to group {owner[0]} of Kafka cluster {owner[1]}; this is "
            f"group {table.group} of cluster {table.cluster}. Two groups would land every row "
            f"twice: name another lake (--lake, or lake.path){_renamed(owner[1], table)}"
        )
    return actual


def _renamed(cluster: str | None, table: Table) -> str:
    """Return what else to do if only the group differs; offsets of clusters cannot be compared."""
    if cluster != table.cluster:
        return ""
    return f", or, if the group was renamed, set the table's property {GROUP}: '{table.group}'"


def set_properties(spark: SparkSession, path: str, given: Mapping[str, str]) -> None:
    """Set properties of the table: one commit."""
    spark.sql(f"ALTER TABLE {quoted(path)} SET TBLPROPERTIES ({property_list(given)})").collect()


def _owner(table: Table) -> Mapping[str, str]:
    topic = {} if table.name == table.topic else {FIRST_TOPIC: table.topic}
    keys = {PRIMARY_KEY: table.primary_key, SEQUENCE_BY: table.sequence_by}
    named = {name: ", ".join(paths) for name, paths in keys.items() if paths}
    return {GROUP: table.group, CLUSTER: table.cluster, **topic, **named}


def _skipped(table: Table) -> dict[str, str]:
    return {SKIPPED: "tombstones"} if table.skips_tombstones else {}


# --- write and read ----------------------------------------------------------------------------


def claim(spark: SparkSession, path: str, writer: str, stamp: str) -> None:
    """Commit the writer's id to the table's metadata; the id must be another one than is there."""
    with settings(spark, {METADATA: stamp}):
        set_properties(spark, path, {WRITER: writer})


REWRITTEN: Mapping[str, str] = {
    "spark.databricks.delta.delete.deletionVectors.persistent": "false",
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
}
"""With deletion vectors rows that go would stay in their file, also of versions to come."""


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set these of the session for as long as the block lasts."""
    try:
        for key, value in values.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key in values:
            spark.conf.unset(key)


def append(
    frame: Frame, path: str, stamp: str, transaction: tuple[str, int] | None = None
) -> Callable[[SparkSession], None]:
    """Return a function that appends a frame.

    Columns are matched by name, and so are fields of structs at any depth. Those of the table that
    the frame has not are NULL; one that the table has not is refused.

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


def append_batch(frame: Frame, size: int, path: str, stamp: str) -> Callable[[SparkSession], None]:
    """Return a function that appends a frame of `size` staged bytes; compiled if it is large."""
    work = append(frame, path, stamp)
    if tasks_for(size) == 1:
        return work

    def compiled(spark: SparkSession) -> None:
        with settings(spark, COMPILED):
            work(spark)

    return compiled


def add_files(
    spark: SparkSession, path: str, stamp: str, lease: str, files: Sequence[str]
) -> Added:
    """Commit staged files to the table as they are, by the server's extension.

    Args:
        spark: The session.
        path: Of the table.
        stamp: The commit's `userMetadata`.
        lease: The path of the lease.
        files: The paths of staged files, all of whose rows land.
    """
    names = ", ".join(map(literal_text, files))
    rows = called(
        spark,
        f"add_files(table => {literal_text(path)}, lease => {literal_text(lease)}, "
        f"stamp => {literal_text(stamp)}, files => array({names}))",
    )
    if rows is None:
        return Added("table_not_in_place", "the Spark server has no extension of binwright's")
    return Added(rows[0]["verdict"], rows[0]["what"] or "")


def called(spark: SparkSession, call: str) -> list[dict[str, Any]] | None:
    """Call a procedure of the server's extension; return its rows, None if the server has none.

    The rows are in the reply to the call, as the plan of the frame that pyspark makes of it. To
    collect that frame is one more query, which takes a fifth of what a small commit costs Spark.
    """
    try:
        frame: Any = spark.sql(f"CALL {CATALOG}.{call}")
    except PySparkException as exc:
        if not mentions(exc, *NO_EXTENSION):
            raise
        return None
    reply = frame._plan.plan(spark.client).local_relation.data  # noqa: SLF001 - has no other name
    return pa.ipc.open_stream(reply).read_all().to_pylist()


def history(spark: SparkSession, path: str, limit: int) -> History:
    """Return the newest `limit` versions, newest first."""
    rows = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT {int(limit)}")
    commits = [Commit(*row) for row in rows.select("version", "userMetadata").collect()]
    return History(commits, complete=len(commits) < limit or commits[-1].version == 0)


def outer_offsets(
    spark: SparkSession, path: str, *, raw: bool
) -> Mapping[TopicPartition, tuple[int, int]]:
    """Return the lowest and the highest offset of each partition that has rows."""
    return outer_of(spark.table(quoted(path)), "" if raw else f"{KAFKA}.")


def outer_of(rows: DataFrame, prefix: str = "") -> Mapping[TopicPartition, tuple[int, int]]:
    """Return the lowest and the highest offset of each partition that rows are of."""
    place, offset = (f"{prefix}topic", f"{prefix}partition"), f"{prefix}offset"
    outer = rows.groupBy(*place).agg(sf.min(offset), sf.max(offset))
    return {TopicPartition(topic, p): (low, high) for topic, p, low, high in outer.collect()}


def highest_bad_offsets(
    spark: SparkSession, path: str, since: PartitionOffsets
) -> Mapping[str | None, PartitionOffsets]:
    """Return the highest offsets of bad records: topic id -> partition -> offset.

    Only files are read that have offsets from `since` on, as their statistics say: mostly none.
    """
    place = ("topic_id", f"{KAFKA}.topic", f"{KAFKA}.partition")
    behind = spark.table(quoted(path)).where(" OR ".join(bad_since(since)) or "false")
    highest = behind.groupBy(*place).agg(sf.max(f"{KAFKA}.offset"))
    offsets: dict[str | None, dict[TopicPartition, int]] = {}
    for topic_id, topic, number, offset in highest.collect():
        offsets.setdefault(topic_id, {})[TopicPartition(topic, number)] = offset
    return offsets


def bad_since(since: PartitionOffsets) -> Iterator[str]:
    """Yield conditions that rows meet which are of these partitions, from these offsets on.

    They are `MOST_CONDITIONS` for a topic at most: then partitions with offsets next to each other
    share the lowest of these.
    """
    topics: dict[str, list[tuple[int, int]]] = {}
    for p, offset in since.items():
        topics.setdefault(p.topic, []).append((offset, p.partition))
    for topic, places in sorted(topics.items()):
        places.sort()
        size = -(-len(places) // MOST_CONDITIONS)
        for begin in range(0, len(places), size):
            part = places[begin : begin + size]
            numbers = ", ".join(str(int(number)) for _, number in part)
            yield (
                f"({KAFKA}.topic = {literal_text(topic)} AND {KAFKA}.partition IN ({numbers}) "
                f"AND {KAFKA}.offset >= {int(part[0][0])})"
            )


# --- maintenance -------------------------------------------------------------------------------


def small_files(
    spark: SparkSession, path: str, below_bytes: int, *, bad: bool
) -> tuple[SmallFiles, ...] | None:
    """Return the sizes of the table's small files, by the server's extension; None: it has none.

    Args:
        spark: The session.
        path: Of the table.
        below_bytes: Smaller files are small.
        bad: Whether it is a table of bad records.
    """
    rows = called(
        spark, f"small_files(table => {literal_text(path)}, below => {int(below_bytes)}L)"
    )
    if rows is None or any(row["sizes"] is None for row in rows):
        return None
    return tuple(SmallFiles(tuple(row["sizes"]), row["day"], bad=bad) for row in rows)


def merge_files(spark: SparkSession, path: str, below_bytes: int, file_bytes: int) -> Compaction:
    """Copy the row groups of small files into larger ones, by the server's extension.

    Args:
        spark: The session.
        path: Of the table.
        below_bytes: Smaller files are small.
        file_bytes: The size of a file, at most.

    Returns:
        What was merged: nothing where the server has no extension, and where the table's files are
            of such kinds, or have so many row groups, that only Spark can write their rows again.
    """
    rows = called(
        spark,
        f"merge_files(table => {literal_text(path)}, below => {int(below_bytes)}L, "
        f"target => {int(file_bytes)}L, row_groups => {MOST_ROW_GROUPS}L)",
    )
    if rows is None:
        return Compaction(0, 0)
    (row,) = rows
    if (reason := row.pop("what")) is not None:
        log(MERGE_REFUSED, path=path, reason=reason)
    return Compaction(**row, copied=row["removed"])


def old_rows(spark: SparkSession, path: str, keep_s: float, now_ms: int) -> str | None:
    """Return the condition of rows whose record is older than `keep_s`; None: there are none.

    Where rows have their day, they are old once all of it is: then whole files are deleted.

    Rows without a timestamp are not old. Of two clocks the one that is behind counts: a clock that
    runs ahead would delete everything.

    Args:
        spark: The session.
        path: Of the table.
        keep_s: Seconds.
        now_ms: This machine's time, ms since 1970; the other clock is the server's.
    """
    server_ms: int = spark.sql("SELECT unix_millis(current_timestamp())").collect()[0][0]
    before_ms = min(now_ms, server_ms) - round(keep_s * 1000)
    table = spark.table(quoted(path))
    if KAFKA_DATE in table.columns:
        old = f"{KAFKA_DATE} < date_from_unix_date({before_ms // DAY_MS})"
    else:
        prefix = f"{KAFKA}." if is_of_columns(table) else ""
        old = f"{prefix}timestamp < timestamp_millis({before_ms})"
    return None if table.where(old).isEmpty() else old


def delete_rows(spark: SparkSession, path: str, condition: str) -> int:
    """Delete the rows of a condition; return how many. An append that comes first refuses it."""
    delete = f"DELETE FROM {quoted(path)} WHERE {condition}"  # noqa: S608 - of `old_rows`
    with settings(spark, REWRITTEN):
        deleted: int = spark.sql(delete).collect()[0][0]
    return deleted


def vacuum(spark: SparkSession, path: str, retain_s: float) -> None:
    """Delete files that no version of the last `retain_s` seconds refers to."""
    spark.sql(f"VACUUM {quoted(path)} RETAIN {retain_s / 3600:f} HOURS").collect()


def spark_path(path: str) -> str:
    """Return a path as Spark's file systems name it, without the options for Arrow behind a `?`."""
    scheme, mark, rest = path.partition("://")
    rest = rest.partition("?")[0]
    return f"{'s3a' if scheme == 's3' else scheme}://{rest}" if mark else path
