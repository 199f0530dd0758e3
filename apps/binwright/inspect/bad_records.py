"""The bad records of a table of columns, and which of them are of the present topic.

A bad record has the id of its topic: with another id it is of an earlier topic of this name.
Without one, or where Kafka has no ids, it counts as of the present topic.

Bad records are not assigned to the logs of a topic that was truncated, as rows are
(`log_generations`); those that landed before count as of the present log, too. So after a
truncation
- a bad record whose offset was used again is reported as doubled, or hides that its new record is
  missing;
- one at an offset that was not is reported as beyond the topic's end;
- if the first record that landed afterwards is bad, the row that had its offset before is not
  recognised as `rewritten`, and the offset is reported as doubled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect import functions as sf

from binwright.lake.lake_reader import delta_table, newest_version, records_of

_SUMS = """
SELECT partition, count(*) AS rows, count_if(earlier) AS earlier FROM {bad} GROUP BY partition
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecords:
    """One version of a table of bad records."""

    present: Any  # frame of partition, offset, ...: of the present topic
    rows: Mapping[int, int]  # partition -> all
    earlier: Mapping[int, int]  # -> those of an earlier topic of this name


def read_bad_records(spark: Any, path: str, topic: str, topic_id: str | None) -> BadRecords | None:
    """Read a topic's in the newest version of the table at `path`; None if there are none.

    Blocking; raises what pyspark raises, also later, by `present`.
    """
    if delta_table(spark, path) is None:
        return None
    version = newest_version(spark, path)
    table = spark.read.format("delta").option("versionAsOf", version).load(path)
    is_earlier = sf.coalesce(sf.col("topic_id") != sf.lit(topic_id), sf.lit(False))
    bad = records_of(table, topic, "topic_id").withColumn("earlier", is_earlier)
    sums = spark.sql(_SUMS, bad=bad).collect()
    if not sums:
        return None
    return BadRecords(
        present=bad.where("NOT earlier"),
        rows={row.partition: row.rows for row in sums},
        earlier={row.partition: row.earlier for row in sums},
    )
