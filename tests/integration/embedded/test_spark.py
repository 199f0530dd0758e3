"""A Spark server keeps its address, and tables outlive it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from binwright.local.spark import run_spark

pytestmark = pytest.mark.integration


@contextmanager
def session(url: str) -> Iterator[SparkSession]:
    spark = SparkSession.builder.remote(url).create()
    try:
        yield spark
    finally:
        spark.stop()


@pytest.mark.usefixtures("hostile_environment")
async def test_tables_outlive_a_kill(awkward: Path, lake: Path) -> None:
    table = str(lake / "t")
    async with run_spark(awkward, cores=1) as server:
        url, first = server.url, server.pid
        with session(url) as spark:
            spark.range(3).write.format("delta").save(table)
        await server.kill()
        await server.start()
        assert (server.url, server.pid != first) == (url, True)
        with session(url) as spark:
            doubled = udf(lambda number: 2 * number, "long")  # in a Python that Spark starts
            rows = spark.read.format("delta").load(table).select(doubled("id")).collect()
    assert sorted(row[0] for row in rows) == [0, 2, 4]
