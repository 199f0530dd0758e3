"""The lake against a real Spark Connect server with Delta."""

import asyncio
import os
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.table import DeltaLake
from binwright.core.errors import LakeUnavailable, UserError, WriteConflict, WriteUnclear
from binwright.core.model import TopicPartition
from binwright.core.ports import Commit, Lake, Record
from binwright.embedded.spark import run_spark
from binwright.shell.settings import LakeSettings

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)


def records(count: int, first: int = 0, size: int = 10) -> list[Record]:
    return [Record(first + i, 1_700_000_000_000, None, os.urandom(size)) for i in range(count)]


ROWS: Mapping[TopicPartition, Sequence[Record]] = {P: records(3), Q: records(2, first=7)}


@pytest.fixture
async def tables(lake: Path, spark_url: str) -> AsyncIterator[DeltaLake]:
    """The lake under test; its table of `orders` is open."""
    async with asyncio.timeout(DEADLINE_S), opened(lake, spark_url) as tables:
        await tables.open("orders")
        yield tables


def opened(lake: Path, url: str, *, write_timeout_s: float = 60.0) -> DeltaLake:
    return DeltaLake(LakeSettings(path=str(lake), spark=url), write_timeout_s)


@pytest.fixture(scope="module")
def spark(spark_url: str) -> Iterator[SparkSession]:
    """Somebody else who looks at the tables."""
    session = SparkSession(DefaultChannelBuilder(spark_url))
    yield session
    session.client.release_session()
    session.client.close()


def landed(spark: SparkSession, lake: Path) -> Counter[tuple[int, int]]:
    rows = spark.read.format("delta").load(f"{lake}/orders").select("partition", "offset")
    return Counter((partition, offset) for partition, offset in rows.collect())


def files(lake: Path) -> int:
    return len(list((lake / "orders").glob("*.parquet")))


async def begun(write: asyncio.Task[int | None], lake: Path, before: int) -> None:
    """Wait until it writes its file: by then it has taken its snapshot."""
    while True:
        if files(lake) > before or write.done():
            return
        await asyncio.sleep(0.01)


ONCE = Counter([(0, 0), (0, 1), (0, 2), (1, 7), (1, 8)])


async def test_a_record_lands_as_it_was(tables: DeltaLake, lake: Path, spark: SparkSession) -> None:
    headers = (("a", b"1"), ("a", None))
    rows = {
        Q: [Record(7, 1_700_000_000_123, b"k", b"\xff\x00", 1, headers), Record(9, -1, None, None)]
    }
    fits: Lake = tables

    assert await fits.append("orders", rows, "a/0", 1, "stamp") == 1
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


async def test_a_commit_is_one_file(tables: DeltaLake, lake: Path) -> None:
    await tables.append("orders", {P: records(5_000), Q: records(5_000)}, "a/0", 1, "stamp")

    assert files(lake) == 1


@pytest.mark.parametrize("number", [4, 5])
async def test_the_same_or_a_lower_number_is_skipped(
    tables: DeltaLake, lake: Path, spark: SparkSession, number: int
) -> None:
    assert await tables.append("orders", ROWS, "a/0", 5, "stamp") == 1

    assert await tables.append("orders", ROWS, "a/0", number, "stamp") is None
    assert await tables.claim("orders", "a/0", number) is None
    assert landed(spark, lake) == ONCE


async def test_a_claim_shuts_out_what_is_lower_and_nobody_else(
    tables: DeltaLake, lake: Path, spark: SparkSession
) -> None:
    assert await tables.claim("orders", "a/0", 9) == 1

    assert await tables.append("orders", ROWS, "a/0", 8, "stamp") is None
    assert await tables.append("orders", ROWS, "a/1", 1, "stamp") == 2
    assert landed(spark, lake) == ONCE


async def test_two_tables_at_the_same_version_are_told_apart(tables: DeltaLake) -> None:
    """Spark tells the last version of the session, whichever table that was."""
    await tables.open("clicks")
    assert await tables.claim("orders", "a/0", 1) == 1
    assert await tables.claim("clicks", "a/0", 1) == 1

    assert await tables.claim("orders", "a/0", 1) is None
    assert await tables.claim("clicks", "a/0", 1) is None
    assert await tables.claim("orders", "a/0", 2) == 2
    assert await tables.claim("clicks", "a/0", 1) is None


