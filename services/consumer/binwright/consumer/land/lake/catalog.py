"""Registers tables in a catalog of Spark, as external ones. All calls block."""

from pyspark.sql.connect.session import SparkSession

from binwright.consumer.land.lake.staged_rows import literal_text
from binwright.protocol.errors import TableRefused
from binwright.runtime.storage_path import place

DETAILS = "# Detailed Table Information"
"""What stands behind a table's columns where Spark describes it."""


def register(spark: SparkSession, path: str, name: str) -> None:
    """Give the table at `path` a name, unless it has it: nothing is committed to its log.

    Raises:
        TableRefused: The name is of something else, which stays as it is.
    """
    quoted = ".".join(f"`{part}`" for part in name.split("."))
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {quoted} USING delta LOCATION {literal_text(path)}"
    ).collect()
    there = _location(spark, quoted)
    if there is None or place(there) != place(path):
        what = "no table" if there is None else f"the table at {there}"
        raise TableRefused(
            f"{name} is {what}, not that at {path}: drop that name, or change register_as"
        )


def _location(spark: SparkSession, quoted: str) -> str | None:
    """Return where the table of a name is; None: it is a view."""
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect()
    rows = [(row["col_name"], row["data_type"]) for row in described]
    details = next((n for n, (title, _) in enumerate(rows) if title == DETAILS), len(rows))
    return dict(rows[details:]).get("Location")
