"""Columns of any JSON, against a real Spark Connect server with Delta."""

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.tables import LEASE, new_lake

from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.new_fields import KeptFields
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record, Records
from binwright.tables.columns import Columns, parse_columns
from binwright.tables.ports import Batch, FileSlice, Footer, Table, ValueDecoder

pytestmark = pytest.mark.integration

TOPIC = "items"
WHOLE, BESIDE = parse_columns("value VARIANT"), parse_columns("id BIGINT, more VARIANT")
TEXTS = 4_000  # of the comparison with Spark
PIECES = (
    *('"', "\\", "{", "}", "[", "]", ",", ":", " ", "\n", "\t", "0", "1", "-", "+", ".", "e", "E"),
    *("null", "true", "false", "NaN", "Infinity", "1e400", "-0", "1e-400", "0.1", "01", ".5", "5."),
    *('"a"', '"a":', '"a":1', '{"a":1,"a":2}', "[[]]", '"\\ud800"', '"\\u0000"', '"é"', '"\\/"'),
    *(
        "9" * 19,
        "9" * 38,
        "9" * 39,
        "9" * 300,
        "0." + "1" * 40,
        "1." + "0" * 60,
        "1e38",
        "//",
        "'a'",
    ),
)


@pytest.fixture
async def tables(lake: Path, spark_url: str, staging: FileStaging) -> AsyncIterator[SparkLake]:
    await staging.write_lease(TOPIC, LEASE)
    async with new_lake(lake, spark_url) as tables:
        yield tables


async def land(
    tables: SparkLake, staging: FileStaging, decoder: ValueDecoder, *values: bytes | None
) -> None:
    """Open the table, and append these values, from offset 0 on."""
    await tables.open(Table(TOPIC, "g", "cluster-a", decoder.columns))
    records = Records.of(Record(n, 1_700_000_000_000, None, v) for n, v in enumerate(values))
    ranges = {0: (0, len(values))}
    rows, footer = {TopicPartition(TOPIC, 0): [records]}, Footer(None, len(values), ranges)
    name = f"{random.randrange(10**9)}.parquet"
    size = await staging.write(TOPIC, name, rows, footer, decoder)
    (written,) = (await staging.footers(TOPIC, [name])).values()
    batch = Batch(
        (FileSlice(name, ranges, whole=True, bytes=size, topic=TOPIC),),
        rows=len(values),
        bytes=size,
        columns=written.columns,
        bad=written.bad,
    )
    await tables.append(TOPIC, batch, LEASE, "stamp")


def values_of(spark: SparkSession, lake: Path, expression: str) -> list[Any]:
    frame = spark.read.format("delta").load(f"{lake}/{TOPIC}").orderBy("_kafka.offset")
    return [row[0] for row in frame.selectExpr(expression).collect()]


async def test_json_of_any_shape_lands_and_is_queried_by_path(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    values = [
        b'{"a": {"b": [1, 2.50]}, "c": "x"}',
        b"[7]",
        b'"text"',
        b"null",
        None,
        b'{"a":1,"a":2}',
    ]
    await land(tables, staging, VariantDecoder(WHOLE), *values)

    assert values_of(spark, lake, "to_json(value)") == [
        '{"a":{"b":[1,2.5]},"c":"x"}',
        "[7]",
        '"text"',
        "null",
        None,
        '{"a":2}',
    ]
    found = values_of(spark, lake, "variant_get(value, '$.a.b[1]', 'DECIMAL(9,2)')")
    assert [str(each) for each in found] == ["2.50", *["None"] * 5]
    # What query.md says of other readers.
    (encoded, *_) = deltalake.DeltaTable(f"{lake}/{TOPIC}").to_pyarrow_table()["value"].to_pylist()
    assert encoded is not None
    assert encoded.keys() == {"metadata", "value"}
    with pytest.raises(pl.exceptions.ComputeError):
        pl.scan_delta(f"{lake}/{TOPIC}").collect()


async def test_a_variant_stands_beside_other_columns_and_is_added_like_them(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    await land(tables, staging, JsonDecoder(parse_columns("id BIGINT")), b'{"id": 1}')
    value = b'{"id": 2, "more": {"x": [1.10, {"y": null}]}}'
    await land(tables, staging, JsonDecoder(BESIDE), value, b"no JSON", b'{"id": 3}')

    found = sorted(values_of(spark, lake, "to_json(struct(id, more))"))
    assert [json.loads(each) for each in found] == [
        {"id": 1},
        {"id": 2, "more": {"x": [1.1, {"y": None}]}},
        {"id": 3},
    ]
    assert (await tables.compact(TOPIC)).added == 1


async def test_a_negative_zero_keeps_its_sign_and_fields_without_a_column_land_as_json(
    tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    columns = parse_columns("more VARIANT, by STRUCT<n: INT>")
    value = b'{"more": [-0.0, 0.0, -0.5], "by": {"n": 1, "p": 1.10}, "z": 12345678901234567890123}'
    decoder = JsonDecoder(columns, KeptFields(columns))
    await land(tables, staging, decoder, value, b'{"by": {"n": 2}}', None)

    assert values_of(spark, lake, "to_json(more)") == ["[-0.0,0,-0.5]", None, None]
    rest = '{"z":12345678901234567890123,"by":{"p":1.10}}'
    assert values_of(spark, lake, "_rest") == [rest, None, None]


def texts(seed: int) -> list[bytes]:
    """Return texts of which some are JSON, and many are nearly."""
    chance = random.Random(seed)
    found = []
    for _ in range(TEXTS):
        pieces = chance.choices(PIECES, k=chance.randint(1, 4))
        found.append(
            chance.choice(["{}", '{{"k":{}}}', "[{}]", "[1,{},2]"]).format("".join(pieces))
        )
    return [text.encode() for text in found]


@pytest.mark.parametrize("columns", [WHOLE, BESIDE])
async def test_spark_parses_all_that_is_staged(columns: Columns, spark: SparkSession) -> None:
    given = texts(7)
    if columns == WHOLE:
        rows, _ = VariantDecoder(WHOLE).decode(pa.array(given, pa.binary()))
        staged = [row["value"] for row in rows.to_pylist() if row is not None]
    else:
        inside = [b'{"more":' + text + b"}" for text in given]
        rows, _ = JsonDecoder(BESIDE).decode(pa.array(inside, pa.binary()))
        staged = [row["more"] for row in rows.to_pylist() if row and row["more"] is not None]
    assert len(staged) > TEXTS // 20
    frame = spark.createDataFrame(pa.table({"text": staged}))
    spark.conf.set("spark.sql.variant.allowDuplicateKeys", "true")
    try:
        refused = frame.where("try_parse_json(text) IS NULL").collect()
    finally:
        spark.conf.unset("spark.sql.variant.allowDuplicateKeys")
    assert [row.text for row in refused] == []
