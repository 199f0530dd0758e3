"""Small files are listed and merged, a portion at a time, on a real server."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.column_tables import EPOCH, ITEMS, Decoded, stage_decoded
from tests.integration.lake.tables import (
    LEASE,
    TABLE,
    P,
    landed_offsets,
    new_lake,
    records,
    sql,
    stage_file,
)
from tests.integration.lake.test_clustering import files, log

from binwright.consumer.decide.land.compaction import CompactionConfig, mergeable, next_portion
from binwright.consumer.land.lake import delta
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.tables.ports import Portion

pytestmark = pytest.mark.integration

DAYS = ("2026-01-01", "2026-01-02")


async def land_items(
    tables: SparkLake, lake: Path, number: int, *, day: int, rows: int = 1
) -> None:
    at = EPOCH + timedelta(days=day)
    landed = [Decoded(1_000 * number + n, {"id": n}, at=at) for n in range(rows)]
    batch = stage_decoded(lake, [*landed, Decoded(1_000 * number + 999)], name=f"{number}.parquet")
    await tables.append_bad("items", batch, LEASE, "bad")
    await tables.append("items", batch, LEASE, "stamp")


@pytest.fixture
async def by_day(tables: SparkLake, lake: Path, staging: FileStaging) -> SparkLake:
    """A table with three files of its first day, two of its second, and five of bad records."""
    await staging.write_lease("items", LEASE)
    await tables.open(replace(ITEMS, by_date=True))
    for number, day in enumerate((0, 0, 0, 1, 1)):
        await land_items(tables, lake, number, day=day)
    return tables


async def test_small_files_are_listed_by_day_and_those_of_bad_records(
    by_day: SparkLake, lake: Path
) -> None:
    parts = await by_day.small_files("items")

    assert parts is not None
    assert {(part.day, part.bad): len(part.sizes) for part in parts} == {
        (DAYS[0], False): 3,
        (DAYS[1], False): 2,
        (None, True): 5,
    }
    sizes = Counter(add["size"] for add in files(lake).values())
    assert Counter(size for part in parts if not part.bad for size in part.sizes) == sizes


@pytest.fixture
def rewriting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file have two row groups: then Spark writes all rows again."""
    monkeypatch.setattr(delta, "MOST_ROW_GROUPS", 1)


async def test_row_groups_of_all_days_are_copied(by_day: SparkLake, lake: Path) -> None:
    before = files(lake)
    done = await by_day.compact("items", Portion(32_000_000, DAYS[0]))

    assert (done.removed, done.added) == (5, 2)
    assert done.removed_bytes == sum(add["size"] for add in before.values())
    assert done.added_bytes == sum(add["size"] for add in files(lake).values())
    merged = pq.ParquetFile(lake / "items" / max(files(lake)))
    assert merged.metadata.num_row_groups == 2


async def test_rows_of_files_with_many_row_groups_are_written_again(
    tables: SparkLake,
    lake: Path,
    staging: FileStaging,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delta, "MOST_ROW_GROUPS", 3)

    async def land(numbers: range) -> None:
        for number in numbers:
            batch = await stage_file(staging, {P: records(10, first=10 * number)}, f"{number}.pq")
            await tables.append("orders", batch, LEASE, "s")

    await land(range(9))
    copied = await tables.compact("orders", Portion(32_000_000, excess=8))
    assert (copied.removed, copied.added, copied.copied) == (9, 3, 9)

    await land(range(9, 11))
    written = await tables.compact("orders", Portion(32_000_000, excess=4))
    assert (written.removed, written.added, written.copied) == (2 + 4, 1 + 1, 2)
    (part,) = await tables.small_files("orders") or ()
    assert len(part.sizes) == 1
    assert landed_offsets(spark, lake).total() == 110


