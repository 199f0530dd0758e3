"""Tables of columns of the tests of the lake, and staged files of decoded values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.stage.parquet import SCHEMA
from binwright.tables.columns import (
    Array,
    Columns,
    ColumnType,
    Decimal,
    Map,
    Struct,
    parse_columns,
)
from binwright.tables.ports import Batch, FileSlice, Table

TOPIC_ID = "topic-id"
COLUMNS = parse_columns(
    "id BIGINT, one STRUCT<a: INT, b: STRING>, list ARRAY<STRUCT<a: INT>>, "
    "map MAP<STRING, STRUCT<a: INT>>, price DECIMAL(10,2), at TIMESTAMP, day DATE"
)
ITEMS = Table("items", "g", "cluster-a", COLUMNS)
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
BAD = pa.struct([("value", pa.binary()), ("kind", pa.string()), ("reason", pa.string())])
_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """A staged record: with a value, or bad."""

    offset: int
    value: Mapping[str, Any] | None = None  # None: a bad record
    partition: int = 0
    at: datetime | None = None  # None: a second per offset from EPOCH
    timeless: bool = False
    size: int = 10  # bytes of a bad record

    def row(self) -> dict[str, Any]:
        at = self.at or EPOCH + timedelta(seconds=self.offset)
        bad = {"value": b"x" * self.size, "kind": "json", "reason": f"at {self.offset}"}
        return {
            "topic": "items",
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": None if self.timeless else at,
            "timestamp_type": 0,
            "key": b"k",
            "headers": [{"key": "h", "value": b"1"}],
            "row": self.value,
            "bad": bad if self.value is None else None,
        }


def arrow_type(of: ColumnType) -> pa.DataType:
    match of:
        case Struct(fields):
            return arrow_struct(fields)
        case Array(item):
            return pa.list_(arrow_type(item))
        case Map(value):
            return pa.map_(pa.string(), arrow_type(value))
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case _:
            return _TYPES[str(of)]


def arrow_struct(columns: Columns) -> pa.StructType:
    return pa.struct([(c.name, arrow_type(c.type)) for c in columns])


def stage_decoded(
    lake: Path,
    rows: Sequence[Decoded],
    columns: Columns = COLUMNS,
    name: str = "a.parquet",
    topic_id: str | None = TOPIC_ID,
) -> Batch:
    """Write a file; return the batch that is all of it."""
    schema = SCHEMA.remove(SCHEMA.get_field_index("value"))
    schema = schema.append(pa.field("row", arrow_struct(columns))).append(pa.field("bad", BAD))
    table = pa.Table.from_pylist([row.row() for row in rows], schema)
    pq.write_table(table, lake / "_staging" / "items" / name, compression="lz4")
    ranges = {
        p: (min(offsets), max(offsets) + 1)
        for p in {row.partition for row in rows}
        if (offsets := [row.offset for row in rows if row.partition == p])
    }
    return Batch(
        (FileSlice(name, ranges, whole=True, bytes=1_000, topic="items"),),
        rows=len(rows),
        topic_ids={"items": topic_id},
        columns=columns,
        bad=sum(row.value is None for row in rows),
    )


def landed(spark: SparkSession, lake: Path, table: str = "items") -> list[dict[str, Any]]:
    """Return all rows of a table, in order of partitions and offsets."""
    found = spark.read.format("delta").load(f"{lake}/{table}")
    rows: list[dict[str, Any]] = found.toArrow().to_pylist()
    return sorted(rows, key=lambda row: (row["_kafka"]["partition"], row["_kafka"]["offset"]))


def offsets(spark: SparkSession, lake: Path, table: str = "items") -> list[int]:
    return [row["_kafka"]["offset"] for row in landed(spark, lake, table)]


def bad_offsets(spark: SparkSession, lake: Path) -> list[int]:
    return offsets(spark, lake, "items__bad")


def schema_text(spark: SparkSession, lake: Path, table: str = "items") -> str:
    text: str = spark.table(f"delta.`{lake}/{table}`").schema.simpleString()
    return text
