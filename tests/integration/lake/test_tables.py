"""Whose a table is, what it takes, and its maintenance: against a real Spark with Delta."""

import asyncio
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.tables import (
    CLICKS,
    LEASE,
    ONCE,
    ROWS,
    TABLE,
    P,
    Q,
    files,
    landed_offsets,
    new_lake,
    records,
    sql,
    stage_file,
)

from binwright.consumer.land.lake.creation import checkpoint_interval
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import TableRefused
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.consumer import LakeSettings
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Compaction, Table

pytestmark = pytest.mark.integration


# --- tables that refuse ------------------------------------------------------------------------


async def test_a_table_names_the_first_topic_that_it_took(lake: Path, spark_url: str) -> None:
    """Of that topic are the stamps that name none; the name may read like a secret."""
    one = replace(TABLE, topic="password-resets", named="shared")
    own = replace(TABLE, topic="plain")
    async with new_lake(lake, spark_url) as first, new_lake(lake, spark_url) as second:
        for tables in (first, second):
            assert await tables.open(one) == "password-resets"
            assert await tables.open(own) == "plain"
        for other in ("orders", "shared"):
            assert await second.open(replace(one, topic=other)) == "password-resets"
        assert await second.open(replace(TABLE, topic="orders", named="plain")) == "plain"


async def test_the_name_of_a_group_may_read_like_a_secret(lake: Path, spark_url: str) -> None:
    """Spark hides such values where it shows a table's properties."""
    named = replace(TABLE, topic="tokens", group="password-resets")
    async with new_lake(lake, spark_url) as first, new_lake(lake, spark_url) as second:
        await first.open(named)
        await second.open(named)
        with pytest.raises(TableRefused, match="belongs to group password-resets"):
            await second.open(replace(named, group="secret-gardens"))


