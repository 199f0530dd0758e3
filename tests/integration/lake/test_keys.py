"""Keys as columns, and records without a value, against a real Spark Connect server with Delta."""

import json
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.column_tables import landed, schema_text
from tests.integration.lake.tables import LEASE, new_lake, sql

from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.record_decoder import RecordDecoder
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.keeping import SKIPPED
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record, Records
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Batch, FileSlice, Footer, Table, ValueDecoder

pytestmark = pytest.mark.integration

TOPIC = "items"
_numbers = count()


def decoder(keys: str, tombstones: Any = "row") -> RecordDecoder:
    values = JsonDecoder(parse_columns("id INT"))
    return RecordDecoder(values, JsonDecoder(parse_columns(keys)), "json", tombstones)


async def staged(
    staging: FileStaging, of: ValueDecoder, *records: tuple[bytes | None, bytes | None], first: int
) -> tuple[Batch, Footer]:
    """Stage records; return the batch that is all of them, and what the file says of itself."""
    rows = [Record(first + n, 1_700_000_000_000, *each) for n, each in enumerate(records)]
    ranges, name = {0: (first, first + len(rows))}, f"{next(_numbers)}.parquet"
    given = {TopicPartition(TOPIC, 0): [Records.of(rows)]}
    size = await staging.write(TOPIC, name, given, Footer(None, len(rows), ranges), of)
    (footer,) = (await staging.footers(TOPIC, [name])).values()
    slices: Sequence[FileSlice] = [FileSlice(name, ranges, whole=True, bytes=size, topic=TOPIC)]
    batch = Batch(
        tuple(slices), rows=footer.rows, bytes=size, columns=footer.columns, bad=footer.bad
    )
    return batch, footer


@pytest.fixture
async def tables(lake: Path, spark_url: str, staging: FileStaging) -> AsyncIterator[SparkLake]:
    await staging.write_lease(TOPIC, LEASE)
    async with new_lake(lake, spark_url) as tables:
        yield tables


async def test_keys_land_as_a_column_whose_fields_grow_and_bad_ones_beside_the_table(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    of = decoder("k INT")
    table = Table(
        TOPIC, "g", "cluster-a", of.columns, cluster_by=("_kafka_key.k",), statistics=("id",)
    )
    await tables.open(table)
    batch, footer = await staged(
        staging, of, (b'{"k":1}', b'{"id":1}'), (None, b"{}"), (b"no", b'{"id":2}'), first=0
    )
    assert (footer.rows, footer.bad, footer.skipped) == (3, 1, 0)
    await tables.append_bad(TOPIC, batch, LEASE, "bad")
    await tables.append(TOPIC, batch, LEASE, "stamp")
    more = decoder("k INT, more STRING")
    batch, _ = await staged(staging, more, (b'{"k":2,"more":"x"}', None), first=3)
    await tables.add_columns(TOPIC, more.columns)
    await tables.append(TOPIC, batch, LEASE, "stamp")

    assert "_kafka_key:struct<k:int,more:string>,id:int" in schema_text(spark, lake)
    assert [(row["_kafka_key"], row["id"]) for row in landed(spark, lake)] == [
        ({"k": 1, "more": None}, 1),
        (None, None),
        ({"k": 2, "more": "x"}, None),
    ]
    (bad,) = landed(spark, lake, "items__bad")
    assert (bad["kind"], bad["value"], bad["_kafka"]["key"]) == (
        "key_malformed",
        b'{"id":2}',
        b"no",
    )
    log = (lake / TOPIC / "_delta_log").glob("*.json")
    adds = [json.loads(line).get("add") for file in log for line in file.read_text().splitlines()]
    stats = [json.loads(add["stats"])["minValues"] for add in adds if add]
    assert {each["_kafka_key"]["k"] for each in stats} == {1, 2}
    assert (await tables.compact(TOPIC)).added == 1


async def test_tombstones_are_skipped_and_a_property_has_that(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    of = decoder("k INT", "skip")
    await tables.open(Table(TOPIC, "g", "cluster-a", of.columns, skips_tombstones=True))
    batch, footer = await staged(staging, of, (None, b'{"id":1}'), (b"no", None), first=0)
    assert (footer.rows, footer.bad, footer.skipped) == (1, 0, 1)
    await tables.append(TOPIC, batch, LEASE, "stamp")
    assert [row["id"] for row in landed(spark, lake)] == [1]
    _, footer = await staged(staging, of, (None, None), first=2)
    assert (footer.rows, footer.skipped, footer.ranges) == (0, 1, {0: (2, 3)})

    shown = spark.sql(f"SHOW TBLPROPERTIES delta.`{lake}/{TOPIC}`").collect()
    assert dict(map(tuple, shown))[SKIPPED] == "tombstones"


async def test_a_table_that_skips_from_now_on_gets_the_property(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    columns = parse_columns("id INT")
    for skips in (False, True, False):
        await tables.open(Table(TOPIC, "g", "cluster-a", columns, skips_tombstones=skips))
    shown = spark.sql(f"SHOW TBLPROPERTIES delta.`{lake}/{TOPIC}`").collect()
    assert dict(map(tuple, shown))[SKIPPED] == "tombstones"
    sql(spark, f"SELECT * FROM delta.`{lake}/{TOPIC}`")  # noqa: S608 - of the test
