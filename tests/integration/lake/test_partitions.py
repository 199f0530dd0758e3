"""Tables that are partitioned by the day of their records, against a real server."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.column_tables import EPOCH, ITEMS, Decoded, landed, stage_decoded
from tests.integration.lake.tables import LEASE, new_lake
from tests.integration.lake.test_clustering import files, log

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import TableRefused
from binwright.tables.ports import Table

pytestmark = pytest.mark.integration

BY_DATE: Table = replace(ITEMS, by_date=True)
LATE = EPOCH.replace(hour=23, minute=59, second=59)
DAY = timedelta(days=1)


@pytest.fixture
async def tables(lake: Path, spark_url: str, staging: FileStaging) -> AsyncIterator[SparkLake]:
    await staging.write_lease("items", LEASE)
    async with new_lake(lake, spark_url) as tables:
        yield tables


async def test_each_day_has_files_of_its_own_whose_rows_are_of_it(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    await tables.open(BY_DATE)
    rows = [
        Decoded(0, {"id": 1}, at=EPOCH),
        Decoded(1, {"id": 2}, at=LATE),
        Decoded(2, {"id": 3}, at=EPOCH + DAY),
        Decoded(3, {"id": 4}, timeless=True),
        Decoded(4, None),
    ]
    batch = stage_decoded(lake, rows)
    await tables.append_bad("items", batch, LEASE, "bad")
    await tables.append("items", batch, LEASE, "stamp")
    await tables.commit_stamp("items", LEASE, 1, "alone")

    found = [(row["_kafka_date"], row["id"]) for row in landed(spark, lake)]
    first = date(2026, 1, 1)
    assert found == [(first, 1), (first, 2), (date(2026, 1, 2), 3), (None, 4)]
    days = {add["partitionValues"]["_kafka_date"] for add in files(lake).values()}
    assert days == {"2026-01-01", "2026-01-02", None}

    await tables.open(ITEMS)  # an entry that names no partitions any more
    await tables.append("items", stage_decoded(lake, rows[:1], name="b.parquet"), LEASE, "stamp")
    assert [row["_kafka_date"] for row in landed(spark, lake)][:2] == [first, first]
    assert (await tables.compact("items")).removed == 2


async def test_old_days_are_deleted_as_whole_files(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    await tables.open(BY_DATE)
    today = datetime.now(UTC).replace(hour=12)
    ages = (0, 1, 3, 4)
    rows = [Decoded(n, {"id": age}, at=today - age * DAY) for n, age in enumerate(ages)]
    await tables.append("items", stage_decoded(lake, rows), LEASE, "stamp")
    assert await tables.expire("items", 1.5 * DAY.total_seconds()) == 2
    assert await tables.expire("items", 1.5 * DAY.total_seconds()) == 0

    assert [row["id"] for row in landed(spark, lake)] == [0, 1]
    removed = [action["remove"] for action in log(lake) if "remove" in action]
    assert len(removed) == 2
    assert len([action for action in log(lake) if "add" in action]) == len(ages)


async def test_a_table_that_is_there_without_partitions_is_refused(
    tables: SparkLake, lake: Path
) -> None:
    await tables.open(ITEMS)
    with pytest.raises(TableRefused, match=r"is not partitioned by _kafka_date, but by nothing"):
        await tables.open(BY_DATE)
    await tables.open(ITEMS)
    await tables.append("items", stage_decoded(lake, [Decoded(0, {"id": 1})]), LEASE, "stamp")
    assert len(files(lake)) == 1