async def test_rows_that_break_a_constraint_are_refused_while_another_table_takes_its_own(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    await tables.open(CLICKS)
    sql(spark, f"ALTER TABLE delta.`{lake}/orders` ADD CONSTRAINT small CHECK (offset < 8)")
    refused = await stage_file(staging, ROWS)
    clicks = {TopicPartition("clicks", 0): records(2)}
    taken = await stage_file(staging, clicks)
    outcome, taken_outcome = await asyncio.gather(
        tables.append("orders", refused, LEASE, "stamp"),
        tables.append("clicks", taken, LEASE, "stamp"),
        return_exceptions=True,
    )

    assert isinstance(outcome, TableRefused)
    assert "CHECK constraint small" in str(outcome)
    assert "offset = 8" in str(outcome), "the values of one row that it refuses"
    assert taken_outcome is None
    assert not landed_offsets(spark, lake)
    assert landed_offsets(spark, lake, "clicks") == Counter([(0, 0), (0, 1)])


async def test_a_renamed_column_is_refused_and_named(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    table = f"ALTER TABLE delta.`{lake}/orders`"
    sql(spark, f"{table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    sql(spark, f"{table} RENAME COLUMN value TO payload")
    with pytest.raises(TableRefused, match="orders does not take these rows"):
        await tables.append("orders", await stage_file(staging, ROWS), LEASE, "stamp")
    with pytest.raises(TableRefused, match=r"no longer has value: renamed, .* it has payload"):
        await tables.check("orders", ())


async def test_a_deleted_table_is_not_recreated_by_a_write(
    tables: SparkLake, staging: FileStaging, lake: Path
) -> None:
    shutil.rmtree(lake / "orders")
    with pytest.raises(TableRefused):
        await tables.append("orders", await stage_file(staging, ROWS), LEASE, "stamp")
    with pytest.raises(TableRefused, match="orders is not a table of ours"):
        await tables.history("orders", 1)

    assert not (lake / "orders").exists()


async def test_a_path_that_cannot_be_written_is_refused_with_what_to_do(spark_url: str) -> None:
    async with new_lake(Path("/proc/lake"), spark_url) as tables:
        with pytest.raises(TableRefused, match=r"/proc/lake/orders.*lake\.path must be"):
            await tables.open(TABLE)


async def test_an_unknown_store_is_refused_with_what_to_do(spark_url: str) -> None:
    settings = LakeSettings(path="nostore://bucket/x", spark=spark_url)
    async with SparkLake(settings, "nostore://bucket/x/_staging", 60.0) as tables:
        with pytest.raises(TableRefused, match="nostore://bucket/x/orders"):
            await tables.open(TABLE)


async def test_a_directory_with_other_things_in_it_is_not_taken(lake: Path, spark_url: str) -> None:
    (lake / "orders").mkdir()
    (lake / "orders" / "thesis.txt").write_text("the only copy")
    async with new_lake(lake, spark_url) as tables:
        with pytest.raises(TableRefused, match="orders is not a table of ours"):
            await tables.open(TABLE)


@pytest.mark.parametrize("by_date", [False, True])
async def test_a_creation_that_was_cut_off_is_completed(
    lake: Path, spark_url: str, *, by_date: bool
) -> None:
    """Spark was killed, or its client ended, between the log's directory and the first commit."""
    columns = parse_columns("id bigint") if by_date else None
    table = replace(TABLE, topic="cut-off", columns=columns, by_date=by_date)
    (lake / "cut-off" / "_delta_log" / "_staged_commits").mkdir(parents=True)
    async with new_lake(lake, spark_url) as first, new_lake(lake, spark_url) as second:
        await asyncio.gather(first.open(table), second.open(table))
        with pytest.raises(TableRefused, match=f"belongs to group {TABLE.group}"):
            await second.open(replace(table, group="another"))
    metadata = DeltaTable(lake / "cut-off").metadata()
    assert metadata.partition_columns == (["_kafka_date"] if by_date else [])
    assert metadata.configuration["delta.checkpointInterval"]


async def test_a_table_with_other_columns_is_not_taken(
    lake: Path, spark_url: str, spark: SparkSession
) -> None:
    sql(spark, f"CREATE TABLE delta.`{lake}/orders` (topic string, offset int) USING delta")
    async with new_lake(lake, spark_url) as tables:
        with pytest.raises(TableRefused, match=r"offset bigint \(there: int\)"):
            await tables.open(TABLE)


async def test_a_table_may_have_more_columns_than_ours(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    sql(spark, f"ALTER TABLE delta.`{lake}/orders` ADD COLUMN note string")
    await tables.open(TABLE)

    await tables.append("orders", await stage_file(staging, ROWS), LEASE, "stamp")
    assert landed_offsets(spark, lake) == ONCE


# --- whose table it is -------------------------------------------------------------------------


async def test_another_group_or_cluster_is_refused_with_both_names(tables: SparkLake) -> None:
    with pytest.raises(TableRefused, match=r"group g of .* cluster-a; this is group h of cluster"):
        await tables.open(Table("orders", "h", "cluster-a"))
    with pytest.raises(TableRefused, match=r"cluster cluster-a; this is group g of .* cluster-b"):
        await tables.open(Table("orders", "g", "cluster-b"))
    await tables.open(TABLE)


async def test_a_table_without_an_owner_is_taken(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    names = "('binwright.group', 'binwright.cluster')"
    sql(spark, f"ALTER TABLE delta.`{lake}/orders` UNSET TBLPROPERTIES {names}")
    await tables.open(TABLE)
    result = spark.sql(f"DESCRIBE DETAIL delta.`{lake}/orders`").collect()[0]

    assert result.properties["binwright.group"] == "g"
    assert result.properties["binwright.cluster"] == "cluster-a"
    columns = "partition,offset,timestamp"
    assert result.properties["delta.dataSkippingStatsColumns"] == columns
    assert result.properties["delta.checkpointInterval"] == str(checkpoint_interval("orders"))
    assert "orders" in result.description


async def test_many_open_a_table_at_once(lake: Path, spark_url: str) -> None:
    each = [new_lake(lake, spark_url) for _ in range(4)]
    outcomes = await asyncio.gather(*(tables.open(TABLE) for tables in each))
    for tables in each:
        await tables.__aexit__()

    assert outcomes == ["orders"] * 4


# --- what is in a table ------------------------------------------------------------------------


async def test_history_returns_stamps_newest_first(tables: SparkLake, staging: FileStaging) -> None:
    await staging.prepare()
    await tables.claim("orders", "w-1", "claim")
    await tables.commit_stamp("orders", LEASE, 1, '{"x": "y\'z"}')
    everything, some = await tables.history("orders", 3), await tables.history("orders", 2)

    assert everything.complete
    assert [(c.version, c.metadata) for c in everything.commits] == [
        (2, '{"x": "y\'z"}'),
        (1, "claim"),
        (0, None),
    ]
    assert not some.complete
    assert list(some.commits) == list(everything.commits[:2])


async def test_history_is_complete_where_older_versions_were_cleaned_up(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    """Log retention takes the files before a checkpoint; here we are retention."""
    for number in range(1, 4):
        await tables.claim("orders", f"w-{number}", "claim")
    properties = "SET TBLPROPERTIES ('delta.checkpointInterval' = '1')"
    sql(spark, f"ALTER TABLE delta.`{lake}/orders` {properties}")
    await tables.claim("orders", "w-9", "claim")
    for version in range(3):
        (lake / "orders" / "_delta_log" / f"{version:020}.json").unlink()
    history = await tables.history("orders", 100)

    assert history.complete
    assert [c.version for c in history.commits] == [5, 4, 3]


async def test_highest_offsets_are_those_of_each_partition(
    tables: SparkLake, staging: FileStaging
) -> None:
    assert await tables.highest_offsets("orders") == {}
    await tables.append("orders", await stage_file(staging, ROWS), LEASE, "stamp")
    later = await stage_file(staging, {P: records(5, first=50)}, "b.parquet")
    await tables.append("orders", later, LEASE, "stamp")

    assert await tables.highest_offsets("orders") == {P: 54, Q: 8}


# --- housekeeping ------------------------------------------------------------------------------


async def test_a_compaction_during_appends_leaves_each_row_once(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    async def append(number: int) -> None:
        rows = {P: records(100, first=100 * number)}
        batch = await stage_file(staging, rows, f"{number}.parquet")
        await tables.append("orders", batch, LEASE, f"{number}")

    for number in range(5):
        await append(number)
    compacting = asyncio.create_task(tables.compact("orders"))
    number = 5
    while not compacting.done():
        await append(number)
        number += 1
    done = await compacting

    assert done.removed >= 5
    assert done.added == 1
    (left,) = await tables.small_files("orders") or ()
    assert len(left.sizes) == number + 1 - done.removed
    assert landed_offsets(spark, lake) == Counter((0, offset) for offset in range(100 * number))
    again = await tables.compact("orders")
    assert (again.removed, again.added) in {(0, 0), (number + 1 - done.removed, 1)}


async def test_large_files_are_not_compacted(
    lake: Path, spark_url: str, staging: FileStaging
) -> None:
    async with new_lake(lake, spark_url, compact_below_bytes=1_000) as tables:
        await tables.open(TABLE)
        for number in range(2):
            rows = {P: records(100, first=100 * number)}
            batch = await stage_file(staging, rows, f"{number}.parquet")
            await tables.append("orders", batch, LEASE, "stamp")

        assert await tables.compact("orders") == Compaction(0, 0)


async def test_a_vacuum_deletes_what_was_compacted_and_keeps_every_row(
    lake: Path, spark_url: str, spark: SparkSession, staging: FileStaging
) -> None:
    async with new_lake(lake, spark_url, vacuum_retention_s=0.001) as tables:
        await tables.open(TABLE)
        for number in range(3):
            rows = {P: records(10, first=10 * number)}
            batch = await stage_file(staging, rows, f"{number}.parquet")
            await tables.append("orders", batch, LEASE, "stamp")
        await tables.compact("orders")
        assert files(lake) == 4
        await tables.vacuum("orders")

    assert files(lake) == 1
    assert landed_offsets(spark, lake) == Counter((0, offset) for offset in range(30))
