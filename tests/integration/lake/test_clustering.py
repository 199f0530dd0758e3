"""How rows lie in the files of a table: statistics and clustering, against a real server."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyspark.sql.connect.session import SparkSession
from structlog.testing import capture_logs
from tests.integration.lake.column_tables import ITEMS, Decoded, landed, offsets, stage_decoded
from tests.integration.lake.tables import LEASE, new_lake, sql

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Compaction, Table

pytestmark = pytest.mark.integration

ROWS = 20_000  # of a file that lands: a few hundred kB
SORTED = replace(ITEMS, cluster_by=("id",), statistics=("one.b", "price"))


@asynccontextmanager
async def lake_of(
    lake: Path, url: str, staging: FileStaging, table: Table, **sizes: float
) -> AsyncIterator[SparkLake]:
    await staging.write_lease("items", LEASE)
    async with new_lake(lake, url, **sizes) as tables:
        await tables.open(table)
        yield tables


async def append(tables: SparkLake, lake: Path, number: int, rows: int = ROWS) -> None:
    """Append rows whose ids are spread over all numbers, whatever the file."""
    first = number * rows
    decoded = [Decoded(first + n, {"id": (first + n) * 7_919 % 1_000_003}) for n in range(rows)]
    batch = stage_decoded(lake, decoded, name=f"{number}.parquet")
    await tables.append("items", batch, LEASE, "stamp")


def log(lake: Path, table: str = "items") -> list[dict[str, Any]]:
    """Return all actions of a table's log, in order."""
    found = sorted((lake / table / "_delta_log").glob("*.json"))
    return [json.loads(line) for file in found for line in file.read_text().splitlines()]


def files(lake: Path) -> dict[str, dict[str, Any]]:
    """Return what the table's current files are: their statistics and tags."""
    there: dict[str, dict[str, Any]] = {}
    for action in log(lake):
        if add := action.get("add"):
            there[add["path"]] = add
        if remove := action.get("remove"):
            del there[remove["path"]]
    return there


def ids(lake: Path) -> list[tuple[int, int]]:
    """Return the least and the greatest id of each file, in order."""
    found = [json.loads(add["stats"]) for add in files(lake).values()]
    return sorted((each["minValues"]["id"], each["maxValues"]["id"]) for each in found)


def clustering(spark: SparkSession, lake: Path) -> list[str]:
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{lake}/items`").select("clusteringColumns")
    return list(detail.collect()[0][0])


async def test_files_have_statistics_of_the_columns_that_are_named(
    lake: Path, spark_url: str, staging: FileStaging
) -> None:
    async with lake_of(lake, spark_url, staging, SORTED) as tables:
        row = {"id": 7, "one": {"a": 1, "b": "x"}, "price": None, "day": None}
        await tables.append("items", stage_decoded(lake, [Decoded(0, row)]), LEASE, "stamp")
        (add,) = files(lake).values()
        assert json.loads(add["stats"])["minValues"] == {
            "_kafka": {"partition": 0, "offset": 0, "timestamp": "2026-01-01T00:00:00.000Z"},
            "id": 7,
            "one": {"b": "x"},
        }


async def test_a_table_opened_again_is_not_changed(
    lake: Path, spark_url: str, staging: FileStaging, spark: SparkSession
) -> None:
    async with lake_of(lake, spark_url, staging, SORTED) as tables:
        assert clustering(spark, lake) == ["id"]
        before = len(log(lake))
        await tables.open(SORTED)
        assert len(log(lake)) == before
        await tables.open(replace(SORTED, cluster_by=("Day", "one.b")))
        assert clustering(spark, lake) == ["day", "one.b"]
        await tables.open(ITEMS)  # names nothing: what is there stays

    assert clustering(spark, lake) == ["day", "one.b"]


@pytest.mark.nightly
async def test_compaction_sorts_what_is_new_and_clustering_all_of_it(
    lake: Path, spark_url: str, staging: FileStaging, spark: SparkSession
) -> None:
    sizes = {"compact_below_bytes": 100_000, "target_file_bytes": 700_000}
    async with lake_of(lake, spark_url, staging, SORTED, **sizes) as tables:
        for number in range(6):
            await append(tables, lake, 2 * number)
            await append(tables, lake, 2 * number + 1)
            done = await tables.compact("items")
            assert (done.removed, done.added) == (2, 1)  # not the one before
        assert {low < 100 and high > 999_900 for low, high in ids(lake)} == {True}
        done = await tables.cluster("items")
        assert done.removed == 6
        assert done.added >= 2
        bounds = ids(lake)
        assert all(high < low + 20_000 for (_, high), (low, _) in pairwise(bounds))
        assert await tables.cluster("items") == Compaction(0, 0)
        assert Counter(offsets(spark, lake)) == Counter(range(12 * ROWS))
        await append(tables, lake, 12)
        assert (await tables.compact("items")).removed == 1  # and none that was sorted with others
        await tables.vacuum("items")

    assert deltalake.DeltaTable(f"{lake}/items").to_pyarrow_table().num_rows == 13 * ROWS


async def test_clustering_during_appends_leaves_each_row_once(
    lake: Path, spark_url: str, staging: FileStaging, spark: SparkSession
) -> None:
    async with lake_of(lake, spark_url, staging, SORTED) as tables:
        for number in range(3):
            await append(tables, lake, number, rows=100)
        clustering_now, number = asyncio.create_task(tables.cluster("items")), 3
        while not clustering_now.done():
            await append(tables, lake, number, rows=100)
            number += 1
        assert (await clustering_now).removed >= 3

    assert Counter(offsets(spark, lake)) == Counter(range(100 * number))


async def test_a_table_that_exists_becomes_clustered_and_a_column_that_comes_is_waited_for(
    lake: Path, spark_url: str, staging: FileStaging, spark: SparkSession
) -> None:
    async with lake_of(lake, spark_url, staging, ITEMS) as tables:
        await append(tables, lake, 0, rows=10)
        with capture_logs() as logged:
            await tables.open(replace(ITEMS, cluster_by=("more",), statistics=("id", "list")))
        (event,) = [each for each in logged if each["event"] == "layout.waits"]
        assert event["columns"] == ("more", "list")
        assert clustering(spark, lake) == []
        await tables.add_columns("items", parse_columns("more INT"))
        assert clustering(spark, lake) == ["more"]
        await append(tables, lake, 1, rows=10)

    assert len(landed(spark, lake)) == 20


async def test_a_table_that_cannot_be_clustered_lands_all_the_same(
    lake: Path, spark_url: str, staging: FileStaging, spark: SparkSession
) -> None:
    async with lake_of(lake, spark_url, staging, ITEMS):
        sql(
            spark,
            f"REPLACE TABLE delta.`{lake}/items` USING delta PARTITIONED BY (day) "  # noqa: S608
            f"TBLPROPERTIES ('binwright.group' = 'g', 'binwright.cluster' = 'cluster-a') "
            f"AS SELECT * FROM delta.`{lake}/items`",
        )
    with capture_logs() as logged:
        async with lake_of(lake, spark_url, staging, SORTED) as tables:
            await append(tables, lake, 0, rows=10)
    (event,) = [each for each in logged if each["event"] == "layout.failed"]
    assert "partition" in event["reason"].lower()

    assert len(landed(spark, lake)) == 10
