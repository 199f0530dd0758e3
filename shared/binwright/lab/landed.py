"""What a table says about the offsets in it. Blocking: run it through `LakeReader.ask`."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException

from binwright.lab.ranges import LISTED, Range
from binwright.lab.spark import missing, quoted

HOLES = 1_000
"""Holes of a partition that are looked at one by one."""

Bounds = Mapping[int, tuple[int, int]]
"""Partition -> first offset the topic keeps, and its end offset."""

# Every copy counts as a row; a second copy of an offset, wherever it is, is one too many.
_COUNTS = """
WITH counted AS (SELECT partition, offset, count(*) AS copies FROM {rows} GROUP BY ALL)
SELECT partition, sum(copies) AS rows, sum(copies) - count(*) AS surplus,
       min(offset) AS first, max(offset) AS last,
       count_if(offset >= start AND offset < end) AS inside,
       sum(IF(offset >= coalesce(end, 0), copies, 0)) AS beyond
FROM counted LEFT JOIN {bounds} USING (partition)
GROUP BY partition
"""
# The end stands in for an offset that is there, so that a tail which is missing is a hole too.
_HOLES = """
WITH seen AS (
    SELECT DISTINCT partition, offset, start FROM {rows} JOIN {bounds} USING (partition)
    WHERE offset >= start AND offset < end
    UNION ALL SELECT partition, end, start FROM {bounds}
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
_DOUBLES = """
WITH doubled AS (
    SELECT partition, offset FROM {rows} GROUP BY ALL HAVING count(*) > 1
), numbered AS (
    SELECT partition, offset, row_number() OVER (PARTITION BY partition ORDER BY offset) AS number
    FROM doubled
)
SELECT partition, offset FROM numbered WHERE number <= {limit} ORDER BY partition, offset
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """One partition's rows."""

    rows: int
    surplus: int  # rows that would go if every offset were there once
    first: int
    last: int
    inside: int  # different offsets among those that the topic keeps
    beyond: int  # rows at or past the topic's end


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """One version of a table."""

    counts: Mapping[int, Counts]  # of each partition that has rows
    holes: Mapping[
        int, tuple[Range, ...]
    ]  # the first `HOLES` of each: offsets kept, but not landed
    doubles: Mapping[
        int, tuple[int, ...]
    ]  # the first `LISTED` offsets of each, there twice or more


def landed(spark: Any, path: str, bounds: Bounds) -> Landed | None:
    """Read the table at `path`; None if there is no table. Raises what pyspark raises."""
    rows = _newest(spark, path)
    if rows is None:
        return None
    limits = spark.createDataFrame(_table(bounds))
    counts = {
        row.partition: Counts(**{f.name: row[f.name] for f in fields(Counts)})
        for row in spark.sql(_COUNTS, rows=rows, bounds=limits).collect()
    }
    holes, doubles = defaultdict[int, list[Range]](list), defaultdict[int, list[int]](list)
    if any(end - start > _inside(counts, p) for p, (start, end) in bounds.items()):
        for row in spark.sql(_HOLES, rows=rows, bounds=limits, limit=HOLES).collect():
            holes[row.partition].append(Range(row.first, row.last))
    if any(count.surplus for count in counts.values()):
        for row in spark.sql(_DOUBLES, rows=rows, limit=LISTED).collect():
            doubles[row.partition].append(row.offset)
    return Landed(
        counts=counts,
        holes={partition: tuple(ranges) for partition, ranges in holes.items()},
        doubles={partition: tuple(offsets) for partition, offsets in doubles.items()},
    )


def _newest(spark: Any, path: str) -> Any | None:
    """Return the rows of one version, the newest: landing goes on while questions are asked."""
    table = spark.read.format("delta")
    try:
        _ = table.load(path).schema
    except AnalysisException as exc:
        if missing(exc):
            return None
        raise
    newest = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT 1").collect()[0].version
    return table.option("versionAsOf", newest).load(path)


def _table(bounds: Bounds) -> pa.Table:
    columns = {"partition": pa.int32(), "start": pa.int64(), "end": pa.int64()}
    rows = zip(*((p, start, end) for p, (start, end) in sorted(bounds.items())), strict=True)
    arrays = [pa.array(row, kind) for row, kind in zip(rows, columns.values(), strict=True)]
    return pa.table(arrays, names=list(columns))


def _inside(counts: Mapping[int, Counts], partition: int) -> int:
    return counts[partition].inside if partition in counts else 0
