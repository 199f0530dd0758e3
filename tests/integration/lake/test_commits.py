"""What a commit lands, against a real Spark Connect server with Delta."""

import asyncio
import os
import signal
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.tables import (
    DEADLINE_S,
    LEASE,
    ONCE,
    OTHER_LEASE,
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

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.local.spark import run_spark
from binwright.protocol.errors import LakeUnavailable, StagedUnreadable, WriteConflict, WriteUnclear
from binwright.protocol.ports.kafka import Record
from binwright.tables.ports import Batch, Lake

pytestmark = pytest.mark.integration

OVERRUN_S = 300.0


# --- what lands --------------------------------------------------------------------------------


async def test_a_record_lands_as_it_was(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    headers = (("a", b"1"), ("a", None))
    rows = {
        Q: [Record(7, 1_700_000_000_123, b"k", b"\xff\x00", 1, headers), Record(9, -1, None, None)]
    }
    fits: Lake = tables

    await fits.append("orders", await stage_file(staging, rows), LEASE, "stamp")
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
        await stage_file(staging, {P: records(10, first=10 * n)}, f"w{n}.parquet")
    for n in range(3):  # both begin before what is committed, and hold what others hold
        await stage_file(staging, {Q: records(30), P: records(5)}, f"p{n}.parquet")
    slices = [whole(f"w{n}.parquet", {P: records(10, first=10 * n)}) for n in range(40)]
    slices += [file_part(f"p{n}.parquet", {1: (10 * n, 10 * n + 10)}) for n in range(3)]

    await tables.append("orders", Batch(tuple(slices)), LEASE, "stamp")
    assert files(lake) == 1
    expected = [(0, offset) for offset in range(400)] + [(1, offset) for offset in range(30)]
    assert landed_offsets(spark, lake) == Counter(expected)


async def test_a_part_may_have_ranges_of_several_partitions(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    await stage_file(staging, {P: records(10), Q: records(10)})
    slices = (file_part("a.parquet", {0: (8, 20), 1: (0, 1)}),)
    await tables.append("orders", Batch(slices), LEASE, "stamp")

    assert landed_offsets(spark, lake) == Counter([(0, 8), (0, 9), (1, 0)])


async def test_a_lake_whose_path_looks_like_a_pattern_or_a_partition_lands_all_the_same(
    lake: Path, spark_url: str, spark: SparkSession
) -> None:
    strange = lake / "day=7" / "a[b]{c}*"
    staging = FileStaging(str(strange / "_staging"))
    async with staging, new_lake(strange, spark_url) as tables:
        await tables.open(TABLE)
        await staging.write_lease("orders", LEASE)
        await tables.append("orders", await stage_file(staging, ROWS), LEASE, "stamp")

    assert landed_offsets(spark, strange) == ONCE


async def test_a_file_has_statistics_of_what_queries_filter_by(
    tables: SparkLake, staging: FileStaging, lake: Path
) -> None:
    await tables.append("orders", await stage_file(staging, ROWS), LEASE, "{}")
    newest = max((lake / "orders" / "_delta_log").glob("*.json"))
    actions = map(orjson.loads, newest.read_bytes().splitlines())
    (stats,) = (orjson.loads(each["add"]["stats"]) for each in actions if "add" in each)

    columns = {"partition", "offset", "timestamp"}
    assert stats["numRecords"] == 5
    assert set(stats["minValues"]) == set(stats["maxValues"]) == columns
    assert stats["maxValues"]["offset"] == 8


async def test_a_large_batch_lands_whose_query_spark_compiles(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    batch = replace(await stage_file(staging, ROWS), bytes=240 << 20)
    await tables.append("orders", batch, LEASE, "{}")
    assert landed_offsets(spark, lake) == ONCE


async def test_a_stamp_without_rows_is_a_commit(tables: SparkLake, staging: FileStaging) -> None:
    await staging.prepare()
    for number in (1, 2):
        await tables.commit_stamp("orders", LEASE, number, f"stamp {number}")

    history = await tables.history("orders", 9)
    assert [c.metadata for c in history.commits] == ["stamp 2", "stamp 1", None]
    assert await tables.small_files("orders") == ()


# --- calls without a verdict -------------------------------------------------------------------


async def test_after_an_unclear_write_a_claim_shows_whether_it_landed(
    tables: SparkLake, staging: FileStaging, lake: Path, spark_url: str, spark: SparkSession
) -> None:
    rows = {P: records(20_000, size=500)}
    batch = await stage_file(staging, rows)
    async with new_lake(lake, spark_url, write_timeout_s=0.2) as hasty:
        with pytest.raises(WriteUnclear, match=r"no answer within 0\.2 s"):
            await hasty.append("orders", batch, LEASE, "first")
    await staging.write_lease("orders", OTHER_LEASE)
    await staging.delete_other_leases("orders", OTHER_LEASE)
    while True:
        try:
            await tables.claim("orders", "w-2", "claim")
        except WriteConflict:
            continue
        break
    landed = "first" in [c.metadata for c in (await tables.history("orders", 9)).commits]
    if not landed:
        await tables.append("orders", batch, OTHER_LEASE, "second")

    assert landed_offsets(spark, lake) == Counter((0, offset) for offset in range(20_000))


async def test_a_write_that_overruns_its_limit_has_more_time_each_time_until_it_lands(
    tables: SparkLake, staging: FileStaging, lake: Path, spark_url: str
) -> None:
    """The server ends a call that is given up: with the same limit it would never get through."""
    batch = await stage_file(staging, {P: records(20_000, size=500)})
    limits: list[str] = []
    async with new_lake(lake, spark_url, write_timeout_s=0.1) as hasty:
        async with asyncio.timeout(OVERRUN_S):
            while True:
                try:
                    await hasty.append("orders", batch, LEASE, "stamp")
                except WriteUnclear as exc:
                    limits.append(str(exc))
                else:
                    break

    assert "0.1 s" in limits[0]
    assert "0.2 s" in limits[1]
    history = await tables.history("orders", 99)
    assert "stamp" in [c.metadata for c in history.commits]


async def test_a_call_that_was_given_up_leaves_the_next_one_alone(tables: SparkLake) -> None:
    giving_up = asyncio.create_task(tables.claim("orders", "w-1", "given up"))
    await asyncio.sleep(0)
    giving_up.cancel()
    await tables.claim("orders", "w-2", "claim")

    assert (await tables.history("orders", 1)).commits[0].metadata == "claim"


async def test_a_session_that_pyspark_has_closed_is_left(tables: SparkLake) -> None:
    """It closes one by itself when the server does not know it any more, and names it no fault."""
    await tables._session("orders").run(lambda spark: spark.client.close(), DEADLINE_S)
    with pytest.raises(WriteUnclear, match="NO_ACTIVE_SESSION"):
        await tables.claim("orders", "w-1", "claim")
    await tables.claim("orders", "w-1", "claim")


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
        await tables.append("orders", batch, LEASE, "stamp")

    assert result.value.files == {"bad.parquet"}
    assert await staging.readable("orders", batch.files) == {"good.parquet"}
    assert not landed_offsets(spark, lake)
    await tables.append("orders", Batch((batch.slices[0],)), LEASE, "stamp")
    assert landed_offsets(spark, lake) == ONCE


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
        await tables.append("orders", Batch(slices), LEASE, "stamp")


# --- servers -----------------------------------------------------------------------------------


async def test_a_server_that_does_not_exist_is_named_with_what_to_check(lake: Path) -> None:
    async with new_lake(lake, "sc://127.0.0.1:9/;token=secret") as tables:
        with pytest.raises(LakeUnavailable, match=r"sc://127\.0\.0\.1:9 .*lake\.spark") as result:
            await tables.open(TABLE)
        with pytest.raises(WriteUnclear):
            await tables.claim("orders", "w-1", "claim")

    assert "secret" not in str(result.value)


@pytest.mark.nightly
async def test_a_killed_and_a_frozen_server_lose_no_row(
    tmp_path: Path, lake: Path, staging: FileStaging
) -> None:
    async with (
        asyncio.timeout(3 * DEADLINE_S),
        run_spark(tmp_path / "own") as server,
        new_lake(lake, server.url, write_timeout_s=DEADLINE_S) as tables,
    ):
        await tables.open(TABLE)
        await tables.claim("orders", "w-1", "claim")
        batch = await stage_file(staging, {P: records(20_000, size=1_000)})
        write = asyncio.create_task(tables.append("orders", batch, LEASE, "big"))
        await wait_for_write(write, lake, 0)
        await server.kill()
        with pytest.raises(WriteUnclear):
            await write
        with pytest.raises(LakeUnavailable):
            await tables.history("orders", 1)

        await server.start()
        await staging.write_lease("orders", OTHER_LEASE)
        await staging.delete_other_leases("orders", OTHER_LEASE)
        await tables.claim("orders", "w-2", "claim")
        if "big" not in [c.metadata for c in (await tables.history("orders", 9)).commits]:
            await tables.append("orders", batch, OTHER_LEASE, "big")
        assert len((await tables.history("orders", 9)).commits) == 4
        assert await tables.highest_offsets("orders") == {P: 19_999}

        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        try:
            async with new_lake(lake, server.url, write_timeout_s=1.0) as hasty:
                with pytest.raises(WriteUnclear, match="no answer within 1 s"):
                    await hasty.claim("orders", "w-3", "claim")
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await tables.claim("orders", "w-4", "claim")
