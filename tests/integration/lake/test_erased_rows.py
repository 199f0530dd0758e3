"""Rows that are erased leave their table, and its files once a vacuum may: against a real Spark."""

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
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
from tests.integration.lake.tables import LEASE, ROWS, TABLE, landed_offsets, new_lake, stage_file

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import TableRefused
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.tables.conditions import parse_condition
from binwright.tables.ports import BadPlace, ErasedCounts, ErasedQuery

pytestmark = pytest.mark.integration

OPERATION, NOTE = "1" * 32, "binwright erase 1"
PERSON, OTHER = "ann.of.the.green.gables", "bob"
ZERO = TopicPartition("items", 0)


def query(where: str = "", bad_where: str = "", operation: str = OPERATION) -> ErasedQuery:
    return ErasedQuery(
        operation=operation,
        where=parse_condition(where) if where else None,
        bad_where=parse_condition(bad_where) if bad_where else None,
        topic_ids={"items": TOPIC_ID},
        below={ZERO: 100},
    )


@pytest.fixture
async def tables(lake: Path, spark_url: str, staging: FileStaging) -> AsyncIterator[SparkLake]:
    """The lake under test: rows of two persons, and bad records, of which one is not settled."""
    await staging.write_lease("items", LEASE)
    async with new_lake(lake, spark_url, vacuum_retention_s=0.0) as tables:
        await tables.open(ITEMS)
        values = [{"id": n, "one": {"a": n, "b": PERSON if n % 2 else OTHER}} for n in range(6)]
        rows = [*(Decoded(n, value) for n, value in enumerate(values)), Decoded(9, values[1])]
        rows[5] = replace(rows[5], timeless=True)
        await tables.append("items", stage_decoded(lake, rows), LEASE, "stamp")
        bad = stage_decoded(lake, [Decoded(6), Decoded(7), Decoded(100)], name="b.parquet")
        await tables.append_bad("items", bad, LEASE, "stamp")
        yield tables


async def erase(tables: SparkLake, wanted: ErasedQuery, table: str = "items") -> ErasedCounts:
    counts = await tables.note_erased(table, wanted, NOTE, dry_run=False)
    await tables.erase_noted(table, wanted.operation, NOTE)
    return counts


def files_with(lake: Path, text: str) -> list[str]:
    """Return the files of the lake in which a reader finds the text, or that have its bytes."""
    return [
        str(file.relative_to(lake))
        for file in lake.rglob("*")
        if file.is_file() and "_staging" not in file.parts
        if text.encode() in file.read_bytes()
        or (file.suffix == ".parquet" and text in str(pq.read_table(file).to_pylist()))
    ]


def deletion_vectors(lake: Path) -> list[Path]:
    return [*lake.rglob("deletion_vector*")]


