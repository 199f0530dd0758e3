"""The Arrow types of columns, and of bad records."""

from typing import Any

import pyarrow as pa

from binwright.tables.columns import (
    JSON,
    VARIANT,
    Array,
    Columns,
    ColumnType,
    Decimal,
    Map,
    Simple,
)

_SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    VARIANT: pa.string(),  # as JSON
    JSON.name: pa.string(),
}
_BAD: list[tuple[str, pa.DataType]] = [
    ("value", pa.binary()),
    ("kind", pa.string()),
    ("reason", pa.string()),
]
BAD: pa.StructType = pa.struct(_BAD)
"""A value that could not be decoded, `malformed` or `incompatible`, and why."""


def arrow_type(kind: ColumnType) -> pa.DataType:
    """Return the Arrow type of a column's values."""
    match kind:
        case Simple(name):
            return _SIMPLE[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(item):
            return pa.list_(arrow_type(item))
        case Map(value):
            return pa.map_(pa.string(), arrow_type(value))
        case _:
            return row_type(kind.fields)


def row_type(columns: Columns) -> "pa.StructType":
    """Return the struct of these columns."""
    fields: list[pa.Field[Any]] = [pa.field(c.name, arrow_type(c.type)) for c in columns]
    return pa.struct(fields)