@pytest.mark.usefixtures("rewriting")
async def test_a_portion_merges_files_of_its_day_alone(by_day: SparkLake, lake: Path) -> None:
    before = files(lake)
    done = await by_day.compact("items", Portion(32_000_000, DAYS[0]))

    assert (done.removed, done.added) == (3, 1)
    first = [add for add in before.values() if add["partitionValues"]["_kafka_date"] == DAYS[0]]
    assert done.removed_bytes == sum(add["size"] for add in first)
    left = {path: add for path, add in files(lake).items() if path in before}
    assert {add["partitionValues"]["_kafka_date"] for add in left.values()} == {DAYS[1]}
    (new,) = (add for path, add in files(lake).items() if path not in before)
    assert done.added_bytes == new["size"]
    assert not any("add" in action and action["add"]["dataChange"] for action in log(lake)[-2:])


async def test_a_portion_of_bad_records_leaves_the_rows(by_day: SparkLake, lake: Path) -> None:
    before = files(lake)
    done = await by_day.compact("items", Portion(32_000_000, bad=True))

    assert (done.removed, done.added) == (5, 1)
    assert files(lake) == before


@pytest.mark.usefixtures("rewriting")
async def test_files_above_a_portions_size_stay_as_they_are(
    tables: SparkLake, lake: Path, staging: FileStaging, spark: SparkSession
) -> None:
    for number, count in enumerate((10, 10, 900, 10)):
        rows = {P: records(count, first=1_000 * number)}
        await tables.append("orders", await stage_file(staging, rows, f"{number}.pq"), LEASE, "s")
    (part,) = await tables.small_files("orders") or ()
    small, large = sorted(part.sizes)[2], max(part.sizes)
    assert small < large
    done = await tables.compact("orders", Portion(large))

    assert (done.removed, done.added) == (3, 1)
    (left,) = await tables.small_files("orders") or ()
    assert large in left.sizes
    assert len(left.sizes) == 2
    assert landed_offsets(spark, lake).total() == 930


async def test_merged_files_have_the_codec_of_those_that_consumers_write(
    tables: SparkLake, lake: Path, staging: FileStaging
) -> None:
    for number in range(2):
        rows = {P: records(10, first=10 * number)}
        await tables.append("orders", await stage_file(staging, rows, f"{number}.pq"), LEASE, "s")
    before = {*(lake / "orders").glob("*.parquet")}
    await tables.compact("orders")
    (merged,) = {*(lake / "orders").glob("*.parquet")} - before

    metadata = pq.ParquetFile(merged).metadata
    assert metadata.row_group(0).column(0).compression == "ZSTD"


async def test_compaction_by_need_ends_when_no_files_can_be_merged(
    by_day: SparkLake, lake: Path
) -> None:
    config = CompactionConfig(1)
    portions = []
    while (parts := await by_day.small_files("items")) and (portion := next_portion(parts, config)):
        portions.append((portion.day, portion.bad))
        await by_day.compact("items", portion)

    assert portions == [(None, True), (DAYS[0], False)]
    assert mergeable(parts or (), config).excess == 0
    assert len(files(lake)) == 2


async def test_a_compaction_beside_a_persons_deletion_loses_no_row(
    lake: Path, spark_url: str, staging: FileStaging, spark: SparkSession
) -> None:
    """To Delta one of both conflicts, unless one ends before the other begins."""
    async with new_lake(lake, spark_url) as tables:
        await tables.open(TABLE)
        for number in range(4):
            rows = {P: records(10_000, first=10_000 * number)}
            await tables.append("orders", await stage_file(staging, rows, f"{number}"), LEASE, "s")
        delete = f"DELETE FROM delta.`{lake}/orders` WHERE offset % 10000 = 0"  # noqa: S608 - ours
        deleted, compacted = await asyncio.gather(
            asyncio.to_thread(sql, spark, delete), tables.compact("orders"), return_exceptions=True
        )

        assert not (isinstance(deleted, Exception) and isinstance(compacted, Exception))
        left = Counter(
            (0, n) for n in range(40_000) if isinstance(deleted, Exception) or n % 10_000
        )
        assert landed_offsets(spark, lake) == left
        await tables.compact("orders")
        assert landed_offsets(spark, lake) == left


async def test_a_server_without_the_extension_lists_no_files(
    tables: SparkLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "CATALOG", "nobody")

    assert await tables.small_files("orders") is None
