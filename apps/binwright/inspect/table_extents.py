"""Which offsets of a topic a table has rows of. Blocking: run it through `LakeReader.run`."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException

from binwright.inspect.bad_records import BadRecords, read_bad_records
from binwright.inspect.decide.record_columns import Path, RecordColumns
from binwright.inspect.topic_extents import MAX_LISTED, Range
from binwright.lake.lake_reader import (
    delta_table,
    erased_places,
    frame,
    is_of_columns,
    newest_version,
    properties,
    reason,
    records_of,
)
from binwright.lake.log_generations import LogHistory, log_history, newest_commits, origins
from binwright.protocol.errors import UserError
from binwright.protocol.keeping import PRIMARY_KEY, SKIPPED, filters, kept_since_ms
from binwright.protocol.names import BAD_SUFFIX
from binwright.runtime.clock import wall_ms
from binwright.tables.columns import path_text
from binwright.tables.stamp import FIRST_TOPIC

MAX_RANGES = 1_000
"""Missing ranges of a partition that are checked one by one."""

Bounds = Mapping[int, tuple[int, int]]
"""Partition -> first offset that the topic keeps, and its end offset."""
_WINDOWS = pa.schema([("partition", pa.int32()), ("start", pa.int64()), ("end", pa.int64())])

# Every copy counts as a row; a second copy of an offset, in any file, is surplus.
_COUNTED = "SELECT partition, offset, count(*) AS copies FROM {rows} GROUP BY ALL"
_TOGETHER = """
SELECT partition, offset, sum(copies) AS copies
FROM (SELECT * FROM {rows} UNION ALL SELECT * FROM {bad}) GROUP BY ALL
"""
_COUNTS = """
SELECT partition, sum(copies) AS rows, sum(copies) - count(*) AS surplus,
       min(offset) AS first, max(offset) AS last,
       count_if(offset < start) AS under,
       count_if(offset >= start AND offset < end) AS inside,
       sum(IF(offset >= coalesce(end, 0), copies, 0)) AS beyond
FROM {counted} LEFT JOIN {windows} USING (partition)
GROUP BY partition
"""
# The end counts as an offset with a row, so that a missing tail is a range too.
_MISSING = """
WITH seen AS (
    SELECT DISTINCT partition, offset, start FROM {counted} JOIN {windows} USING (partition)
    WHERE offset >= start AND offset < end
    UNION ALL SELECT partition, end, start FROM {windows}
), stepped AS (
    SELECT partition, start, offset,
           lag(offset) OVER (PARTITION BY partition ORDER BY offset) AS before
    FROM seen
), numbered AS (
    SELECT partition, coalesce(before + 1, start) AS first, offset - 1 AS last,
           row_number() OVER (PARTITION BY partition ORDER BY offset) AS number
    FROM stepped WHERE offset > coalesce(before + 1, start)
)
SELECT partition, first, last FROM numbered WHERE number <= {limit} ORDER BY partition, first
"""
# What is noted may have a row still: it is deleted next, or somebody has brought it back.
_ERASED = """
SELECT partition, offset, 1 AS copies
FROM {noted} ANTI JOIN {counted} USING (partition, offset) JOIN {windows} USING (partition)
WHERE offset < end
"""
_PLACED = "coalesce(topic IS NOT NULL AND partition >= 0 AND offset >= 0, false)"
_DOUBLES = """
WITH numbered AS (
    SELECT partition, offset, row_number() OVER (PARTITION BY partition ORDER BY offset) AS number
    FROM {counted} WHERE copies > 1
)
SELECT partition, offset FROM numbered WHERE number <= {limit} ORDER BY partition, offset
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """One partition's rows of the topic's present log."""

    rows: int
    surplus: int  # second and further rows of an offset
    first: int
    last: int
    under: int  # distinct offsets that the topic no longer keeps
    inside: int  # distinct offsets that the topic keeps
    beyond: int  # rows at or past the topic's end


