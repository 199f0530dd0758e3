"""What a commit lands, against a real Spark Connect server with Delta."""

import asyncio
import os
import signal
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.tables import (
    APP,
    CLICKS,
    DEADLINE_S,
    ONCE,
    ROWS,
    TABLE,
    P,
    Q,
    file_part,
    files,
    landed_offsets,
    new_lake,
    records,
    stage_file,
    wait_for_write,
    whole,
)

from binwright.consumer.lake.spark_lake import SparkLake
from binwright.consumer.staging.file_staging import FileStaging
from binwright.local.spark import run_spark
from binwright.protocol.errors import LakeUnavailable, StagedUnreadable, WriteConflict, WriteUnclear
from binwright.protocol.ports.kafka import Record
from binwright.protocol.ports.lake import Batch, Lake

pytestmark = pytest.mark.integration


# --- what lands --------------------------------------------------------------------------------


async def test_a_record_lands_as_it_was(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    headers = (("a", b"1"), ("a", None))
    rows = {
        Q: [Record(7, 1_700_000_000_123, b"k", b"\xff\x00", 1, headers), Record(9, -1, None, None)]
    }
    fits: Lake = tables

    assert await fits.append("orders", await stage_file(staging, rows), APP, 1, "stamp") == 1
    found = spark.read.format("delta").load(f"{lake}/orders").orderBy("offset")
    assert found.toArrow().to_pylist() == [
        {
            "topic": "orders",
            "partition": 1,
            "offset": 7,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
            "timestamp_type": 1,
            "key": b"k",
            "value": b"\xff\x00",
            "headers": [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
        },
        {
            "topic": "orders",
            "partition": 1,
            "offset": 9,
            "timestamp": None,
            "timestamp_type": 0,
            "key": None,
            "value": None,
            "headers": [],
        },
    ]


async def test_many_files_and_parts_of_files_land_as_one_file_each_row_once(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    for n in range(40):
        await staging.write("orders", f"w{n}.parquet", {P: records(10, first=10 * n)})
    for n in range(3):  # both begin before what is committed, and hold what others hold
        await staging.write("orders", f"p{n}.parquet", {Q: records(30), P: records(5)})
    slices = [whole(f"w{n}.parquet", {P: records(10, first=10 * n)}) for n in range(40)]
    slices += [file_part(f"p{n}.parquet", {1: (10 * n, 10 * n + 10)}) for n in range(3)]

    assert await tables.append("orders", Batch(tuple(slices)), APP, 1, "stamp") == 1
    assert files(lake) == 1
    expected = [(0, offset) for offset in range(400)] + [(1, offset) for offset in range(30)]
    assert landed_offsets(spark, lake) == Counter(expected)


async def test_a_part_may_have_ranges_of_several_partitions(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    await staging.write("orders", "a.parquet", {P: records(10), Q: records(10)})
    slices = (file_part("a.parquet", {0: (8, 20), 1: (0, 1)}),)
    await tables.append("orders", Batch(slices), APP, 1, "stamp")

    assert landed_offsets(spark, lake) == Counter([(0, 8), (0, 9), (1, 0)])


async def test_a_lake_whose_path_looks_like_a_pattern_or_a_partition_lands_all_the_same(
    lake: Path, spark_url: str, spark: SparkSession
) -> None:
    strange = lake / "day=7" / "a[b]{c}*"
    staging = FileStaging(str(strange / "_staging"))
    async with staging, new_lake(strange, spark_url) as tables:
        await tables.open(TABLE)
        await tables.append("orders", await stage_file(staging, ROWS), APP, 1, "stamp")

    assert landed_offsets(spark, strange) == ONCE


async def test_a_batch_without_files_is_only_a_stamp(tables: SparkLake) -> None:
    assert await tables.append("orders", Batch(), APP, 1, "stamp") == 1
    assert (await tables.history("orders", 1)).commits[0].metadata == "stamp"
    assert (await tables.files("orders")).count == 0


# --- the verdict -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [4, 5])
async def test_the_same_or_a_lower_number_is_skipped(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession, number: int
) -> None:
    batch = await stage_file(staging, ROWS)
    assert await tables.append("orders", batch, APP, 5, "stamp") == 1

    assert await tables.append("orders", batch, APP, number, "stamp") is None
    assert await tables.claim("orders", APP, number, "claim") is None
    assert landed_offsets(spark, lake) == ONCE


async def test_a_claim_fences_lower_versions_only(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    batch = await stage_file(staging, ROWS)
    assert await tables.claim("orders", APP, 9, "claim") == 1

    assert await tables.append("orders", batch, APP, 8, "stamp") is None
    assert await tables.append("orders", batch, "other", 1, "stamp") == 2
    assert landed_offsets(spark, lake) == ONCE


async def test_two_tables_at_the_same_version_are_reported_apart(tables: SparkLake) -> None:
    await tables.open(CLICKS)
    assert await tables.claim("orders", APP, 1, "claim") == 1
    assert await tables.claim("clicks", APP, 1, "claim") == 1

    assert await tables.claim("orders", APP, 1, "claim") is None
    assert await tables.claim("clicks", APP, 1, "claim") is None
    assert await tables.claim("orders", APP, 2, "claim") == 2


async def test_of_two_writers_the_one_that_is_overtaken_by_a_claim_lands_nothing(
    tables: SparkLake, staging: FileStaging, lake: Path, spark_url: str, spark: SparkSession
) -> None:
    async with new_lake(lake, spark_url) as other:
        await other.claim("orders", "warm", 1, "claim")
        for number in range(10, 100, 10):
            before = files(lake)
            first = number * 100_000
            rows = {P: records(60_000, first=first, size=1_000)}
            batch = await stage_file(staging, rows, f"{number}.parquet")
            write = asyncio.create_task(tables.append("orders", batch, APP, number, "slow"))
            await wait_for_write(write, lake, before)
            await other.claim("orders", APP, number + 1, "claim")
            try:
                assert await write is not None  # it was quicker than the claim
            except WriteConflict:
                assert not any(offset >= first for _, offset in landed_offsets(spark, lake))
                return
    pytest.fail("no claim was ever quick enough")


async def test_an_unclear_write_sent_again_lands_once(
    tables: SparkLake, staging: FileStaging, lake: Path, spark_url: str, spark: SparkSession
) -> None:
    batch = await stage_file(staging, {P: records(20_000, size=500)})
    async with new_lake(lake, spark_url, write_timeout_s=0.2) as hasty:
        with pytest.raises(WriteUnclear, match=r"no answer within 0\.2 s"):
            await hasty.append("orders", batch, APP, 1, "stamp")
    while True:
        try:
            version = await tables.append("orders", batch, APP, 1, "stamp")
        except WriteConflict:
            continue  # the first one goes on
        break

    history = await tables.history("orders", 9)
    assert [c.metadata for c in history.commits] == ["stamp", None]
    assert version in {None, history.commits[0].version}
    assert landed_offsets(spark, lake) == Counter((0, offset) for offset in range(20_000))


async def test_a_write_that_overruns_its_limit_has_more_time_each_time_until_it_lands(
    tables: SparkLake, staging: FileStaging, lake: Path, spark_url: str
) -> None:
    """The server ends a call that is given up: with the same limit it would never get through."""
    batch = await stage_file(staging, {P: records(20_000, size=500)})
    limits: list[str] = []
    async with new_lake(lake, spark_url, write_timeout_s=0.1) as hasty:
        for _ in range(12):
            try:
                await hasty.append("orders", batch, APP, 1, "stamp")
            except WriteUnclear as exc:
                limits.append(str(exc))
            except WriteConflict:
                continue
            else:
                break
        else:
            pytest.fail("it never landed")

    assert "0.1 s" in limits[0]
    assert "0.2 s" in limits[1]
    history = await tables.history("orders", 9)
    assert [c.metadata for c in history.commits].count("stamp") == 1


async def test_a_call_that_was_given_up_leaves_the_next_one_alone(tables: SparkLake) -> None:
    giving_up = asyncio.create_task(tables.claim("orders", APP, 1, "claim"))
    await asyncio.sleep(0)
    giving_up.cancel()

    assert await tables.claim("orders", "other", 1, "claim") in {1, 2}


async def test_a_session_that_pyspark_has_closed_is_left(tables: SparkLake) -> None:
    """It closes one by itself when the server does not know it any more, and names it no fault."""
    await tables._session("orders").run(lambda spark: spark.client.close(), DEADLINE_S)
    with pytest.raises(WriteUnclear, match="NO_ACTIVE_SESSION"):
        await tables.claim("orders", APP, 1, "claim")
    assert await tables.claim("orders", APP, 1, "claim") == 1


# --- staged files that cannot be read ----------------------------------------------------------


@pytest.mark.parametrize("harm", ["gone", "truncated", "torn", "page"])
async def test_a_staged_file_that_cannot_be_read_is_named_and_nothing_lands(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession, harm: str
) -> None:
    await stage_file(staging, ROWS, "good.parquet")
    rows = {P: records(2_000, first=3, size=500)}
    await stage_file(staging, rows, "bad.parquet")
    bad = lake / "_staging" / "orders" / "bad.parquet"
    content = bad.read_bytes()
    match harm:
        case "gone":
            bad.unlink()
        case "truncated":
            bad.write_bytes(content[: len(content) // 2])
        case "torn":
            bad.write_bytes(content[:-4] + b"XXXX")
        case "page":
            bad.write_bytes(content[:4] + b"\xff" * 64 + content[68:])
    batch = Batch((whole("good.parquet", ROWS), whole("bad.parquet", rows)))
    with pytest.raises(StagedUnreadable) as result:
        await tables.append("orders", batch, APP, 1, "stamp")

    assert result.value.files == {"bad.parquet"}
    assert await staging.readable("orders", batch.files) == {"good.parquet"}
    assert not landed_offsets(spark, lake)
    assert await tables.append("orders", Batch((batch.slices[0],)), APP, 1, "stamp") == 1


async def test_a_server_that_is_set_to_ignore_corrupt_files_fails_all_the_same(
    tables: SparkLake, staging: FileStaging
) -> None:
    """Its own settings would have a lost file's rows counted as landed."""
    await stage_file(staging, ROWS)

    def careless(session: SparkSession) -> None:
        session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
        session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")

    await tables._session("orders").run(careless, DEADLINE_S)
    slices = (whole("a.parquet", ROWS), whole("lost.parquet", {P: records(1, first=9)}))
    with pytest.raises(StagedUnreadable):
        await tables.append("orders", Batch(slices), APP, 1, "stamp")


# --- servers -----------------------------------------------------------------------------------


async def test_a_server_that_does_not_exist_is_named_with_what_to_check(lake: Path) -> None:
    async with new_lake(lake, "sc://127.0.0.1:9/;token=secret") as tables:
        with pytest.raises(LakeUnavailable, match=r"sc://127\.0\.0\.1:9 .*lake\.spark") as result:
            await tables.open(TABLE)
        with pytest.raises(WriteUnclear):
            await tables.claim("orders", APP, 1, "claim")

    assert "secret" not in str(result.value)


async def test_a_killed_and_a_frozen_server_lose_no_row(
    tmp_path: Path, lake: Path, staging: FileStaging
) -> None:
    async with (
        asyncio.timeout(3 * DEADLINE_S),
        run_spark(tmp_path / "own") as server,
        new_lake(lake, server.url, write_timeout_s=DEADLINE_S) as tables,
    ):
        await tables.open(TABLE)
        await tables.claim("orders", APP, 1, "claim")
        batch = await stage_file(staging, {P: records(20_000, size=1_000)})
        write = asyncio.create_task(tables.append("orders", batch, APP, 2, "big"))
        await wait_for_write(write, lake, 0)
        await server.kill()
        with pytest.raises(WriteUnclear):
            await write
        with pytest.raises(LakeUnavailable):
            await tables.history("orders", 1)

        await server.start()
        await tables.append("orders", batch, APP, 2, "big")  # whether or not it had landed
        assert [c.metadata for c in (await tables.history("orders", 1)).commits] == ["big"]
        assert await tables.highest_offsets("orders") == {0: 19_999}

        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        try:
            async with new_lake(lake, server.url, write_timeout_s=1.0) as hasty:
                with pytest.raises(WriteUnclear, match="no answer within 1 s"):
                    await hasty.claim("orders", APP, 3, "claim")
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert await tables.claim("orders", "other", 1, "claim") is not None
