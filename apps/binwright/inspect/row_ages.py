"""How old rows were when they became readable, from the tables themselves.

A table's log names the commit that added each file. A row's age is the time of that commit minus
the record's timestamp: the difference of the lake's clock and the producer's. Bad records of tables
of columns are in another table, and not measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from binwright.lake.lake_reader import delta_table, reader_of, records
from binwright.runtime.settings.consumer import LakeSettings

_LOG = "add STRUCT<path: STRING, dataChange: BOOLEAN>, commitInfo STRUCT<timestamp: BIGINT>"
# A compaction adds files of rows that were readable before: dataChange is false then, and what it
# replaced stays beside until a vacuum. A log that was compacted repeats actions without the time
# of their commit.
_AGES = """
WITH commits AS (
    SELECT commit, commitInfo.timestamp AS at_ms FROM {log} WHERE commitInfo IS NOT NULL
), added AS (
    SELECT element_at(split(add.path, '/'), -1) AS file, min(at_ms) AS at_ms
    FROM {log} JOIN commits USING (commit) WHERE add.dataChange GROUP BY ALL
), ages AS (
    SELECT (at_ms * 1000 - unix_micros(timestamp)) / 1e6 AS age_s
    FROM {stored} JOIN added USING (file)
)
SELECT count(*) AS rows, greatest((SELECT count(*) FROM {table}) - count(*), 0) AS undated,
       max(age_s) AS max_s,
       percentile_approx(age_s, 0.5, 10000) AS p50_s, percentile_approx(age_s, 0.99, 10000) AS p99_s
FROM ages
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Ages of a table's rows when they became readable, seconds; None where there are no rows.

    Below zero where a producer's clock is ahead of the lake's.
    """

    topic: str
    rows: int  # with a known age
    undated: int  # of the table: their first file or its commit is gone
    p50_s: float | None
    p99_s: float | None
    max_s: float | None


async def freshness(topics: Sequence[str], lake: LakeSettings) -> tuple[Freshness, ...]:
    """Measure the table of each topic; a table that does not exist has no rows.

    Raises:
        LakeUnavailable: Spark does not answer, or cannot read a table.
    """
    measured = []
    for topic in topics:
        path = lake.table_path(topic)
        query = partial(_ages, topic=topic, path=path)
        async with reader_of(lake, topic) as reader:
            measured.append(await reader.run(f"read the log of {path}", query))
    return tuple(measured)


def _ages(spark: Any, topic: str, path: str) -> Freshness:
    if (table := delta_table(spark, path)) is None:
        return Freshness(topic=topic, rows=0, undated=0, p50_s=None, p99_s=None, max_s=None)
    log = spark.read.schema(_LOG).json(f"{path}/_delta_log/*.json")
    log = log.selectExpr("add", "commitInfo", "_metadata.file_name AS commit")
    # A write that was given up leaves torn files, which no version of the table has.
    files = spark.read.schema(table.schema).option("ignoreCorruptFiles", "true")
    stored = files.parquet(path)  # a table without rows has no file
    stored = records(stored, "_metadata.file_name AS file")
    ages = spark.sql(_AGES, log=log, stored=stored, table=table).collect()[0]
    return Freshness(topic=topic, **ages.asDict())
