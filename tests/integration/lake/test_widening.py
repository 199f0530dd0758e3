"""Columns that become wider, against a real Spark Connect server with Delta."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession
from structlog.testing import capture_logs
from tests.integration.lake.tables import LEASE, new_lake, sql
from tests.integration.lake.test_keys import TOPIC, staged

from binwright.consumer.decide.columns import united
from binwright.consumer.decide.widening import widens
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import TableRefused
from binwright.tables.columns import parse_columns, parse_type
from binwright.tables.ports import Batch, Table

pytestmark = pytest.mark.integration

NARROW = parse_columns(
    "id INT, f FLOAT, d DECIMAL(9,2), s STRUCT<x: SMALLINT>, l ARRAY<STRUCT<y: INT>>, "
    "m MAP<STRING, INT>"
)
WIDE = parse_columns(
    "id BIGINT, f DOUBLE, d DECIMAL(12,3), s STRUCT<x: BIGINT>, l ARRAY<STRUCT<y: DOUBLE>>, "
    "m MAP<STRING, DECIMAL(12,0)>"
)
OLD = b'{"id":1,"f":0.5,"d":1.25,"s":{"x":2},"l":[{"y":3}],"m":{"k":4}}'
NEW = b'{"id":4294967296,"f":0.1,"d":1.125,"s":{"x":4294967296},"l":[{"y":0.5}],"m":{"k":5}}'
ROWS: list[Any] = [
    (1, 0.5, "1.250", 2, 3.0, "4"),
    (1 << 32, 0.1, "1.125", 1 << 32, 0.5, "5"),
    (1, 0.5, "1.250", 2, 3.0, "4"),
]
TABLE = Table(TOPIC, "g", "cluster-a", NARROW, widen=True)
KINDS = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "string", "date", "timestamp"),
    *("decimal(10,0)", "decimal(12,2)", "decimal(20,0)"),
)


@pytest.fixture
async def tables(lake: Path, spark_url: str, staging: FileStaging) -> AsyncIterator[SparkLake]:
    await staging.write_lease(TOPIC, LEASE)
    async with new_lake(lake, spark_url) as tables:
        yield tables


def rows(spark: SparkSession, lake: Path) -> list[Any]:
    frame = spark.read.format("delta").load(f"{lake}/{TOPIC}").orderBy("_kafka.offset")
    parts = ("id", "f", "CAST(d AS STRING)", "s.x", "l[0].y", "CAST(m['k'] AS STRING)")
    return [tuple(row) for row in frame.selectExpr(*parts).collect()]


async def test_columns_and_fields_become_wider_and_all_rows_stay(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    await tables.open(TABLE)
    narrow, _ = await staged(staging, JsonDecoder(NARROW), (None, OLD), first=0)
    await tables.append(TOPIC, narrow, LEASE, "stamp")
    with capture_logs() as logged:
        await tables.add_columns(TOPIC, WIDE)
    (event,) = [each for each in logged if each["event"] == "table.widened"]
    assert "id bigint (there: int)" in event["columns"]
    wide, _ = await staged(staging, JsonDecoder(WIDE), (None, NEW), first=1)
    late, _ = await staged(staging, JsonDecoder(NARROW), (None, OLD), first=2)
    await tables.add_columns(TOPIC, NARROW)  # of a consumer that has not got the settings yet
    both = Batch((*wide.slices, *late.slices), rows=2, columns=united(WIDE, NARROW, widen=True))
    await tables.append(TOPIC, both, LEASE, "stamp")
    assert rows(spark, lake) == ROWS
    await tables.append(TOPIC, replace(late, columns=NARROW), LEASE, "stamp")
    assert rows(spark, lake) == [*ROWS, ROWS[0]]

    assert (await tables.compact(TOPIC)).added == 1
    assert rows(spark, lake) == [*ROWS, ROWS[0]]
    before = sorted((lake / TOPIC / "_delta_log").glob("*.json"))
    await tables.open(replace(TABLE, columns=WIDE))
    assert sorted((lake / TOPIC / "_delta_log").glob("*.json")) == before


async def test_no_value_is_cut_to_a_narrower_column(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    await tables.open(replace(TABLE, widen=False))
    with pytest.raises(TableRefused, match=r"id bigint \(there: int\).*set `widen`"):
        await tables.add_columns(TOPIC, WIDE)
    await tables.open(TABLE)
    with pytest.raises(TableRefused, match=r"id string \(there: int\)"):
        await tables.add_columns(TOPIC, parse_columns("id STRING, more INT"))
    shown = spark.sql(f"SHOW TBLPROPERTIES delta.`{lake}/{TOPIC}`").collect()
    assert "delta.enableTypeWidening" not in dict(map(tuple, shown))


def test_delta_widens_the_same_pairs_and_no_others(spark: SparkSession, lake: Path) -> None:
    path = f"delta.`{lake}/pairs`"
    pairs = [*permutations(KINDS, 2)]
    columns = ", ".join(f"c{n} {there}" for n, (there, _) in enumerate(pairs))
    sql(
        spark,
        f"CREATE TABLE {path} ({columns}) USING delta "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
    )
    taken = [n for n, pair in enumerate(pairs) if widens(*map(parse_type, pair))]
    types = ", ".join(f"c{n} TYPE {pairs[n][1]}" for n in taken)
    sql(spark, f"ALTER TABLE {path} ALTER COLUMN {types}")
    for n, (_, wanted) in enumerate(pairs):
        if n not in taken:
            with pytest.raises(PySparkException):
                sql(spark, f"ALTER TABLE {path} ALTER COLUMN c{n} TYPE {wanted}")
