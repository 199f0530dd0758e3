"""Tables of columns, against a real Spark Connect server with Delta."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import deltalake
import duckdb
import orjson
import polars as pl
import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.column_tables import (
    COLUMNS,
    EPOCH,
    ITEMS,
    Decoded,
    landed,
    offsets,
    schema_text,
    stage_decoded,
)
from tests.integration.lake.tables import LEASE, new_lake, sql

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import TableRefused, WriteConflict
from binwright.protocol.model import TopicPartition
from binwright.tables.columns import parse_columns
from binwright.tables.ports import FileSlice

pytestmark = pytest.mark.integration

PLACE = (
    "struct<topic:string,partition:int,offset:bigint,timestamp:timestamp,timestamp_type:int,"
    "key:binary,headers:array<struct<key:string,value:binary>>>"
)
MORE = parse_columns(
    "id BIGINT, one STRUCT<c: STRUCT<d: INT>, a: INT>, list ARRAY<STRUCT<b: STRING>>, "
    "map MAP<STRING, STRUCT<b: ARRAY<INT>>>, `x-y` BOOLEAN"
)
VALUE = {
    "id": 2**60,
    "one": {"a": 1, "b": "x"},
    "list": [{"a": 1}, None, {"a": None}],
    "map": [("k", {"a": 1}), ("n", None)],
    "price": Decimal("12.30"),
    "at": datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC),
    "day": date(2026, 1, 2),
}
NOTHING = dict.fromkeys(VALUE)


@pytest.fixture
async def tables(lake: Path, spark_url: str, staging: FileStaging) -> AsyncIterator[SparkLake]:
    """The lake under test; its table of `items` is open."""
    await staging.write_lease("items", LEASE)
    async with new_lake(lake, spark_url, vacuum_retention_s=0.001) as tables:
        await tables.open(ITEMS)
        yield tables


def values(spark: SparkSession, lake: Path) -> list[dict[str, object]]:
    return [{k: v for k, v in row.items() if k != "_kafka"} for row in landed(spark, lake)]


# --- what lands --------------------------------------------------------------------------------


async def test_values_land_as_columns_behind_the_place_in_kafka(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    rows = [Decoded(7, VALUE), Decoded(8, {}), Decoded(9, {"one": {}}, timeless=True)]
    await tables.append("items", stage_decoded(lake, rows), LEASE, "stamp")

    assert schema_text(spark, lake) == (
        f"struct<_kafka:{PLACE},id:bigint,one:struct<a:int,b:string>,list:array<struct<a:int>>,"
        "map:map<string,struct<a:int>>,price:decimal(10,2),at:timestamp,day:date>"
    )
    assert values(spark, lake) == [VALUE, NOTHING, {**NOTHING, "one": {"a": None, "b": None}}]
    place = landed(spark, lake)[0]["_kafka"]
    assert place["timestamp"] == EPOCH.replace(second=7)
    assert landed(spark, lake)[2]["_kafka"]["timestamp"] is None
    assert (place["topic"], place["key"]) == ("items", b"k")
    assert place["headers"] == [{"key": "h", "value": b"1"}]
    assert (await tables.history("items", 1)).commits[0].metadata == "stamp"


async def test_files_with_other_columns_and_parts_of_files_land_in_one_commit(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    """Columns and fields are matched by name, at any depth; missing ones are NULL."""
    await tables.add_columns("items", MORE)
    one = stage_decoded(lake, [Decoded(n, {"id": n, "one": {"a": n}}) for n in range(3)])
    other = [
        Decoded(n, {"x-y": True, "one": {"c": {"d": n}}, "list": [{"b": "x"}]}) for n in range(9)
    ]
    more = stage_decoded(lake, other, MORE, "b.parquet")
    together = parse_columns(
        "map MAP<STRING, STRUCT<b: ARRAY<INT>>>, `x-y` BOOLEAN, id BIGINT, "
        "list ARRAY<STRUCT<b: STRING>>, one STRUCT<c: STRUCT<d: INT>, a: INT>"
    )
    part = FileSlice("b.parquet", {0: (3, 5)}, whole=False, bytes=1_000, topic="items")
    await tables.append(
        "items", replace(one, slices=(*one.slices, part), columns=together), LEASE, "stamp"
    )

    found = values(spark, lake)
    assert more.columns == MORE
    assert [row["one"] for row in found] == [
        *({"a": n, "b": None, "c": None} for n in range(3)),
        *({"a": None, "b": None, "c": {"d": n}} for n in (3, 4)),
    ]
    assert [row["id"] for row in found] == [0, 1, 2, None, None]
    assert [row["x-y"] for row in found] == [None, None, None, True, True]
    assert [row["list"] for row in found] == [None] * 3 + [[{"a": None, "b": "x"}]] * 2


async def test_a_file_has_statistics_of_the_place_alone(tables: SparkLake, lake: Path) -> None:
    await tables.append("items", stage_decoded(lake, [Decoded(7, VALUE)]), LEASE, "{}")
    newest = max((lake / "items" / "_delta_log").glob("*.json"))
    actions = map(orjson.loads, newest.read_bytes().splitlines())
    (stats,) = (orjson.loads(each["add"]["stats"]) for each in actions if "add" in each)

    assert set(stats["minValues"]) == {"_kafka"}
    assert set(stats["minValues"]["_kafka"]) == {"partition", "offset", "timestamp"}


async def test_a_large_batch_of_columns_lands_whose_query_spark_compiles(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    batch = stage_decoded(lake, [Decoded(n, VALUE) for n in range(9)])
    await tables.append("items", replace(batch, bytes=240 << 20), LEASE, "{}")
    assert values(spark, lake) == [VALUE] * 9


async def test_a_stamp_without_rows_is_a_commit_of_a_table_of_columns(tables: SparkLake) -> None:
    for number in (1, 2):
        await tables.commit_stamp("items", LEASE, number, f"stamp {number}")

    history = await tables.history("items", 9)
    assert [c.metadata for c in history.commits] == ["stamp 2", "stamp 1", None]


async def test_other_libraries_read_a_table_of_columns(tables: SparkLake, lake: Path) -> None:
    await tables.append("items", stage_decoded(lake, [Decoded(7, VALUE)]), LEASE, "stamp")
    items = deltalake.DeltaTable(str(lake / "items")).to_pyarrow_dataset()
    row = items.to_table().to_pylist()[0]
    wanted = 'one.b, list[1].a, price, _kafka."offset"'
    by_polars = pl.scan_delta(str(lake / "items")).collect()

    assert (row["_kafka"]["offset"], row["one"]) == (7, {"a": 1, "b": "x"})
    assert duckdb.from_arrow(items).project(wanted).fetchall() == [("x", 1, Decimal("12.30"), 7)]
    assert by_polars["one"].to_list() == [{"a": 1, "b": "x"}]


# --- columns are added -------------------------------------------------------------------------


async def test_more_columns_and_fields_are_added_and_are_null_in_old_rows(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    old = stage_decoded(lake, [Decoded(7, VALUE)])
    await tables.append("items", old, LEASE, "first")
    await tables.open(replace(ITEMS, columns=MORE))
    new = [Decoded(8, {"map": [("k", {"b": [1]})], "list": [{"b": "x"}]})]
    await tables.append("items", stage_decoded(lake, new, MORE, "b.parquet"), LEASE, "second")
    await tables.append(
        "items", stage_decoded(lake, [Decoded(9, VALUE)], COLUMNS, "c.parquet"), LEASE, "third"
    )

    added = {
        **VALUE,
        "one": {"a": 1, "b": "x", "c": None},
        "list": [{"a": 1, "b": None}, None, {"a": None, "b": None}],
        "map": [("k", {"a": 1, "b": None}), ("n", None)],
        "x-y": None,
    }
    fresh = {"map": [("k", {"a": None, "b": [1]})], "list": [{"a": None, "b": "x"}]}
    assert values(spark, lake) == [added, {**NOTHING, "x-y": None, **fresh}, added]


async def test_columns_that_are_there_are_not_added_again(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    await tables.add_columns("items", MORE)
    before = await tables.history("items", 9), schema_text(spark, lake)
    await tables.add_columns("items", MORE)
    await tables.add_columns("items", parse_columns("ID BIGINT, One STRUCT<A: INT>"))
    await tables.open(ITEMS)

    assert (await tables.history("items", 9), schema_text(spark, lake)) == before


async def test_columns_that_were_added_with_a_comment_are_known_by_it(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    comment, new = "it's \\ 'ours'", parse_columns("x BIGINT, `a.b` STRING, `it's` BOOLEAN")
    await tables.add_columns("items", new, comment)
    sql(spark, f"ALTER TABLE delta.`{lake}/items` ADD COLUMNS (own INT COMMENT 'ours')")
    await tables.add_columns("items", parse_columns("X BIGINT"), comment)

    there = await tables.columns("items", comment)
    assert there.commented == new
    assert there.names == {"_kafka", "own", *(column.name for column in (*COLUMNS, *new))}


async def test_many_add_columns_at_once(
    tables: SparkLake, lake: Path, spark_url: str, spark: SparkSession
) -> None:
    """An addition meets a conflict or is in the table; opening the table repeats it."""
    each = [new_lake(lake, spark_url) for _ in range(4)]
    wanted = [*COLUMNS, *parse_columns("a INT, b INT, c INT")]
    opens = (other.open(replace(ITEMS, columns=tuple(wanted))) for other in each[:2])
    adds = (other.add_columns("items", parse_columns("c INT, d INT")) for other in each[2:])
    outcomes = await asyncio.gather(*opens, *adds, return_exceptions=True)
    for other in each:
        await other.__aexit__()

    assert outcomes[:2] == ["items", "items"]
    assert all(outcome is None or isinstance(outcome, WriteConflict) for outcome in outcomes[2:])
    await tables.add_columns("items", parse_columns("c INT, d INT"))
    names = spark.table(f"delta.`{lake}/items`").columns
    assert sorted(names[-4:]) == ["a", "b", "c", "d"]


async def test_a_column_of_another_type_is_refused_and_nothing_changes(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    before = await tables.history("items", 9), schema_text(spark, lake)
    other = parse_columns("new INT, one STRUCT<a: STRING, c: INT>")
    for call in (
        tables.open(replace(ITEMS, columns=other)),
        tables.add_columns("items", other),
    ):
        with pytest.raises(TableRefused, match=r"types: one\.a string \(there: int\)"):
            await call

    assert (await tables.history("items", 9), schema_text(spark, lake)) == before


async def test_rows_with_a_column_that_the_table_has_not_are_refused(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    batch = stage_decoded(lake, [Decoded(7, {"new": 1})], parse_columns("new INT"))
    with pytest.raises(TableRefused):
        await tables.append("items", batch, LEASE, "stamp")
    assert not offsets(spark, lake)


# --- whose table it is, and of which kind ------------------------------------------------------


@pytest.mark.usefixtures("tables")
async def test_both_tables_have_an_owner_and_their_properties(
    lake: Path, spark: SparkSession
) -> None:
    for name in ("items", "items__bad"):
        found = spark.sql(f"DESCRIBE DETAIL delta.`{lake}/{name}`").collect()[0].properties
        assert (found["binwright.group"], found["binwright.cluster"]) == ("g", "cluster-a")
        columns = "_kafka.partition,_kafka.offset,_kafka.timestamp"
        assert found["delta.dataSkippingStatsColumns"] == columns
        assert 40 <= int(found["delta.checkpointInterval"]) < 60


async def test_the_bad_records_of_another_group_are_refused(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    table = f"delta.`{lake}/items__bad`"
    sql(spark, f"ALTER TABLE {table} SET TBLPROPERTIES ('binwright.group' = 'h')")
    with pytest.raises(TableRefused, match=r"items__bad belongs to group h .* this is group g"):
        await tables.open(ITEMS)


async def test_a_table_of_bad_records_that_is_gone_is_created_again(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    shutil.rmtree(lake / "items__bad")
    await tables.open(ITEMS)
    assert schema_text(spark, lake, "items__bad") == (
        f"struct<_kafka:{PLACE},topic_id:string,kind:string,reason:string,value:binary,"
        "landed_at:timestamp>"
    )


async def test_a_table_of_columns_is_not_opened_as_one_of_raw_records(tables: SparkLake) -> None:
    with pytest.raises(TableRefused, match="no entry of `tables` names its topic"):
        await tables.open(replace(ITEMS, columns=None))


async def test_a_table_of_raw_records_is_not_opened_as_one_of_columns(
    lake: Path, spark_url: str
) -> None:
    async with new_lake(lake, spark_url) as tables:
        await tables.open(replace(ITEMS, columns=None))
        with pytest.raises(TableRefused, match="it is one of raw records"):
            await tables.open(ITEMS)

    assert not (lake / "items__bad").exists()


async def test_a_column_of_a_person_may_not_be_not_null(
    lake: Path, spark_url: str, spark: SparkSession
) -> None:
    columns = f"_kafka {PLACE}, id BIGINT NOT NULL"
    sql(spark, f"CREATE TABLE delta.`{lake}/items` ({columns}) USING delta")
    async with new_lake(lake, spark_url) as tables:
        with pytest.raises(TableRefused, match="id may not be NOT NULL"):
            await tables.open(ITEMS)


# --- reads and housekeeping --------------------------------------------------------------------


async def test_the_highest_offsets_of_a_table_of_columns_are_those_of_its_rows(
    tables: SparkLake, lake: Path
) -> None:
    assert await tables.highest_offsets("items") == {}
    rows = [Decoded(7, {}), Decoded(8), Decoded(3, {}, partition=1)]
    batch = stage_decoded(lake, rows)
    await tables.append_bad("items", batch, LEASE, "stamp")
    await tables.append("items", batch, LEASE, "stamp")

    assert await tables.highest_offsets("items") == {
        TopicPartition("items", 0): 7,
        TopicPartition("items", 1): 3,
    }


async def test_both_tables_are_compacted_and_vacuumed(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    for number in range(3):
        rows = [Decoded(2 * number, VALUE), Decoded(2 * number + 1)]
        batch = stage_decoded(lake, rows, name=f"{number}.parquet")
        await tables.append_bad("items", batch, LEASE, "stamp")
        await tables.append("items", batch, LEASE, "stamp")
    done = await tables.compact("items")

    assert (done.removed, done.added) == (6, 2)
    await tables.vacuum("items")
    for name, kept in (("items", [0, 2, 4]), ("items__bad", [1, 3, 5])):
        assert len(list((lake / name).glob("*.parquet"))) == 1
        assert offsets(spark, lake, name) == kept
