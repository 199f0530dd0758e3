"""A sweep's results as rows, and as a Delta table."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from binwright.audit.lake_reader import check_reachable, reason
from binwright.lab.sweep.point import Result
from binwright.protocol.errors import LakeUnavailable
from binwright.runtime.spark_url import redacted_url

SCHEMA = (
    "label string, load string, policy string, consumers_mean double, consumers_max long, "
    "replica_minutes double, changes long, moves long, moved_bytes_per_s double, "
    "paused_s double, lag_max_bytes double, p50_s double, p90_s double, p99_s double, "
    "within_sla double, cost double"
)
"""The columns of a row; see `Score` for their units."""


def rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return a row for each result: its label, its load, and its figures."""
    return [{"label": one.label, "load": one.load, **asdict(one.score)} for one in results]


def write_table(results: Sequence[Result], url: str, path: str) -> None:
    """Write the results into a new Delta table.

    Args:
        results: At least one.
        url: A Spark Connect server, sc://HOST:PORT.
        path: Of the table, as the server sees it.

    Raises:
        LakeUnavailable: Spark failed, or there is a table at this path.
    """
    check_reachable(url)
    spark: Any = None
    try:
        spark = SparkSession.builder.remote(url).create()
        spark.client.set_retry_policies([])
        columns = [name.split()[0] for name in SCHEMA.split(", ")]
        values = [tuple(row[column] for column in columns) for row in rows(results)]
        frame = spark.createDataFrame(values, SCHEMA).coalesce(1)
        frame.write.format("delta").mode("error").save(path)
    except PySparkException as exc:
        raise LakeUnavailable(
            f"write the results to {path}: {reason(exc)} (Spark at {redacted_url(url)})"
        ) from exc
    finally:
        if spark is not None:
            spark.stop()
