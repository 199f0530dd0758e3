"""Staged files become files of their tables, and mean what an append of their rows means."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.column_tables import ITEMS, landed
from tests.integration.lake.tables import (
    LEASE,
    ONCE,
    OTHER_LEASE,
    ROWS,
    landed_offsets,
    new_lake,
    sql,
    stage_file,
)

from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.land.lake import delta
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import StagedUnreadable, WriteConflict
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import TABLE_LAYOUT
from binwright.protocol.ports.kafka import Record
from binwright.tables.columns import Columns, parse_columns
from binwright.tables.ports import Batch, FileSlice, Footer, Ranges
from binwright.testing.records import in_columns

pytestmark = pytest.mark.integration

P = TopicPartition("items", 0)
VALUES = (
    b'{"id":1,"one":{"a":2,"b":"x"},"list":[{"a":1},null],"map":{"k":{"a":1}},"price":"1.25"}',
    b'{"at":"9999-12-31T23:59:59.999999Z","day":"0001-01-01"}',
    b'{"id":-9223372036854775808,"one":null,"list":[],"map":{},"at":"1600-02-29T00:00:00Z"}',
    b"{}",
    b'{"one":{"a":null},"day":"9999-12-31","price":"-99999999.99"}',
)


WITH_BAD = (b'{"id":7}', b"no JSON")


def offsets(spark: SparkSession, lake: Path, table: str = "items") -> list[int]:
    return [row["_kafka"]["offset"] for row in landed(spark, lake, table)]


@pytest.fixture
async def items(tables: SparkLake, lake: Path) -> FileStaging:
    """Where files for the open table of items are staged."""
    await tables.open(ITEMS)
    staging = FileStaging(str(lake / "_staging"), in_place=True)
    await staging.write_lease("items", LEASE)
    await staging.keep("items", TABLE_LAYOUT, b"read")
    return staging


async def stage(
    staging: FileStaging,
    values: Sequence[bytes] = VALUES,
    *,
    name: str = "a.parquet",
    first: int = 0,
    columns: Columns | None = None,
    part: Ranges | None = None,
) -> Batch:
    """Stage these values as the product does; return the batch of them, or of a part of them."""
    records = [Record(first + n, 1_000 * n, b"k", each) for n, each in enumerate(values)]
    ranges = {0: (first, first + len(values))}
    decoder = JsonDecoder(columns or ITEMS.columns or ())
    footer = Footer("id", len(values), ranges, topic="items")
    size = await staging.write("items", name, in_columns({P: records}), footer, decoder)
    (there,) = (await staging.footers("items", [name])).values()
    return Batch(
        (FileSlice(name, part or ranges, whole=part is None, bytes=size, topic="items"),),
        rows=len(values),
        topic_ids={"items": "id"},
        columns=decoder.columns,
        bad=there.bad,
        as_table=frozenset({name} if there.as_table else ()),
        beside=frozenset({name} if there.as_table and there.bad else ()),
    )


async def test_raw_files_land_as_they_are(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    batch = await stage_file(staging, ROWS)
    assert await tables.add_files("orders", batch, LEASE, "stamp") is None
    assert landed_offsets(spark, lake) == ONCE
    assert (await tables.history("orders", 1)).commits[0].metadata == "stamp"


async def test_rows_are_those_that_an_append_lands(
    tables: SparkLake, items: FileStaging, lake: Path, spark: SparkSession
) -> None:
    assert await tables.add_files("items", await stage(items), LEASE, "1") is None
    await tables.append("items", await stage(items, name="b.parquet", first=10), LEASE, "2")
    rows = landed(spark, lake)
    in_place, appended = rows[: len(VALUES)], rows[len(VALUES) :]
    for row in appended:
        row["_kafka"]["offset"] -= 10
    assert in_place == appended
    assert in_place[0]["id"] == 1


async def test_rows_of_two_days_land_in_place_and_mean_what_an_append_of_them_means(
    tables: SparkLake, items: FileStaging, lake: Path, spark: SparkSession
) -> None:
    """†: one file and its one range, in one commit."""
    await items.write_lease("dated", LEASE)
    await items.keep("dated", TABLE_LAYOUT, b"read")
    await tables.open(replace(ITEMS, topic="dated", by_date=True))
    ranges, p = {0: (0, 4)}, TopicPartition("dated", 0)
    times = (86_399_999, 86_400_000, 3, 86_400_001)
    rows = {p: [Record(n, at, b"k", b'{"id":%d}' % n) for n, at in enumerate(times)]}
    decoder, footer = JsonDecoder(ITEMS.columns or ()), Footer("id", 4, ranges, topic="dated")
    for name, by_day in (("a.parquet", True), ("b.parquet", False)):
        size = await items.write("dated", name, in_columns(rows), footer, decoder, by_day=by_day)
        part = FileSlice(name, ranges, whole=True, bytes=size, topic="dated")
        batch = Batch(
            (part,),
            rows=4,
            topic_ids={"dated": "id"},
            columns=decoder.columns,
            as_table=frozenset({name}),
        )
        landed_as_it_is = await tables.add_files("dated", batch, LEASE, name) is None
        assert landed_as_it_is == by_day
        if not by_day:
            await tables.append("dated", batch, LEASE, name)
    both = sorted((row["id"], row["_kafka_date"].day) for row in landed(spark, lake, "dated"))
    assert both == [(n, day) for n, day in enumerate((1, 2, 1, 2)) for _ in range(2)]
    stamps = [commit.metadata for commit in (await tables.history("dated", 2)).commits]
    assert stamps == ["b.parquet", "a.parquet"]


async def test_a_part_of_a_file_is_appended(
    tables: SparkLake, items: FileStaging, lake: Path, spark: SparkSession
) -> None:
    batch = await stage(items, part={0: (1, 3)})
    await tables.append("items", batch, LEASE, "stamp")
    assert [row["_kafka"]["offset"] for row in landed(spark, lake)] == [1, 2]


async def test_files_of_both_layouts_are_appended_together(
    tables: SparkLake, items: FileStaging, lake: Path, spark: SparkSession
) -> None:
    earlier = FileStaging(str(lake / "_staging"))
    good = await stage(items)
    bad = await stage(items, WITH_BAD, name="b.parquet", first=5)
    other = await stage(earlier, WITH_BAD, name="c.parquet", first=7)
    every = replace(
        good,
        slices=(*good.slices, *bad.slices, *other.slices),
        as_table=good.as_table | bad.as_table,
        beside=bad.beside,
        rows=9,
        bad=2,
    )
    await tables.append_bad("items", every, LEASE, "bad")
    await tables.append("items", every, LEASE, "rows")
    assert offsets(spark, lake) == [0, 1, 2, 3, 4, 5, 7]
    assert landed(spark, lake)[6]["id"] == 7
    assert offsets(spark, lake, "items__bad") == [6, 8]


async def test_bad_records_beside_a_file_are_in_their_table_alone(
    tables: SparkLake, items: FileStaging, lake: Path, spark: SparkSession
) -> None:
    batch = await stage(items, WITH_BAD)
    await tables.append_bad("items", batch, LEASE, "bad")
    assert await tables.add_files("items", batch, LEASE, "rows") is None
    assert (offsets(spark, lake), offsets(spark, lake, "items__bad")) == ([0], [1])
    assert landed(spark, lake, "items__bad")[0]["value"] == WITH_BAD[1]


async def test_a_part_of_what_is_beside_a_file_is_appended(
    tables: SparkLake, items: FileStaging, lake: Path, spark: SparkSession
) -> None:
    batch = await stage(items, WITH_BAD * 2, part={0: (2, 4)})
    await tables.append_bad("items", batch, LEASE, "bad")
    await tables.append("items", batch, LEASE, "rows")
    assert (offsets(spark, lake), offsets(spark, lake, "items__bad")) == ([2], [3])


async def test_what_is_beside_a_file_is_missed_when_it_is_gone(
    tables: SparkLake, items: FileStaging, lake: Path
) -> None:
    batch = await stage(items, WITH_BAD)
    (lake / "_staging" / "items" / "a.bad.parquet").unlink()
    with pytest.raises(StagedUnreadable):
        await tables.append_bad("items", batch, LEASE, "bad")
    assert not await items.readable("items", batch.files)


async def test_a_file_lacks_columns_that_the_table_got_since(
    tables: SparkLake, items: FileStaging, lake: Path, spark: SparkSession
) -> None:
    batch = await stage(items, columns=parse_columns("id BIGINT"))
    await tables.add_columns("items", parse_columns("more STRING"))
    assert await tables.add_files("items", batch, LEASE, "stamp") is None
    rows = landed(spark, lake)
    assert [row["id"] for row in rows] == [1, None, -(2**63), None, None]
    assert {row["more"] for row in rows} == {None}


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ALTER TABLE {} ADD CONSTRAINT few CHECK (id < 9)", "constraint"),
        ("ALTER TABLE {} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "mapping"),
    ],
)
async def test_a_table_with_rules_takes_its_rows_by_append(  # noqa: PLR0917 - fixtures
    tables: SparkLake,
    items: FileStaging,
    lake: Path,
    spark: SparkSession,
    statement: str,
    reason: str,
) -> None:
    sql(spark, statement.format(f"delta.`{lake}/items`"))
    batch = await stage(items, [b'{"id":1}'])
    why = await tables.add_files("items", batch, LEASE, "stamp")
    assert why is not None
    assert why.of_table, reason
    assert not landed(spark, lake)
    await tables.append("items", batch, LEASE, "stamp")
    assert [row["id"] for row in landed(spark, lake)] == [1]


@pytest.mark.parametrize("catalog", ["nowhere", "broken"])
async def test_a_server_without_the_extension_appends(
    tables: SparkLake, items: FileStaging, monkeypatch: pytest.MonkeyPatch, catalog: str
) -> None:
    """Neither has it: a server whose settings do not name it, and one that has not its jar."""
    monkeypatch.setattr(delta, "CATALOG", catalog)
    session = tables._session("items")
    await session.run(
        lambda spark: spark.conf.set("spark.sql.catalog.broken", "binwright.spark.NotThere"), 60.0
    )
    why = await tables.add_files("items", await stage(items), LEASE, "stamp")
    assert why is not None
    assert why.of_table
    assert "extension" in why.reason


async def test_nothing_lands_under_a_lease_that_is_gone(
    tables: SparkLake, items: FileStaging, lake: Path, spark: SparkSession
) -> None:
    batch = await stage(items)
    await items.write_lease("items", OTHER_LEASE)
    await items.delete_other_leases("items", OTHER_LEASE)
    with pytest.raises(StagedUnreadable) as result:
        await tables.add_files("items", batch, LEASE, "stamp")
    assert result.value.files == {LEASE}
    assert not landed(spark, lake)


@pytest.mark.parametrize("damage", ["gone", "torn"])
async def test_a_file_that_cannot_be_read_is_named(
    tables: SparkLake, items: FileStaging, lake: Path, spark: SparkSession, damage: str
) -> None:
    batch = await stage(items)
    path = lake / "_staging" / "items" / "a.parquet"
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(StagedUnreadable) as result:
        await tables.add_files("items", batch, LEASE, "stamp")
    assert result.value.files == {"a.parquet"}
    assert not landed(spark, lake)


async def test_nothing_lands_behind_a_claim(
    tables: SparkLake, items: FileStaging, lake: Path, spark_url: str
) -> None:
    """Commits in place run beside claims of others: none is later than the claim that fences it."""
    async with new_lake(lake, spark_url) as other:
        await other.open(ITEMS)
        for number in range(8):
            writes = asyncio.create_task(_land_until_fenced(tables, items, number))
            await asyncio.sleep(0.05 * number)  # another moment each time; none is waited for
            await items.delete_other_leases("items", "none of them")
            await other.claim("items", f"w-{number}", f"claim-{number}")
            await writes
            await items.write_lease("items", LEASE)
    stamps = [c.metadata or "" for c in (await tables.history("items", 1_000)).commits[::-1]]
    claimed = -1
    for stamp in stamps:
        if stamp.startswith("claim-"):
            claimed = int(stamp.removeprefix("claim-"))
        elif stamp.startswith("write-"):
            assert int(stamp.split("-")[1]) > claimed, stamps
    assert claimed == 7


async def _land_until_fenced(tables: SparkLake, staging: FileStaging, number: int) -> None:
    for count in range(200):
        name = f"{number}-{count}.parquet"
        batch = await stage(staging, [b'{"id":1}'], name=name, first=1_000 * number + count)
        try:
            assert await tables.add_files("items", batch, LEASE, f"write-{number}-{count}") is None
        except (StagedUnreadable, WriteConflict):
            return
    pytest.fail("it was never fenced")
