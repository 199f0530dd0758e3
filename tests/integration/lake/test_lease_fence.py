"""A claim fences what an earlier writer still sends, against a real Spark Connect server."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.tables import (
    LEASE,
    ONCE,
    OTHER_LEASE,
    ROWS,
    P,
    files,
    landed_offsets,
    new_lake,
    records,
    sql,
    stage_file,
    wait_for_write,
)

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import StagedUnreadable, WriteConflict

pytestmark = pytest.mark.integration


async def test_a_claim_has_its_stamp_and_the_writers_id(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    await tables.claim("orders", "w-1", "claim")

    assert (await tables.history("orders", 1)).commits[0].metadata == "claim"
    rows = spark.sql(f"SHOW TBLPROPERTIES delta.`{lake}/orders`").collect()
    assert {row[0]: row[1] for row in rows}["binwright.writer"] == "w-1"


@pytest.mark.parametrize("rows", [True, False])
async def test_nothing_lands_under_a_lease_that_was_deleted(
    tables: SparkLake,
    staging: FileStaging,
    lake: Path,
    spark: SparkSession,
    rows: bool,
) -> None:
    batch = await stage_file(staging, ROWS)
    await staging.write_lease("orders", OTHER_LEASE)
    await staging.delete_other_leases("orders", OTHER_LEASE)
    commit = (
        tables.append("orders", batch, LEASE, "stamp")
        if rows
        else tables.commit_stamp("orders", LEASE, 1, "stamp")
    )
    with pytest.raises(StagedUnreadable) as result:
        await commit

    assert result.value.files == {LEASE}
    assert not landed_offsets(spark, lake)
    await tables.append("orders", batch, OTHER_LEASE, "stamp")
    assert landed_offsets(spark, lake) == ONCE


async def until_refused_or_done(write: asyncio.Task[None]) -> bool:
    """Return whether a write was refused because of a claim or a lease that is gone."""
    try:
        await write
    except (WriteConflict, StagedUnreadable):
        return True
    return False


@pytest.mark.parametrize("fence", ["claim", "lease"])
async def test_a_write_that_a_claim_overtakes_lands_nothing(  # noqa: PLR0917 - fixtures
    tables: SparkLake,
    staging: FileStaging,
    lake: Path,
    spark_url: str,
    spark: SparkSession,
    fence: str,
) -> None:
    """Each half of the fence alone: metadata committed, or the lease deleted, while it runs.

    Once the write has begun its file, it may have read its lease: only the metadata stop it then.
    """
    async with new_lake(lake, spark_url) as other:
        for number in range(1, 10):
            before = files(lake)
            first = number * 100_000
            rows = {P: records(60_000, first=first, size=1_000)}
            batch = await stage_file(staging, rows, f"{number}.parquet")
            write = asyncio.create_task(tables.append("orders", batch, LEASE, "slow"))
            if fence == "claim":
                await wait_for_write(write, lake, before)
                await other.claim("orders", f"w-{number}", "claim")
            else:
                await staging.delete_other_leases("orders", "none of them")
            if await until_refused_or_done(write):
                assert not any(offset >= first for _, offset in landed_offsets(spark, lake))
                return
            await staging.write_lease("orders", LEASE)
    pytest.fail("no claim was ever quick enough")


async def test_a_persons_alter_makes_a_write_conflict_and_an_optimize_does_not(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    """After a conflict the same rows go again, under the same lease."""
    await tables.append("orders", await stage_file(staging, ROWS), LEASE, "first")
    refused = 0
    for number in range(1, 6):
        before = files(lake)
        rows = {P: records(60_000, first=number * 100_000, size=1_000)}
        batch = await stage_file(staging, rows, f"{number}.parquet")
        write = asyncio.create_task(tables.append("orders", batch, LEASE, f"{number}"))
        await wait_for_write(write, lake, before)
        table = f"delta.`{lake}/orders`"
        change = (
            f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = '{number}')"
            if number % 2
            else f"OPTIMIZE {table}"
        )
        await asyncio.to_thread(sql, spark, change)
        try:
            await write
        except WriteConflict:
            assert number % 2, "an OPTIMIZE is no conflict"
            refused += 1
            await tables.append("orders", batch, LEASE, f"{number}")
        counts = landed_offsets(spark, lake)
        assert set(counts.values()) == {1}
        assert len(counts) == len(ONCE) + number * 60_000
    assert refused


async def test_a_persons_delete_that_a_claim_overtakes_is_refused_and_can_run_again(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    rows = {P: records(60_000, size=1_000)}
    await tables.append("orders", await stage_file(staging, rows), LEASE, "stamp")
    table = f"delta.`{lake}/orders`"
    delete = f"DELETE FROM {table} WHERE length(sha2(hex(value), 512)) < offset"  # noqa: S608
    before = files(lake)
    deleting = asyncio.create_task(asyncio.to_thread(sql, spark, delete))
    await wait_for_write(deleting, lake, before)
    await tables.claim("orders", "w-1", "claim")
    with contextlib.suppress(Exception):  # it was quicker than the claim, or is refused
        await deleting
    await asyncio.to_thread(sql, spark, delete)

    assert len(landed_offsets(spark, lake)) == 129


@pytest.mark.parametrize("tracked", [True, False])
async def test_a_streaming_reader_of_the_table_goes_on_over_a_claim(  # noqa: PLR0917 - fixtures
    tables: SparkLake,
    staging: FileStaging,
    lake: Path,
    tmp_path: Path,
    spark: SparkSession,
    tracked: bool,
) -> None:
    """With and without a log that tracks the table's schema."""
    await tables.append("orders", await stage_file(staging, ROWS), LEASE, "stamp")
    checkpoint = f"{tmp_path}/checkpoint"

    def read_what_is_new() -> int:
        reader = spark.readStream.format("delta")
        if tracked:
            reader = reader.option("schemaTrackingLocation", f"{checkpoint}/schema")
        query = (
            reader.load(f"{lake}/orders")
            .writeStream.format("parquet")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(f"{tmp_path}/read")
        )
        assert query.awaitTermination(120)
        return int(spark.read.parquet(f"{tmp_path}/read").count())

    assert await asyncio.to_thread(read_what_is_new) == len(ONCE)
    await tables.claim("orders", "w-1", "claim")
    more = {P: records(3, first=100)}
    await tables.append("orders", await stage_file(staging, more, "b.parquet"), LEASE, "stamp")
    assert await asyncio.to_thread(read_what_is_new) == len(ONCE) + 3