async def test_rows_that_meet_a_condition_go_and_are_noted(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    wanted = query(f"one.b = '{PERSON}'")
    assert await tables.note_erased("items", wanted, NOTE, dry_run=True) == (4, 0, 3)
    assert not (lake / "items__erased").exists()
    assert offsets(spark, lake) == [0, 1, 2, 3, 4, 5, 9]
    assert await erase(tables, wanted) == (4, 0, 3)
    assert offsets(spark, lake) == [0, 2, 4]
    assert bad_offsets(spark, lake) == [6, 7, 100]
    places = spark.table(f"delta.`{lake}/items__erased`").collect()
    assert sorted(row["offset"] for row in places) == [1, 3, 5, 9]
    assert {(row["operation"], row["topic_id"]) for row in places} == {(OPERATION, TOPIC_ID)}
    history = spark.sql(f"DESCRIBE HISTORY delta.`{lake}/items`").collect()
    assert (history[0]["operation"], history[0]["userMetadata"]) == ("MERGE", NOTE)


async def test_it_may_be_repeated_at_each_step(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    wanted = query("_kafka.offset < 2", "_kafka.offset < 7")
    for _ in range(2):
        assert await tables.note_erased("items", wanted, NOTE, dry_run=False) == (2, 1, 0)
    for _ in range(2):
        assert await erase(tables, wanted) == (2, 1, 0)
        assert offsets(spark, lake) == [2, 3, 4, 5, 9]
        assert bad_offsets(spark, lake) == [7, 100]
    other = query("_kafka.offset < 3", operation="2" * 32)
    assert await erase(tables, other) == (1, 0, 2)
    assert await erase(tables, query("id = 77", operation="3" * 32)) == (0, 0, 2)


async def test_bad_records_whose_batch_may_come_again_stay(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    assert await erase(tables, query(bad_where="kind = 'json'")) == (0, 2, 0)
    assert bad_offsets(spark, lake) == [100]
    assert offsets(spark, lake) == [0, 1, 2, 3, 4, 5, 9]
    earlier = replace(query(bad_where="kind = 'json'", operation="2" * 32), topic_ids={})
    assert await erase(tables, earlier) == (0, 1, 0)
    assert bad_offsets(spark, lake) == []


@pytest.mark.parametrize("vectors", [False, True])
async def test_no_file_has_them_once_the_retention_is_over(
    tables: SparkLake, lake: Path, spark: SparkSession, vectors: bool
) -> None:
    """Also in a table in which Delta would leave them in their file, and hide them by a vector."""
    if vectors:
        spark.sql(
            f"ALTER TABLE delta.`{lake}/items` "
            "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        ).collect()
    assert files_with(lake, PERSON)
    await erase(tables, query(f"one.b = '{PERSON}'"))
    assert files_with(lake, PERSON), "older versions have them still"
    assert deletion_vectors(lake) == []
    await tables.vacuum("items")
    assert files_with(lake, PERSON) == []
    assert len(files_with(lake, OTHER)) == 1
    assert [row["one"]["b"] for row in landed(spark, lake)] == [OTHER] * 3


async def test_what_is_settled_or_old_leaves_its_files_too(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    """What a deletion vector hides is in its file still, and no later erasure finds it."""
    for name in ("items", "items__bad"):
        spark.sql(
            f"ALTER TABLE delta.`{lake}/{name}` "
            "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        ).collect()
    settled = BadPlace(TOPIC_ID, ZERO, 6, round(EPOCH.timestamp() + 6) * 1000)
    await tables.change_bad("items", [settled], (), NOTE)
    assert await tables.expire("items", time.time() - EPOCH.timestamp() - 2.5) == 3
    assert offsets(spark, lake) == [3, 4, 5, 9]
    assert bad_offsets(spark, lake) == [7, 100]
    assert deletion_vectors(lake) == []


async def test_a_condition_that_does_not_fit_is_refused_and_not_quoted(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    """It may name a person, and so may the value of a row at which it ends."""
    for where, fault in (
        ("id = 5 AND ann = 'ann'", "--where: name 2 in it .*, which has: _kafka, id, one"),
        ("one.ann = 'ann'", "--where: it does not fit the table: FIELD_NOT_FOUND"),
        ("one = 'ann'", "it does not fit the table: DATATYPE_MISMATCH"),
        ("one.b = DATE 'ann'", "it does not fit the table: INVALID_TYPED_LITERAL"),
        ("one.b = 5", "CAST_INVALID_INPUT"),
        ("to_timestamp(one.b, 'ann') IS NULL", "INVALID_DATETIME_PATTERN"),
        ("element_at(one.b, 9) = 'ann'", "DATATYPE_MISMATCH"),
        ("to_timestamp(one.b, 'yyyy') IS NULL", "CANNOT_PARSE_TIMESTAMP"),
    ):
        for dry_run in (True, False):
            with pytest.raises(TableRefused, match=fault) as refused:
                await tables.note_erased("items", query(where), NOTE, dry_run=dry_run)
            assert "ann" not in str(refused.value)
            assert OTHER not in str(refused.value)
    with pytest.raises(TableRefused, match=r"--bad-where: name 1 in it .* of bad records"):
        await tables.note_erased("items", query(bad_where="id = 5"), NOTE, dry_run=False)
    assert offsets(spark, lake) == [0, 1, 2, 3, 4, 5, 9]


async def test_what_was_ordered_of_an_earlier_table_is_not_erased_from_a_new_one(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    """Its writer finds the last order, however old it is."""
    ordered = replace(query("id = 5"), ordered_ms=wall_ms() - 86_400_000)
    with pytest.raises(TableRefused, match="before the table was created"):
        await tables.note_erased("items", ordered, NOTE, dry_run=False)
    ordered = replace(ordered, ordered_ms=wall_ms())
    assert (await tables.note_erased("items", ordered, NOTE, dry_run=True)).rows == 1
    assert offsets(spark, lake) == [0, 1, 2, 3, 4, 5, 9]


async def test_rows_of_a_raw_table_go(
    tables: SparkLake, lake: Path, spark: SparkSession, staging: FileStaging
) -> None:
    await tables.open(TABLE)
    await staging.write_lease("orders", LEASE)
    await tables.append("orders", await stage_file(staging, ROWS), LEASE, "stamp")
    wanted = replace(query("offset = 7 AND partition = 1"), topic_ids={"orders": None}, below={})
    assert await erase(tables, wanted, "orders") == (1, 0, 0)
    assert sorted(landed_offsets(spark, lake)) == [(0, 0), (0, 1), (0, 2), (1, 8)]


async def test_the_highest_offsets_are_also_those_of_erased_rows(tables: SparkLake) -> None:
    """Else, once no stamp is left, it would land again."""
    assert await tables.highest_offsets("items") == {ZERO: 9}
    assert await erase(tables, query("_kafka.offset > 3")) == (3, 0, 3)
    assert await tables.highest_offsets("items") == {ZERO: 9}


async def test_the_lowest_offsets_are_also_those_of_erased_records_and_of_no_bad_ones(
    tables: SparkLake,
) -> None:
    """Else a back-fill would bring the former back, and begin below the latter."""
    assert await tables.lowest_offsets("items") == {ZERO: 0}
    assert await tables.lowest_bad_offsets("items") == {ZERO: 6}
    assert await erase(tables, query("_kafka.offset < 3")) == (3, 0, 3)
    assert await tables.lowest_offsets("items") == {ZERO: 0}
    await tables.open(TABLE)
    assert await tables.lowest_offsets("orders") == {}


async def test_what_was_noted_of_an_earlier_table_counts_no_more(
    tables: SparkLake, lake: Path
) -> None:
    """A table that a person has moved away lands again in a new one, from its first record."""
    assert await erase(tables, query("_kafka.offset > 3")) == (3, 0, 3)
    for name in ("items", "items__bad"):
        (lake / name).rename(lake / f"{name}.before")
    await tables.open(ITEMS)
    assert await tables.highest_offsets("items") == {}
    batch = stage_decoded(lake, [Decoded(5, {"id": 5})], name="c.parquet")
    await tables.append("items", batch, LEASE, "stamp")
    assert await tables.highest_offsets("items") == {ZERO: 5}
    assert await erase(tables, query("id = 77")) == (0, 0, 0)
    assert await tables.highest_offsets("items") == {ZERO: 5}, "it was noted before"
