"""Converts records to the columns of a table, in Arrow and in Spark types."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record

_HEADER: list[tuple[str, pa.DataType]] = [("key", pa.string()), ("value", pa.binary())]
_TYPES: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_type": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct(_HEADER)),
}
SCHEMA = pa.schema(_TYPES)
"""A table's columns in order of creation. The first four have statistics per file."""

COLUMNS = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestamp_type": "int",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
}
"""The same columns in Spark's types."""

LATEST_MS = 253_402_300_799_999  # the last millisecond of the year 9999


def to_arrow(rows: Mapping[TopicPartition, Sequence[Record]]) -> pa.Table:
    """Return one row per record, partition after partition, in order of offsets.

    A timestamp out of range is NULL, so that one record cannot stop a table: before 1970 (Kafka's
    -1 means none) or after the year 9999 (a producer sent nanoseconds instead of milliseconds).
    """
    batches = [_batch(p, records) for p, records in rows.items() if records]
    return pa.Table.from_batches(batches, schema=SCHEMA).combine_chunks()


def _batch(partition: TopicPartition, records: Sequence[Record]) -> pa.RecordBatch:
    count = len(records)
    columns: list[pa.Array[Any]] = [
        pa.repeat(pa.scalar(partition.topic, pa.string()), count),
        pa.repeat(pa.scalar(partition.partition, pa.int32()), count),
        pa.array([r.offset for r in records], pa.int64()),
        pa.array([_time_us(r.timestamp_ms) for r in records], pa.timestamp("us", "UTC")),
        pa.array([r.timestamp_type for r in records], pa.int32()),
        pa.array([r.key for r in records], pa.binary()),
        pa.array([r.value for r in records], pa.binary()),
        _headers([r.headers for r in records]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _time_us(ms: int) -> int | None:
    return ms * 1000 if 0 <= ms <= LATEST_MS else None


def _headers(given: list[tuple[tuple[str, bytes | None], ...]]) -> "pa.Array[Any]":
    ends = [0]
    for headers in given:
        ends.append(ends[-1] + len(headers))
    keys = pa.array([key for headers in given for key, _ in headers], pa.string())
    values = pa.array([value for headers in given for _, value in headers], pa.binary())
    items = pa.StructArray.from_arrays([keys, values], names=["key", "value"])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items)
