"""What a table says about the offsets in it. Blocking: run it through `LakeReader.ask`."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pyspark.errors import AnalysisException, PySparkException

from binwright.lab.generations import Past, commits_of, past
from binwright.lab.origins import origins
from binwright.lab.ranges import LISTED, Range
from binwright.lab.spark import frame, missing, reason

HOLES = 1_000
"""Holes of a partition that are looked at one by one."""

Bounds = Mapping[int, tuple[int, int]]
"""Partition -> first offset the topic keeps, and its end offset."""
_WINDOWS = {"partition": "INT", "start": "BIGINT", "end": "BIGINT"}

# Every copy counts as a row; a second copy of an offset, wherever it is, is one too many.
_COUNTED = "SELECT partition, offset, count(*) AS copies FROM {rows} GROUP BY ALL"
_COUNTS = """
SELECT partition, sum(copies) AS rows, sum(copies) - count(*) AS surplus,
       min(offset) AS first, max(offset) AS last,
       count_if(offset < start) AS under,
       count_if(offset >= start AND offset < end) AS inside,
       sum(IF(offset >= coalesce(end, 0), copies, 0)) AS beyond
FROM {counted} LEFT JOIN {windows} USING (partition)
GROUP BY partition
"""
# The end stands in for an offset that is there, so that a tail which is missing is a hole too.
_HOLES = """
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
_DOUBLES = """
WITH numbered AS (
    SELECT partition, offset, row_number() OVER (PARTITION BY partition ORDER BY offset) AS number
    FROM {counted} WHERE copies > 1
)
SELECT partition, offset FROM numbered WHERE number <= {limit} ORDER BY partition, offset
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """One partition's rows of the log that is there now."""

    rows: int
    surplus: int  # rows that would go if every offset were there once
    first: int
    last: int
    under: int  # different offsets among those that the topic no longer keeps
    inside: int  # different offsets among those that it keeps
    beyond: int  # rows at or past the topic's end


Holes = Mapping[int, tuple[Range, ...]]
"""Partition -> its first `HOLES` ranges of offsets without a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """One version of a table."""

    counts: Mapping[int, Counts]  # of each partition that has rows
    holes: Holes  # among the offsets that the topic keeps
    doubles: Mapping[int, tuple[int, ...]]  # the first `LISTED` offsets that are there twice
    gone: Mapping[int, int] = field(default_factory=dict)
    """Partition -> how many offsets never landed that the topic no longer keeps."""
    gone_holes: Holes = field(default_factory=dict)
    earlier: Mapping[int, int] = field(default_factory=dict)
    """Partition -> rows of an earlier topic of this name."""
    rewritten: Mapping[int, int] = field(default_factory=dict)
    """Partition -> rows of what a log was before it was cut, where it was written again."""
    unchecked: str = ""  # why rows of different logs could not be told apart


def landed(
    spark: Any, path: str, bounds: Bounds, topic: str, topic_id: str | None
) -> Landed | None:
    """Read the table at `path`; None if there is no table. Raises what pyspark raises."""
    table = spark.read.format("delta")
    try:
        _ = table.load(path).schema
    except AnalysisException as exc:
        if missing(exc):
            return None
        raise
    commits = commits_of(spark, path)
    known = past(commits, topic, topic_id)
    # One version, the newest: landing goes on while questions are asked.
    question = _Question(spark, path, commits[0].version, bounds, known)
    if not known.splits:
        return question.answer()
    try:
        return question.answer()
    except PySparkException as exc:
        versions = ", ".join(str(split.version) for split in known.splits)
        whole = _Question(spark, path, commits[0].version, bounds, replace(known, splits=()))
        why = f"version {versions} of the table can no longer be read: {reason(exc)}"
        return replace(whole.answer(), unchecked=why)


@dataclass(frozen=True, slots=True)
class _Question:
    """Everything that is asked of one version."""

    spark: Any
    path: str
    version: int
    bounds: Bounds
    past: Past

    def answer(self) -> Landed:
        if self.past.splits:
            ends = {p: end for p, (_, end) in self.bounds.items()}
            found = origins(self.spark, self._counted, self.version, self.past.splits, ends)
            counted, earlier, rewritten = found.present, found.earlier, found.rewritten
        else:
            counted, earlier, rewritten = self._counted(self.version), {}, {}
        counts = self._counts(counted)
        windows = {p: w for p, w in self._gone_windows(counts).items() if w[0] < w[1]}
        gone = {p: end - start - _under(counts, p) for p, (start, end) in windows.items()}
        return Landed(
            counts=counts,
            holes=self._holes(counted, self.bounds) if self._lacking(counts) else {},
            doubles=self._doubles(counted) if any(c.surplus for c in counts.values()) else {},
            gone={p: number for p, number in gone.items() if number},
            gone_holes=self._holes(counted, windows) if any(gone.values()) else {},
            earlier=earlier,
            rewritten=rewritten,
        )

    def _counted(self, version: int) -> Any:
        rows = self.spark.read.format("delta").option("versionAsOf", version).load(self.path)
        return self.spark.sql(_COUNTED, rows=rows)

    def _counts(self, counted: Any) -> dict[int, Counts]:
        rows = self.spark.sql(_COUNTS, counted=counted, windows=self._frame(self.bounds)).collect()
        return {r.partition: Counts(**{f.name: r[f.name] for f in fields(Counts)}) for r in rows}

    def _lacking(self, counts: Mapping[int, Counts]) -> bool:
        return any(
            end - start > (counts[p].inside if p in counts else 0)
            for p, (start, end) in self.bounds.items()
        )

    def _gone_windows(self, counts: Mapping[int, Counts]) -> Bounds:
        """Return partition -> offsets that the topic no longer keeps, and that were to land.

        From where landing began up to where it is: later ones may be staged and still land.
        """
        begins, ends = dict(self.past.begins), dict(self.past.ends)
        for p, count in counts.items():
            begins[p] = min(count.first, begins.get(p, count.first))
            ends[p] = max(count.last + 1, ends.get(p, 0))
        known = self.bounds.keys() & begins.keys()
        return {p: (begins[p], min(self.bounds[p][0], ends[p])) for p in sorted(known)}

    def _holes(self, counted: Any, windows: Bounds) -> Holes:
        holes = defaultdict[int, list[Range]](list)
        limits = self._frame(windows)
        for row in self.spark.sql(_HOLES, counted=counted, windows=limits, limit=HOLES).collect():
            holes[row.partition].append(Range(row.first, row.last))
        return {partition: tuple(ranges) for partition, ranges in holes.items()}

    def _doubles(self, counted: Any) -> dict[int, tuple[int, ...]]:
        doubles = defaultdict[int, list[int]](list)
        for row in self.spark.sql(_DOUBLES, counted=counted, limit=LISTED).collect():
            doubles[row.partition].append(row.offset)
        return {partition: tuple(offsets) for partition, offsets in doubles.items()}

    def _frame(self, windows: Bounds) -> Any:
        rows = [(p, start, end) for p, (start, end) in sorted(windows.items())]
        return frame(self.spark, _WINDOWS, rows)


def _under(counts: Mapping[int, Counts], partition: int) -> int:
    return counts[partition].under if partition in counts else 0
