"""Bad records land beside a table of columns, once: against a real Spark with Delta."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.column_tables import (
    EPOCH,
    ITEMS,
    TOPIC_ID,
    Decoded,
    bad_offsets,
    landed,
    offsets,
    stage_decoded,
)
from tests.integration.lake.tables import LEASE, OTHER_LEASE, new_lake

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import StagedUnreadable, TableRefused, WriteConflict
from binwright.protocol.model import TopicPartition
from binwright.tables.ports import FileSlice

pytestmark = pytest.mark.integration

MIXED = [Decoded(0, {"id": 0}), Decoded(1), Decoded(2, {}), Decoded(3), Decoded(4, partition=1)]


@pytest.fixture
async def tables(lake: Path, spark_url: str, staging: FileStaging) -> AsyncIterator[SparkLake]:
    """The lake under test; its table of `items` is open."""
    await staging.write_lease("items", LEASE)
    async with new_lake(lake, spark_url) as tables:
        await tables.open(ITEMS)
        yield tables


# --- what lands --------------------------------------------------------------------------------


async def test_each_record_lands_in_one_of_the_two_tables(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    batch = stage_decoded(lake, MIXED)
    await tables.append_bad("items", batch, LEASE, "stamp")
    await tables.append("items", batch, LEASE, "stamp")
    found = landed(spark, lake, "items__bad")

    assert offsets(spark, lake) == [0, 2]
    assert bad_offsets(spark, lake) == [1, 3, 4]
    assert found[0]["_kafka"] == {
        "topic": "items",
        "partition": 0,
        "offset": 1,
        "timestamp": EPOCH + timedelta(seconds=1),
        "timestamp_type": 0,
        "key": b"k",
        "headers": [{"key": "h", "value": b"1"}],
    }
    assert (found[0]["topic_id"], found[0]["kind"], found[0]["reason"], found[0]["value"]) == (
        TOPIC_ID,
        "json",
        "at 1",
        b"x" * 10,
    )
    assert datetime.now(UTC) - found[0]["landed_at"] < timedelta(hours=1)


async def test_a_part_of_a_file_lands_its_bad_records_alone(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    batch = stage_decoded(lake, [Decoded(n) for n in range(9)])
    slices = (FileSlice("a.parquet", {0: (3, 5)}, whole=False, bytes=1_000, topic="items"),)
    large = replace(batch, slices=slices, bytes=240 << 20)
    await tables.append_bad("items", large, LEASE, "stamp")
    assert bad_offsets(spark, lake) == [3, 4]


async def test_a_batch_without_rows_of_a_kind_lands_none_of_it(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    good = stage_decoded(lake, [Decoded(0, {})])
    bad = stage_decoded(lake, [Decoded(1)], name="b.parquet")
    await tables.append_bad("items", good, LEASE, "stamp")
    await tables.append("items", bad, LEASE, "stamp")
    assert not offsets(spark, lake)
    assert not bad_offsets(spark, lake)


async def test_the_highest_bad_offsets_are_those_of_one_topic(
    tables: SparkLake, lake: Path
) -> None:
    zero, one = TopicPartition("items", 0), TopicPartition("items", 1)
    assert await tables.highest_bad_offsets("items", {zero: 0}) == {}
    await tables.append_bad("items", stage_decoded(lake, MIXED), LEASE, "stamp")
    nameless = stage_decoded(lake, [Decoded(9)], name="b.parquet", topic_id=None)
    await tables.append_bad("items", nameless, LEASE, "stamp")

    assert await tables.highest_bad_offsets("items", {zero: 0, one: 0}) == {
        TOPIC_ID: {zero: 3, one: 4},
        None: {zero: 9},
    }
    assert await tables.highest_bad_offsets("items", {zero: 4, one: 5}) == {None: {zero: 9}}
    many = {TopicPartition("items", n): 4 for n in range(2, 200)}
    assert await tables.highest_bad_offsets("items", {zero: 4, one: 4, **many}) == {
        TOPIC_ID: {one: 4},
        None: {zero: 9},
    }


async def test_a_table_of_bad_records_that_is_gone_is_noticed_and_made_again(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    batch = stage_decoded(lake, MIXED)
    await tables.check("items", ())
    shutil.rmtree(lake / "items__bad")
    with pytest.raises(TableRefused):
        await tables.append_bad("items", batch, LEASE, "stamp")
    with pytest.raises(TableRefused):
        await tables.check("items", ())
    await tables.open(ITEMS)
    await tables.append_bad("items", batch, LEASE, "stamp")
    assert bad_offsets(spark, lake) == [1, 3, 4]


# --- what has landed in part -------------------------------------------------------------------


@pytest.mark.parametrize("topic_id", [TOPIC_ID, None])
async def test_what_landed_as_bad_is_left_out_whatever_it_decodes_to_now(
    tables: SparkLake, lake: Path, spark: SparkSession, topic_id: str | None
) -> None:
    """Records 1 and 3 landed as bad; read again, 1 decodes, and 0 does not any more."""
    await tables.append_bad("items", stage_decoded(lake, MIXED, topic_id=topic_id), LEASE, "s")
    again = [Decoded(0), Decoded(1, {}), Decoded(2, {}), Decoded(3), Decoded(4, partition=1)]
    batch = stage_decoded(lake, again, name="b.parquet", topic_id=topic_id)
    batch = replace(batch, landed_in_part=True)
    await tables.append_bad("items", batch, LEASE, "stamp")
    await tables.append("items", batch, LEASE, "stamp")

    assert offsets(spark, lake) == [2]
    assert bad_offsets(spark, lake) == [0, 1, 3, 4]


async def test_without_the_mark_nothing_is_left_out(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    batch = stage_decoded(lake, [Decoded(1)])
    for _ in range(2):
        await tables.append_bad("items", batch, LEASE, "stamp")
    assert bad_offsets(spark, lake) == [1, 1]


@pytest.mark.parametrize(
    ("rows", "topic_id", "kept"),
    [
        ([Decoded(1, {}), Decoded(3)], "another", [[1], [3]]),
        ([Decoded(1, {}), Decoded(3)], None, [[1], [3]]),
        ([Decoded(1, {}, at=EPOCH), Decoded(3, at=EPOCH)], TOPIC_ID, [[1], [3]]),
        ([Decoded(1, {}, timeless=True), Decoded(3, timeless=True)], TOPIC_ID, [[1], [3]]),
        ([Decoded(1, {}, partition=1), Decoded(3, partition=1)], TOPIC_ID, [[1], [3]]),
        ([Decoded(6, {}, timeless=True), Decoded(7, timeless=True)], TOPIC_ID, [[], []]),
    ],
    ids=["other topic", "unknown topic", "other time", "no time", "other partition", "timeless"],
)
async def test_exactly_the_same_record_is_left_out(  # noqa: PLR0917 - fixtures
    tables: SparkLake,
    lake: Path,
    spark: SparkSession,
    rows: Sequence[Decoded],
    topic_id: str | None,
    kept: list[list[int]],
) -> None:
    before = [*MIXED, Decoded(6, timeless=True), Decoded(7, timeless=True)]
    await tables.append_bad("items", stage_decoded(lake, before), LEASE, "stamp")
    batch = stage_decoded(lake, rows, name="b.parquet", topic_id=topic_id)
    batch = replace(batch, landed_in_part=True)
    await tables.append("items", batch, LEASE, "stamp")
    await tables.append_bad("items", batch, LEASE, "stamp")

    assert offsets(spark, lake) == kept[0]
    assert sorted(bad_offsets(spark, lake)) == sorted([1, 3, 4, 6, 7, *kept[1]])


async def test_the_bad_records_of_several_files_and_parts_are_left_out(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    landed_before = [Decoded(n) for n in range(0, 30, 3)]
    await tables.append_bad("items", stage_decoded(lake, landed_before), LEASE, "stamp")
    for first in (0, 10, 20):
        rows = [Decoded(n, {}) for n in range(first, first + 10)]
        batch = stage_decoded(lake, rows, name=f"{first}.parquet")
    slices = (
        FileSlice("20.parquet", {0: (20, 30)}, whole=True, bytes=1_000, topic="items"),
        FileSlice("0.parquet", {0: (5, 10)}, whole=False, bytes=1_000, topic="items"),
        FileSlice("10.parquet", {0: (10, 20)}, whole=True, bytes=1_000, topic="items"),
    )
    batch = replace(batch, slices=slices, landed_in_part=True)
    await tables.append("items", batch, LEASE, "stamp")

    assert offsets(spark, lake) == [n for n in range(5, 30) if n % 3]


# --- claims ------------------------------------------------------------------------------------


async def test_a_claim_is_in_the_metadata_of_both_tables_and_can_be_repeated(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    for _ in range(2):
        await tables.claim("items", "w-1", "claim")
    for name in ("items", "items__bad"):
        rows = spark.sql(f"SHOW TBLPROPERTIES delta.`{lake}/{name}`").collect()
        assert {row[0]: row[1] for row in rows}["binwright.writer"] == "w-1"
    assert (await tables.history("items", 1)).commits[0].metadata == "claim"


async def test_a_table_is_claimed_only_after_its_bad_records(tables: SparkLake, lake: Path) -> None:
    """The stamp of the claim says that it is whole."""
    shutil.rmtree(lake / "items__bad")
    with pytest.raises(TableRefused, match="items__bad"):
        await tables.claim("items", "w-1", "claim")
    assert (await tables.history("items", 1)).commits[0].metadata is None


@pytest.mark.parametrize("bad", [True, False])
async def test_neither_kind_lands_under_a_lease_that_was_deleted(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession, bad: bool
) -> None:
    batch = stage_decoded(lake, MIXED)
    await staging.write_lease("items", OTHER_LEASE)
    await staging.delete_other_leases("items", OTHER_LEASE)
    append = tables.append_bad if bad else tables.append
    for landed_in_part in (False, True):
        with pytest.raises(StagedUnreadable) as result:
            await append("items", replace(batch, landed_in_part=landed_in_part), LEASE, "stamp")
        assert result.value.files == {LEASE}
    with pytest.raises(StagedUnreadable):
        await tables.commit_stamp("items", LEASE, 1, "stamp")

    assert not offsets(spark, lake)
    assert not bad_offsets(spark, lake)


async def test_bad_records_that_a_claim_overtakes_land_nothing(
    tables: SparkLake, lake: Path, spark_url: str, spark: SparkSession
) -> None:
    """They may have read their lease before it was deleted: the metadata stop them then."""
    async with new_lake(lake, spark_url) as other:
        await other.open(ITEMS)
        for number in range(1, 10):
            first = number * 100_000
            rows = [Decoded(first + n, size=1_000) for n in range(60_000)]
            batch = stage_decoded(lake, rows, name=f"{number}.parquet")
            before = len(list((lake / "items__bad").glob("*.parquet")))
            write = asyncio.create_task(tables.append_bad("items", batch, LEASE, "slow"))
            while len(list((lake / "items__bad").glob("*.parquet"))) == before:
                assert not write.done()
                await asyncio.sleep(0.01)
            await other.claim("items", f"w-{number}", "claim")
            (outcome,) = await asyncio.gather(write, return_exceptions=True)
            if isinstance(outcome, WriteConflict):
                assert not any(offset >= first for offset in bad_offsets(spark, lake))
                return
            assert outcome is None
    pytest.fail("no claim was ever quick enough")
