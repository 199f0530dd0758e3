"""Rows of keys, which changes are applied to, against a real Spark Connect server with Delta."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import orjson
import pytest
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import LongType, StructField, StructType
from tests.integration.lake.tables import LEASE, OTHER_LEASE, new_lake, wait_for_write
from tests.integration.lake.test_readers import duckdb_extension

from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.keyed_changes import KeyedDecoder
from binwright.consumer.land.lake.keyed_rows import Keys
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import StagedUnreadable, TableRefused, WriteConflict
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record, Records
from binwright.tables.columns import columns_text, parse_columns
from binwright.tables.conditions import parse_condition
from binwright.tables.operations import REPLAY
from binwright.tables.ports import Batch, ErasedQuery, FileSlice, Footer, Table
from binwright.tables.settings import TableSettings

pytestmark = pytest.mark.integration

TOPIC = "orders"
COLUMNS = "id BIGINT, v INT, at TIMESTAMP, tags ARRAY<STRING>, by STRUCT<name: STRING>"
AT_MS = 1_700_000_000_000
Value = Mapping[str, Any] | None
Change = tuple[int, int, Any, Value]
"""Partition, offset, key and value; None: it deletes."""


def entry(columns: str = COLUMNS, **given: Any) -> TableSettings:
    """Return the settings of a table whose key is that of the record, unless it is given."""
    keys = {"mode": "upsert", "primary_key": ["_kafka.key"], **given}
    return TableSettings.model_validate(
        {"topics": [TOPIC], "format": "json", "columns": columns, **keys}
    )


def decoder(of: TableSettings) -> KeyedDecoder:
    return KeyedDecoder(JsonDecoder(parse_columns(of.columns or "")), of)


def table_of(of: TableSettings) -> Table:
    table = Table(TOPIC, "g", "cluster-a", decoder(of).columns)
    return replace(table, primary_key=of.primary_key, sequence_by=of.sequence_by)


class Landing:
    """One table of keys, and what lands in it."""

    def __init__(self, lake: SparkLake, staging: FileStaging, of: TableSettings) -> None:
        self.lake, self.staging, self.of = lake, staging, of
        self.number = 0

    async def stage(self, *changes: Change, work: str = "") -> Batch:
        """Stage these changes; return the batch that is all of them."""
        by_partition: dict[TopicPartition, list[Record]] = {}
        for partition, offset, key, value in changes:
            record = Record(
                offset,
                AT_MS + ((value or {}).get("ms", offset)),
                None if key is None else str(key).encode(),
                None if value is None else orjson.dumps(value),
            )
            by_partition.setdefault(TopicPartition(TOPIC, partition), []).append(record)
        self.number += 1
        name, of = f"changes-{self.number}.parquet", decoder(self.of)
        ranges = {
            p.partition: (min(r.offset for r in rows), max(r.offset for r in rows) + 1)
            for p, rows in by_partition.items()
        }
        rows = {p: [Records.of(records)] for p, records in by_partition.items()}
        footer = Footer(None, len(changes), ranges)
        size = await self.staging.write(TOPIC, name, rows, footer, of)
        (found,) = (await self.staging.footers(TOPIC, [name])).values()
        assert found.bad == 0, found.fault
        deleted = sum(value is None for *_, value in changes)
        assert found.deleted == deleted
        part = FileSlice(name, ranges, whole=True, bytes=size, topic=TOPIC)
        return Batch(
            (part,),
            rows=found.rows,
            bytes=size,
            columns=found.columns,
            deletes=bool(deleted),
            work=work,
            as_table=frozenset([name]) if found.as_table else frozenset(),
        )

    async def land(self, *changes: Change, work: str = "") -> None:
        """Stage these changes and apply them."""
        batch = await self.stage(*changes, work=work)
        await self.merge(batch)

    async def merge(self, batch: Batch, lease: str = LEASE) -> None:
        if batch.deletes:
            await self.lake.note_deleted(TOPIC, batch, lease, "noted")
        self.number += 1
        await self.lake.merge(TOPIC, batch, lease, self.number, f"stamp {self.number}")

    async def newest_stamp(self) -> str | None:
        return (await self.lake.history(TOPIC, 1)).commits[0].metadata


@pytest.fixture
async def tables(lake: Path, spark_url: str) -> AsyncIterator[SparkLake]:
    """The lake under test, without a table."""
    async with new_lake(lake, spark_url) as tables:
        yield tables


async def opened(lake: SparkLake, staging: FileStaging, **given: Any) -> Landing:
    landing = Landing(lake, staging, entry(**given))
    await lake.open(table_of(landing.of))
    return landing


def rows(spark: SparkSession, lake: Path) -> dict[Any, Any]:
    """Return the value `v` of each key, and the place of its change."""
    found = spark.read.format("delta").load(f"{lake}/{TOPIC}").toArrow().to_pylist()
    values = {
        row["_kafka"]["key"].decode(): (
            row["v"],
            (row["_kafka"]["partition"], row["_kafka"]["offset"]),
        )
        for row in found
    }
    assert len(values) == len(found), "a key has two rows"
    return values


async def test_of_many_changes_of_a_key_the_newest_counts(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    landing = await opened(tables, staging)
    await landing.land(
        (0, 0, "a", {"v": 1, "tags": ["x"], "by": {"name": "y"}}),
        (0, 1, "b", {"v": 2}),
        (0, 2, "a", {"v": 3}),
        (0, 3, "c", {"v": 4}),
        (0, 4, "c", None),
        (0, 5, "d", None),
    )
    assert rows(spark, lake) == {"a": (3, (0, 2)), "b": (2, (0, 1))}
    await landing.land((0, 6, "b", None), (0, 7, "c", {"v": 5}), (0, 8, "a", {"v": 6}))
    assert rows(spark, lake) == {"a": (6, (0, 8)), "c": (5, (0, 7))}
    (row,) = (
        row
        for row in spark.read.format("delta").load(f"{lake}/{TOPIC}").toArrow().to_pylist()
        if row["v"] == 6
    )
    assert (row["_op"], row["tags"], row["by"]) == ("u", None, None)


async def test_a_commit_has_its_stamp_though_it_changes_nothing(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    landing = await opened(tables, staging)
    await landing.land((0, 0, "a", None))
    assert (rows(spark, lake), await landing.newest_stamp()) == ({}, f"stamp {landing.number}")
    await tables.commit_stamp(TOPIC, LEASE, landing.number + 1, "alone")
    assert await landing.newest_stamp() == "alone"


async def test_a_change_that_is_replayed_neither_replaces_a_newer_one_nor_brings_a_row_back(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    landing = await opened(tables, staging)
    await landing.land((0, 5, "a", {"v": 5}), (0, 6, "b", None), (0, 7, "c", {"v": 7}))
    older = [(0, 1, "a", {"v": 1}), (0, 2, "b", {"v": 2}), (0, 3, "c", None), (0, 4, "d", {"v": 4})]
    for _ in range(2):  # again is as once
        await landing.land(*older, work=REPLAY)
        found = {"a": (5, (0, 5)), "c": (7, (0, 7)), "d": (4, (0, 4))}
        assert rows(spark, lake) == found


async def test_a_deletion_that_is_replayed_deletes_unless_a_newer_change_has_landed(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    landing = await opened(tables, staging)
    await landing.land((0, 1, "a", {"v": 1}), (0, 9, "b", {"v": 9}))
    for _ in range(2):
        await landing.land((0, 5, "a", None), (0, 6, "b", None), work=REPLAY)
        await landing.land((0, 4, "a", {"v": 4}), work=REPLAY)
        assert rows(spark, lake) == {"b": (9, (0, 9))}


async def test_lower_offsets_of_a_recreated_topic_are_newer(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    landing = await opened(tables, staging)
    await landing.land((0, 500, "a", {"v": 1}), (0, 501, "b", None))
    await landing.land((0, 0, "a", {"v": 2, "ms": 0}), (0, 1, "b", {"v": 3, "ms": 0}))
    assert rows(spark, lake) == {"a": (2, (0, 0)), "b": (3, (0, 1))}


async def test_a_change_that_is_replayed_is_compared_by_its_time_whatever_the_offsets(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    """Of before a cut of the log, or of before the topic was made anew."""
    landing = await opened(tables, staging)
    await landing.land((0, 500, "a", {"v": 1, "ms": 10}), (0, 5, "b", {"v": 2, "ms": 20}))
    await landing.land((0, 9, "a", {"v": 3, "ms": 20}), work=REPLAY)
    await landing.land((0, 900, "b", {"v": 4, "ms": 10}), work=REPLAY)
    await landing.land(
        (0, 901, "c", {"v": 5, "ms": 10}), (0, 4, "c", {"v": 6, "ms": 20}), work=REPLAY
    )
    found = {"a": (3, (0, 9)), "b": (2, (0, 5)), "c": (6, (0, 4))}
    assert rows(spark, lake) == found


async def test_of_two_partitions_the_later_change_counts_also_behind_a_deletion(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    """As where a topic got more partitions: what is left of the old ones lands later."""
    landing = await opened(tables, staging)
    changes: list[Change] = [
        (1, 0, "a", {"v": 2, "ms": 200}),
        (1, 1, "b", {"v": 3, "ms": 200}),
        (1, 300, "b", None),
        (1, 2, "c", {"v": 4, "ms": 100}),
    ]
    older: list[Change] = [
        (0, 900, "a", {"v": 1, "ms": 100}),
        (0, 901, "b", {"v": 1, "ms": 100}),
        (0, 902, "c", {"v": 1, "ms": 200}),
    ]
    expected = {"a": (2, (1, 0)), "c": (1, (0, 902))}
    await landing.land(*changes)
    await landing.land(*older)
    assert rows(spark, lake) == expected
    await landing.land(*[(p, o + 1000, f"{k}2", v) for p, o, k, v in (*changes, *older)])
    assert {k: v[0] for k, v in rows(spark, lake).items() if "2" in k} == {"a2": 2, "c2": 1}


async def test_a_deletion_that_its_partition_has_left_behind_hides_no_change_of_another(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    """As times go back in one: then its last change counts, and its time."""
    landing = await opened(tables, staging)
    batch = await landing.stage(
        (0, 1, "a", None),
        (0, 2, "a", {"v": 1, "ms": -100}),
        (1, 5, "a", {"v": 2, "ms": -50}),
    )
    await landing.merge(batch)
    assert rows(spark, lake) == {"a": (2, (1, 5))}


@pytest.mark.parametrize("by", ["v", "at"])
async def test_what_changes_are_ordered_by_counts_before_their_offsets(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession, by: str
) -> None:
    landing = await opened(
        tables,
        staging,
        sequence_by=[by],
        delete_where=["tags is not null"],
        tombstones="bad",
    )

    def change(offset: int, key: str, place: int, **more: Any) -> Change:
        at = f"2026-01-01T00:00:00.{place:06d}Z"
        return 0, offset, key, {"v": place, "at": at, **more}

    batch = await landing.stage(change(0, "a", 5), change(1, "a", 3), change(2, "b", 9))
    await landing.merge(batch)
    gone = [(0, 3, "b", {**(change(3, "b", 20)[3] or {}), "tags": []})]
    batch = replace(await staged_deletion(landing, gone), deletes=True)
    await landing.merge(batch)
    await landing.land(change(4, "a", 4), change(5, "b", 15))
    assert rows(spark, lake) == {"a": (5, (0, 0))}
    await landing.land(change(6, "a", 5), change(7, "b", 21))
    assert rows(spark, lake) == {"a": (5, (0, 6)), "b": (21, (0, 7))}


async def staged_deletion(landing: Landing, changes: Sequence[Change]) -> Batch:
    """Stage changes that delete by their values."""
    landing.number += 1
    name, of = f"changes-{landing.number}.parquet", decoder(landing.of)
    records = [Record(o, AT_MS, str(k).encode(), orjson.dumps(v)) for _, o, k, v in changes]
    ranges = {0: (changes[0][1], changes[-1][1] + 1)}
    given = {TopicPartition(TOPIC, 0): [Records.of(records)]}
    size = await landing.staging.write(TOPIC, name, given, Footer(None, len(records), ranges), of)
    (found,) = (await landing.staging.footers(TOPIC, [name])).values()
    assert found.deleted == len(changes)
    part = FileSlice(name, ranges, whole=True, bytes=size, topic=TOPIC)
    as_table = frozenset([name]) if found.as_table else frozenset[str]()
    return Batch((part,), rows=len(records), columns=found.columns, as_table=as_table)


async def test_columns_of_values_are_keys_and_rows_get_those_that_are_new(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    """Fields within columns, too: what is of older settings has them NULL."""
    landing = await opened(tables, staging, primary_key=["id", "by.name"], tombstones="bad")
    await landing.land(
        (0, 0, None, {"id": 1, "by": {"name": "x"}, "v": 1}),
        (0, 1, None, {"id": 1, "by": {"name": "y"}, "v": 2}),
    )
    more = entry(
        f"{COLUMNS.replace('name: STRING', 'name: STRING, age: INT')}, size INT",
        primary_key=["id", "by.name"],
        tombstones="bad",
    )
    before = await landing.stage((0, 2, None, {"id": 1, "by": {"name": "y"}, "v": 3}))
    await tables.add_columns(TOPIC, decoder(more).columns)
    await landing.merge(before)
    landing.of = more
    await landing.land((0, 3, None, {"id": 1, "by": {"name": "x", "age": 7}, "v": 4, "size": 5}))
    found = spark.read.format("delta").load(f"{lake}/{TOPIC}").orderBy("v")
    assert found.selectExpr("v", "by.name", "by.age", "size").toArrow().to_pylist() == [
        {"v": 3, "name": "y", "age": None, "size": None},
        {"v": 4, "name": "x", "age": 7, "size": 5},
    ]


async def test_variants_are_values_of_rows_too(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    landing = await opened(tables, staging, columns="v INT, any VARIANT")
    await landing.land((0, 0, "a", {"v": 1, "any": {"x": [1]}}), (0, 1, "b", {"v": 2, "any": "y"}))
    await landing.land((0, 2, "a", {"v": 3, "any": [2.5]}), (0, 3, "b", {"v": 4}))
    found = spark.read.format("delta").load(f"{lake}/{TOPIC}").orderBy("v")
    assert found.selectExpr("v", "to_json(any) AS any").toArrow().to_pylist() == [
        {"v": 3, "any": "[2.5]"},
        {"v": 4, "any": None},
    ]


async def test_nothing_is_applied_under_a_lease_that_was_deleted(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    landing = await opened(tables, staging)
    batch = await landing.stage((0, 0, "a", {"v": 1}))
    await staging.write_lease(TOPIC, OTHER_LEASE)
    await staging.delete_other_leases(TOPIC, OTHER_LEASE)
    with pytest.raises(StagedUnreadable) as result:
        await landing.merge(batch)
    assert result.value.files == {LEASE}
    assert not rows(spark, lake)
    await landing.merge(batch, OTHER_LEASE)
    assert rows(spark, lake) == {"a": (1, (0, 0))}


async def test_changes_that_a_claim_overtakes_are_not_applied(
    tables: SparkLake, staging: FileStaging, lake: Path, spark_url: str, spark: SparkSession
) -> None:
    """The MERGE has its snapshot once it writes a file: only the metadata stop it then."""
    landing = await opened(tables, staging)
    text = ["x" * 500]
    async with new_lake(lake, spark_url) as other:
        for turn in range(1, 10):
            changes: list[Change] = [
                (0, turn * 20_000 + n, n, {"v": turn, "tags": text}) for n in range(20_000)
            ]
            batch = await landing.stage(*changes)
            before = len([*(lake / TOPIC).glob("*.parquet")])
            merge = asyncio.create_task(landing.merge(batch))
            await wait_for_write(merge, lake, before)
            await other.claim(TOPIC, f"w-{turn}", "claim")
            try:
                await merge
            except WriteConflict:
                assert all(value < turn for value, _ in rows(spark, lake).values())
                await landing.merge(batch)  # under a lease that is there
                assert {value for value, _ in rows(spark, lake).values()} == {turn}
                return
    pytest.fail("no claim was ever quick enough")


async def test_random_changes_leave_what_a_replay_of_them_in_memory_leaves(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    landing, chance = await opened(tables, staging), random.Random(7)
    expected: dict[str, Any] = {}
    ends = [0, 0]
    for _ in range(12):
        changes: list[Change] = []
        for _ in range(chance.randint(1, 200)):
            key = chance.randrange(40)
            partition = key % 2
            value = None if chance.random() < 0.3 else {"v": chance.randrange(1_000)}
            changes.append((partition, ends[partition], key, value))
            place = (partition, ends[partition])
            ends[partition] += 1
            expected.pop(str(key), None)
            if value is not None:
                expected[str(key)] = (value["v"], place)
        await landing.land(*changes)
        assert rows(spark, lake) == expected
    assert (await tables.compact(TOPIC)).added <= 2  # the rows, and what is noted
    await tables.vacuum(TOPIC)
    assert rows(spark, lake) == expected
    assert deltalake.DeltaTable(f"{lake}/{TOPIC}").to_pyarrow_table().num_rows == len(expected)
    with duckdb.connect() as database:
        database.load_extension(duckdb_extension())
        assert len(database.table_function("delta_scan", [f"{lake}/{TOPIC}"])) == len(expected)


async def test_what_is_noted_of_deletions_is_compacted_with_the_table(
    tables: SparkLake, staging: FileStaging, lake: Path
) -> None:
    landing = await opened(tables, staging)
    for offset in range(3):
        await landing.land((0, offset, "a", None))
    noted = deltalake.DeltaTable(f"{lake}/{TOPIC}__deleted")
    assert len(noted.file_uris()) == 3
    await tables.compact(TOPIC)
    noted.update_incremental()
    assert (len(noted.file_uris()), noted.to_pyarrow_table().num_rows) == (1, 3)


async def test_an_older_change_that_is_replayed_brings_no_erased_row_back(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    landing = await opened(tables, staging)
    await landing.land((0, 5, "a", {"v": 5}), (0, 6, "b", {"v": 6}))
    wanted = ErasedQuery(
        operation="0" * 32,
        where=parse_condition("v = 5"),
        bad_where=None,
        topic_ids={TOPIC: None},
        below={},
    )
    for _ in range(2):
        await tables.note_erased(TOPIC, wanted, "note", dry_run=False)
        await tables.erase_noted(TOPIC, wanted.operation, "note")
        await landing.land((0, 3, "a", {"v": 3}), (0, 4, "b", {"v": 4}), work=REPLAY)
        assert rows(spark, lake) == {"b": (6, (0, 6))}
    await landing.land((0, 7, "a", {"v": 7}))
    assert rows(spark, lake) == {"a": (7, (0, 7)), "b": (6, (0, 6))}


def test_deletions_of_a_table_of_other_keys_or_of_another_order_are_not_its_own() -> None:
    """They stay when a table is moved away, and another one is created in its place."""
    types = StructType([StructField(name, LongType()) for name in ("id", "other", "v")])
    tables = [(("id",), ()), (("other",), ()), (("id",), ("v",)), (("id", "v"), ())]
    hashes = {Keys(keys, by, types).hashed() for keys, by in tables}
    assert len(hashes) == len(tables)
    assert all(names in str(hashes) for names in ("'id; '", "'other; '", "'id; v'", "'id, v; '"))


def test_a_key_has_one_hash_in_each_type_that_holds_it(spark: SparkSession) -> None:
    """Columns become wider, and what was deleted before is noted still."""
    for value, types in {
        "100": ("INT", "BIGINT", "DECIMAL(12,0)", "DECIMAL(20,2)"),
        "1.50": ("DECIMAL(5,2)", "DECIMAL(9,4)", "DECIMAL(38,20)"),
        "0": ("INT", "DECIMAL(12,2)", "DECIMAL(38,20)"),
        "-0.0000005": ("DECIMAL(9,7)", "DECIMAL(38,20)"),
    }.items():
        hashes = set()
        for kind in types:
            row = spark.sql(f"SELECT CAST('{value}' AS {kind}) AS id")
            hashed = Keys(("id",), (), row.schema).hashed()
            hashes.add(row.selectExpr(hashed).collect()[0][0])
        assert len(hashes) == 1, value


async def test_a_table_of_other_rows_is_refused(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    landing = await opened(tables, staging)
    table = table_of(landing.of)
    await tables.open(table)
    for other in (replace(table, primary_key=()), replace(table, primary_key=("id",))):
        with pytest.raises(TableRefused, match=r"the rows of the table at .* are one of each _kaf"):
            await tables.open(other)
    with pytest.raises(TableRefused, match="ordered as they are in Kafka, and by the settings by"):
        await tables.open(replace(table, sequence_by=("v",)))
    appended = Table("clicks", "g", "cluster-a", parse_columns("id BIGINT"))
    await tables.open(appended)
    with pytest.raises(TableRefused, match=r"set its property binwright\.primary_key: 'id'"):
        await tables.open(replace(appended, primary_key=("id",)))
    columns = spark.read.format("delta").load(f"{lake}/{TOPIC}__deleted").columns
    assert columns == ["key", "place", "sequence", "noted_at"]
    assert columns_text(landing.lake._of_columns[TOPIC].columns or ()).endswith("_op string")