async def test_a_write_overtaken_by_a_fence_collides_and_lands_nothing(
    tables: DeltaLake, lake: Path, spark_url: str, spark: SparkSession
) -> None:
    async with opened(lake, spark_url) as heir:
        await heir.claim("orders", "b/0", 1)  # its session is warm
        for number in range(10, 100, 10):
            before = files(lake)
            batch = {P: records(30_000, first=number * 100_000, size=1_000)}
            write = asyncio.create_task(tables.append("orders", batch, "a/0", number, "slow"))
            await begun(write, lake, before)
            await heir.claim("orders", "a/0", number + 1)
            try:
                assert await write is not None  # it was quicker than the fence
            except WriteConflict:
                assert not any(offset >= number * 100_000 for _, offset in landed(spark, lake))
                return
    pytest.fail("no fence was ever quick enough")


async def test_an_unclear_write_sent_again_lands_once(
    tables: DeltaLake, lake: Path, spark_url: str, spark: SparkSession
) -> None:
    batch = {P: records(20_000, size=500)}
    async with opened(lake, spark_url, write_timeout_s=0.2) as hasty:
        with pytest.raises(WriteUnclear, match=r"no answer within 0\.2 s"):
            await hasty.append("orders", batch, "a/0", 1, "stamp")
    while True:
        try:
            version = await tables.append("orders", batch, "a/0", 1, "stamp")
        except WriteConflict:
            continue  # the first one goes on
        break

    history = await tables.history("orders", 0)
    assert [c.metadata for c in history.commits] == ["stamp"]
    assert version in {None, history.commits[0].version}
    assert landed(spark, lake) == Counter((0, offset) for offset in range(20_000))


async def test_a_call_that_was_given_up_leaves_the_next_one_alone(tables: DeltaLake) -> None:
    giving_up = asyncio.create_task(tables.claim("orders", "a/0", 1))
    await asyncio.sleep(0)
    giving_up.cancel()

    assert await tables.claim("orders", "a/1", 1) in {1, 2}


async def test_a_session_that_pyspark_has_closed_is_left(tables: DeltaLake) -> None:
    """It closes one by itself when the server does not know it any more, and names it no fault."""
    await tables._sessions.run(lambda spark: spark.client.close(), DEADLINE_S)
    with pytest.raises(WriteUnclear, match="NO_ACTIVE_SESSION"):
        await tables.append("orders", ROWS, "a/0", 1, "stamp")
    assert await tables.append("orders", ROWS, "a/0", 1, "stamp") == 1


async def test_many_open_a_table_at_once_and_find_the_same(lake: Path, spark_url: str) -> None:
    each = [opened(lake, spark_url) for _ in range(5)]
    ids = await asyncio.gather(*(tables.open("orders") for tables in each))
    for tables in each:
        await tables.__aexit__()

    assert len(set(ids)) == 1


async def test_a_table_made_anew_has_another_id(tables: DeltaLake, lake: Path) -> None:
    before = await tables.open("orders")
    shutil.rmtree(lake / "orders")

    assert await tables.open("orders") != before


async def test_statistics_are_kept_of_the_first_four_columns(
    tables: DeltaLake, lake: Path, spark: SparkSession
) -> None:
    await tables.open("orders")
    told = spark.sql(f"DESCRIBE DETAIL delta.`{lake}/orders`").collect()[0]

    assert told.properties["delta.dataSkippingNumIndexedCols"] == "4"
    assert "orders" in told.description


async def test_history_tells_the_stamps_newest_first(tables: DeltaLake) -> None:
    await tables.claim("orders", "a/0", 1)
    await tables.append("orders", ROWS, "a/0", 2, '{"x": "y\'z"}')
    everything = await tables.history("orders", -1)
    late = await tables.history("orders", 1)
    none = await tables.history("orders", 2)

    assert everything.complete
    assert [c.version for c in everything.commits] == [2, 1, 0]
    assert late.complete
    assert list(late.commits) == [Commit(2, '{"x": "y\'z"}')]
    assert none.complete
    assert not none.commits


async def test_history_reaches_back_behind_its_first_look(tables: DeltaLake, lake: Path) -> None:
    grow(lake / "orders", 150)
    history = await tables.history("orders", 5)

    assert history.complete
    assert [c.version for c in history.commits] == list(range(150, 5, -1))


async def test_history_says_when_its_beginning_was_cleaned_up(
    tables: DeltaLake, lake: Path, spark: SparkSession
) -> None:
    """Log retention takes the files before a checkpoint; here we are retention."""
    for number in range(1, 4):
        await tables.claim("orders", "a/0", number)
    properties = "SET TBLPROPERTIES ('delta.checkpointInterval' = '1')"
    spark.sql(f"ALTER TABLE delta.`{lake}/orders` {properties}").collect()
    await tables.claim("orders", "a/0", 9)
    for version in range(3):
        (lake / "orders" / "_delta_log" / f"{version:020}.json").unlink()

    assert not (await tables.history("orders", -1)).complete
    assert (await tables.history("orders", 3)).complete


