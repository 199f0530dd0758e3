"""Which log each row of a table came from, by the table's older versions. Blocking.

Rows in the version before a split come from the log before it; compaction rewrites files, but not
the rows of a version. Rows that were deleted since are not counted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from binwright.audit.lake_reader import frame
from binwright.audit.log_generations import Split

# Log 0 ends with the first split, and so on; `copies` of a version count all logs up to it.
_ADDED = """
WITH newest AS (SELECT partition, offset, copies AS most FROM {logs} WHERE log = {last}),
upto AS (
    SELECT partition, offset, log, least(copies, most) AS copies
    FROM {logs} JOIN newest USING (partition, offset)
), stepped AS (
    SELECT partition, offset, log, copies - coalesce(max(copies) OVER (
        PARTITION BY partition, offset ORDER BY log
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS copies FROM upto
)
SELECT partition, offset, log, copies FROM stepped WHERE copies > 0
"""
# A truncated log continues at its end then: the lowest offset that landed afterwards.
_EDGES = """
SELECT partition, cut, coalesce(min(IF(log >= cut, offset, NULL)), min(end)) AS edge
FROM {cuts} LEFT JOIN {added} USING (partition) GROUP BY partition, cut
"""
_OF_THIS_TOPIC = """
SELECT a.partition, a.offset, a.copies FROM {added} AS a {kind} JOIN {edges} AS e
ON a.partition = e.partition AND a.log < e.cut AND a.offset >= e.edge
WHERE a.log >= {first}
"""
_PRESENT = "SELECT partition, offset, sum(copies) AS copies FROM {some} GROUP BY ALL"
_EARLIER = "SELECT partition, copies FROM {added} WHERE log < {first}"
_SUMS = "SELECT partition, sum(copies) AS copies FROM {some} GROUP BY partition"
_CUTS = {"partition": "INT", "cut": "INT", "end": "BIGINT"}


@dataclass(frozen=True, slots=True)
class Origins:
    """A table's rows, by the logs they came from."""

    present: Any  # frame of partition, offset, copies: of the present log
    earlier: Mapping[int, int]  # partition -> rows of an earlier topic of this name
    rewritten: Mapping[int, int]  # -> rows whose offsets were used again after a truncation


def origins(
    spark: Any,
    counted: Callable[[int], Any],
    version: int,
    splits: Sequence[Split],
    ends: Mapping[int, int],
) -> Origins:
    """Assign the rows of one version to logs. Raises what pyspark raises, also later, by `present`.

    Args:
        spark: The session.
        counted: Returns a version's rows: partition, offset, copies.
        version: The version to look at.
        splits: Oldest first.
        ends: Partition -> the topic's end.
    """
    versions = [*(split.version for split in splits), version]
    logs = reduce(
        lambda frame, other: frame.unionByName(other),
        (counted(v).selectExpr("*", f"{log} AS log") for log, v in enumerate(versions)),
    )
    added = spark.sql(_ADDED, logs=logs, last=len(splits))
    first = max((n for n, split in enumerate(splits, 1) if not split.cut), default=0)
    cuts = [
        (p, n, ends.get(p, 0)) for n, s in enumerate(splits, 1) if n > first for p in sorted(s.cut)
    ]
    edges = spark.sql(_EDGES, cuts=frame(spark, _CUTS, cuts), added=added)

    def of_this_topic(kind: str) -> Any:
        return spark.sql(
            _OF_THIS_TOPIC.replace("{kind}", kind), added=added, edges=edges, first=first
        )

    return Origins(
        present=spark.sql(_PRESENT, some=of_this_topic("LEFT ANTI")),
        earlier=_sums(spark, spark.sql(_EARLIER, added=added, first=first)),
        rewritten=_sums(spark, of_this_topic("LEFT SEMI")) if cuts else {},
    )


def _sums(spark: Any, some: Any) -> dict[int, int]:
    return {row.partition: row.copies for row in spark.sql(_SUMS, some=some).collect()}