MissingRanges = Mapping[int, tuple[Range, ...]]
"""Partition -> its first `MAX_RANGES` ranges of offsets without a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableExtents:
    """The offsets in one version of a table, and of its bad records."""

    counts: Mapping[int, RowCounts]  # of each partition that has rows
    missing_ranges: MissingRanges  # among the offsets that the topic keeps
    doubles: Mapping[int, tuple[int, ...]]  # the first `MAX_LISTED` offsets with several rows
    gone: Mapping[int, int] = field(default_factory=dict)
    """Partition -> offsets without a row, between landed ones, that the topic no longer keeps."""
    gone_ranges: MissingRanges = field(default_factory=dict)
    not_landed: Mapping[int, int] = field(default_factory=dict)
    """Partition -> offsets behind the last that landed that the topic no longer keeps."""
    earlier: Mapping[int, int] = field(default_factory=dict)
    """Partition -> rows of an earlier topic of this name."""
    rewritten: Mapping[int, int] = field(default_factory=dict)
    """Partition -> rows whose offsets were used again after the log was truncated."""
    bad: Mapping[int, int] = field(default_factory=dict)
    """Partition -> bad records among the rows, also of an earlier topic."""
    unchecked: str = ""  # why rows cannot be assigned to logs
    kept_since_ms: int | None = None  # older rows may have been deleted; None: none were
    skips_tombstones: bool = False  # it has no rows of records without a value, or had none
    filters: tuple[tuple[str, ...], ...] = ()  # that it has, or had: the comparisons of each
    erased: Mapping[int, int] = field(default_factory=dict)
    """Partition -> offsets without a row that was erased, by the places that were noted of it."""
    unplaced: int = 0  # rows of no topic, partition or offset, in a table that others wrote


def read_table_extents(
    spark: Any, path: str, bounds: Bounds, topic: str, topic_id: str | None
) -> TableExtents | None:
    """Read what the table at `path` has of a topic; None if there is no table.

    Raises what pyspark raises.
    """
    if (table := delta_table(spark, path)) is None:
        return None
    commits = newest_commits(spark, path)
    known = properties(spark, path)
    if key := known.get(PRIMARY_KEY):
        raise UserError(
            f"the table at {path} has one row of each {key}: to audit it, use the settings by "
            "which it lands"
        )
    first_topic = known.get(FIRST_TOPIC, path.rpartition("/")[2])
    logs = log_history(commits, topic, topic_id, first_topic)
    # All queries read one version, the newest: landing goes on meanwhile. A batch's bad records
    # land before its rows, so their newest version, looked up after the table's, has all of them.
    bad_path = path + BAD_SUFFIX
    bad = read_bad_records(spark, bad_path, topic, topic_id) if is_of_columns(table) else None
    # Places are noted before rows are deleted, so the newest version of them, which is looked up
    # after the table's, has all of them.
    noted = _noted(spark, path, topic, topic_id)
    query = _TableQuery(spark, path, topic, commits[0].version, bad, bounds, logs, noted=noted)
    since_ms = kept_since_ms(known, wall_ms())
    extents = _read(query)
    return replace(
        extents,
        kept_since_ms=since_ms,
        skips_tombstones=SKIPPED in known,
        filters=filters(known),
    )


def _noted(spark: Any, path: str, topic: str, topic_id: str | None) -> Any | None:
    """Return the places of a topic's erased records, each once; None: nothing was erased.

    Those of an earlier topic of the name are left out, as far as ids tell.
    """
    if (noted := erased_places(spark, path)) is None:
        return None
    same = "true" if topic_id is None else f"coalesce(topic_id = '{topic_id}', true)"
    own = noted.where(f"topic = '{topic}' AND {same}")  # a name has no quotes
    return own.select("partition", "offset").distinct()


def read_other_extents(
    spark: Any, path: str, bounds: Bounds, topic: str, columns: RecordColumns
) -> TableExtents:
    """Read what a table that others wrote has of a topic, at `path`.

    Raises what pyspark raises, and `UserError` if there is no table, or it has no such columns.
    """
    if (table := delta_table(spark, path)) is None:
        raise UserError(f"there is no Delta table at {path}")
    columns.check(dict(_types(table.schema)))
    version = newest_version(spark, path)
    return _TableQuery(spark, path, topic, version, None, bounds, LogHistory(), columns).read()


def _types(struct: Any, within: Path = ()) -> Iterator[tuple[Path, str]]:
    for each in struct.fields:
        yield (*within, each.name), each.dataType.simpleString()
        if hasattr(each.dataType, "fields"):
            yield from _types(each.dataType, (*within, each.name))


def _read(query: "_TableQuery") -> TableExtents:
    if not (splits := query.log_history.splits):
        return query.read()
    try:
        return query.read()
    except PySparkException as exc:
        versions = ", ".join(str(split.version) for split in splits)
        whole = replace(query, log_history=replace(query.log_history, splits=()))
        why = f"version {versions} of the table can no longer be read: {reason(exc)}"
        return replace(whole.read(), unchecked=why)


@dataclass(frozen=True, slots=True)
class _TableQuery:
    """The queries on a topic's rows in one version of a table, and on its bad records."""

    spark: Any
    path: str
    topic: str
    version: int
    bad: BadRecords | None
    bounds: Bounds
    log_history: LogHistory
    columns: RecordColumns | None = None  # of a table that others wrote
    noted: Any | None = None  # the places of records that were erased

    def read(self) -> TableExtents:
        if self.log_history.splits:
            ends = {p: end for p, (_, end) in self.bounds.items()}
            by_log = origins(self.spark, self._counted, self.version, self.log_history.splits, ends)
            counted, earlier, rewritten = by_log.present, by_log.earlier, by_log.rewritten
        else:
            counted, earlier, rewritten = self._counted(self.version), {}, {}
        if self.bad is not None:
            counted = self.spark.sql(_TOGETHER, rows=counted, bad=self._count(self.bad.present))
            earlier = Counter(earlier) + Counter(self.bad.earlier)
        erased: Mapping[int, int] = {}
        if self.noted is not None:
            limits = self._frame(self.bounds)
            gone = self.spark.sql(_ERASED, noted=self.noted, counted=counted, windows=limits)
            per_partition = gone.groupBy("partition").count().collect()
            erased = {row["partition"]: row["count"] for row in per_partition}
            counted = self.spark.sql(_TOGETHER, rows=counted, bad=gone)
        counts = {
            p: replace(count, rows=count.rows - erased.get(p, 0))
            for p, count in self._counts(counted).items()
        }
        landed = self._landed(counts)
        starts = {p: start for p, (start, _) in self.bounds.items()}
        windows = {
            p: (a, min(starts[p], b)) for p, (a, b) in landed.items() if a < min(starts[p], b)
        }
        gone = {p: end - start - _under(counts, p) for p, (start, end) in windows.items()}
        return TableExtents(
            counts=counts,
            missing_ranges=self._missing(counted, self.bounds) if self._incomplete(counts) else {},
            doubles=self._doubles(counted) if any(c.surplus for c in counts.values()) else {},
            gone={p: number for p, number in gone.items() if number},
            gone_ranges=self._missing(counted, windows) if any(gone.values()) else {},
            not_landed={p: starts[p] - b for p, (_, b) in landed.items() if b < starts[p]},
            earlier=earlier,
            rewritten=rewritten,
            bad={} if self.bad is None else self.bad.rows,
            erased=erased,
            unplaced=0 if self.columns is None else self._unplaced(self.columns),
        )

    def _unplaced(self, columns: RecordColumns) -> int:
        """Count the rows that name no record of any topic, or none of this one."""
        rows = self._others(self._table(self.version), columns)
        return int(rows.where(f"NOT {_PLACED}").count())

    def _counted(self, version: int) -> Any:
        table = self._table(version)
        if self.columns is None:
            return self._count(records_of(table, self.topic))
        return self._count(self._others(table, self.columns).where(_PLACED))

    def _table(self, version: int) -> Any:
        return self.spark.read.format("delta").option("versionAsOf", version).load(self.path)

    def _others(self, table: Any, columns: RecordColumns) -> Any:
        """Return the topic, partition and offset of those rows that may be of the topic."""
        own = f"'{self.topic}'"  # a name has no quotes
        topic = own if columns.topic is None else path_text(columns.topic)
        return table.selectExpr(
            f"{topic} AS topic",
            f"try_cast({path_text(columns.partition)} AS INT) AS partition",
            f"CAST({path_text(columns.offset)} AS BIGINT) AS offset",
        ).where(f"topic IS NULL OR topic = {own}")

    def _count(self, rows: Any) -> Any:
        return self.spark.sql(_COUNTED, rows=rows)

    def _counts(self, counted: Any) -> dict[int, RowCounts]:
        rows = self.spark.sql(_COUNTS, counted=counted, windows=self._frame(self.bounds)).collect()
        return {
            r.partition: RowCounts(**{f.name: r[f.name] for f in fields(RowCounts)}) for r in rows
        }

    def _incomplete(self, counts: Mapping[int, RowCounts]) -> bool:
        return any(
            end - start > (counts[p].inside if p in counts else 0)
            for p, (start, end) in self.bounds.items()
        )

    def _landed(self, counts: Mapping[int, RowCounts]) -> Bounds:
        """Return partition -> the offset at which landing began, and the next one to land."""
        begins, ends = dict(self.log_history.begins), dict(self.log_history.ends)
        for p, count in counts.items():
            begins[p] = min(count.first, begins.get(p, count.first))
            ends[p] = max(count.last + 1, ends.get(p, 0))
        known = self.bounds.keys() & begins.keys()
        return {p: (begins[p], ends[p]) for p in sorted(known)}

    def _missing(self, counted: Any, windows: Bounds) -> MissingRanges:
        missing_ranges = defaultdict[int, list[Range]](list)
        limits = self._frame(windows)
        for row in self.spark.sql(
            _MISSING, counted=counted, windows=limits, limit=MAX_RANGES
        ).collect():
            missing_ranges[row.partition].append(Range(row.first, row.last))
        return {partition: tuple(ranges) for partition, ranges in missing_ranges.items()}

    def _doubles(self, counted: Any) -> dict[int, tuple[int, ...]]:
        doubles = defaultdict[int, list[int]](list)
        for row in self.spark.sql(_DOUBLES, counted=counted, limit=MAX_LISTED).collect():
            doubles[row.partition].append(row.offset)
        return {partition: tuple(offsets) for partition, offsets in doubles.items()}

    def _frame(self, windows: Bounds) -> Any:
        rows = [
            {"partition": p, "start": start, "end": end}
            for p, (start, end) in sorted(windows.items())
        ]
        return frame(self.spark, pa.Table.from_pylist(rows, _WINDOWS))


def _under(counts: Mapping[int, RowCounts], partition: int) -> int:
    return counts[partition].under if partition in counts else 0