def grow(table: Path, until: int) -> None:
    """Write commits of nothing by hand: quicker than by Spark."""
    for version in range(1, until + 1):
        note = f'{{"commitInfo":{{"timestamp":{1_700_000_000_000 + version},"operation":"WRITE"}}}}'
        (table / "_delta_log" / f"{version:020}.json").write_text(note + "\n")


async def test_newest_tells_the_highest_offset_of_those_that_have_rows(tables: DeltaLake) -> None:
    await tables.append("orders", ROWS, "a/0", 1, "stamp")
    await tables.append("orders", {P: records(5, first=50)}, "a/0", 2, "stamp")

    assert await tables.newest("orders", [P, Q, TopicPartition("orders", 9)]) == {P: 54, Q: 8}
    assert await tables.newest("orders", []) == {}


async def test_a_path_that_cannot_be_written_is_the_persons_to_mend(spark_url: str) -> None:
    async with opened(Path("/proc/lake"), spark_url) as tables:
        with pytest.raises(UserError, match=r"/proc/lake/orders.*lake\.path must be"):
            await tables.open("orders")


async def test_an_unknown_store_is_the_persons_to_mend(spark_url: str) -> None:
    settings = LakeSettings(path="nostore://bucket/x", spark=spark_url)
    async with DeltaLake(settings, 60.0) as tables:
        with pytest.raises(UserError, match="nostore://bucket/x/orders"):
            await tables.open("orders")


async def test_a_directory_with_other_things_in_it_is_not_taken(lake: Path, spark_url: str) -> None:
    (lake / "orders").mkdir()
    (lake / "orders" / "thesis.txt").write_text("the only copy")
    async with opened(lake, spark_url) as tables:
        with pytest.raises(UserError, match="orders is not a table of ours"):
            await tables.open("orders")


async def test_a_table_with_other_columns_is_not_taken(
    lake: Path, spark_url: str, spark: SparkSession
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{lake}/orders` (topic string, offset int) USING delta"
    ).collect()
    async with opened(lake, spark_url) as tables:
        with pytest.raises(UserError, match=r"offset bigint \(there: int\)"):
            await tables.open("orders")


async def test_a_table_may_have_more_columns_than_ours(
    tables: DeltaLake, lake: Path, spark: SparkSession
) -> None:
    spark.sql(f"ALTER TABLE delta.`{lake}/orders` ADD COLUMN note string").collect()
    await tables.open("orders")

    assert await tables.append("orders", ROWS, "a/0", 1, "stamp") == 2
    assert landed(spark, lake) == ONCE


async def test_a_table_that_was_taken_away_is_not_made_anew_by_a_write(
    tables: DeltaLake, lake: Path
) -> None:
    """It would have no columns with statistics, and hints would point into another table."""
    shutil.rmtree(lake / "orders")
    with pytest.raises(UserError, match="orders is not a table of ours"):
        await tables.append("orders", ROWS, "a/0", 1, "stamp")

    assert not (lake / "orders").exists()


async def test_a_server_that_is_not_there_is_named_with_what_to_check(lake: Path) -> None:
    async with opened(lake, "sc://127.0.0.1:9/;token=secret") as tables:
        with pytest.raises(LakeUnavailable, match=r"sc://127\.0\.0\.1:9 .*lake\.spark") as told:
            await tables.open("orders")
        with pytest.raises(WriteUnclear):
            await tables.claim("orders", "a/0", 1)

    assert "secret" not in str(told.value)


async def test_a_killed_and_a_frozen_server_cost_nothing_but_time(
    tmp_path: Path, lake: Path
) -> None:
    async with (
        asyncio.timeout(3 * DEADLINE_S),
        run_spark(tmp_path / "own") as server,
        opened(lake, server.url, write_timeout_s=DEADLINE_S) as tables,
    ):
        await tables.open("orders")
        await tables.claim("orders", "a/0", 1)
        batch = {P: records(4_000, size=1_000)}
        write = asyncio.create_task(tables.append("orders", batch, "a/0", 2, "big"))
        await begun(write, lake, 0)
        await server.kill()
        with pytest.raises(WriteUnclear):
            await write
        with pytest.raises(LakeUnavailable):
            await tables.history("orders", -1)

        await server.start()
        await tables.append("orders", batch, "a/0", 2, "big")  # whether or not it had landed
        assert [c.metadata for c in (await tables.history("orders", 1)).commits] == ["big"]
        assert await tables.newest("orders", [P]) == {P: 3_999}

        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        try:
            async with opened(lake, server.url, write_timeout_s=1.0) as hasty:
                with pytest.raises(WriteUnclear, match="no answer within 1 s"):
                    await hasty.claim("orders", "a/0", 3)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert await tables.claim("orders", "a/1", 1) is not None
