"""Columns have the Arrow types that Parquet stores as Spark's."""

import pyarrow as pa
import pytest

from binwright.consumer.decode.arrow_types import row_type
from binwright.tables.columns import SIMPLE, parse_columns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bigint", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("decimal(5,2)", pa.decimal128(5, 2)),
        ("array<date>", pa.list_(pa.date32())),
        ("map<string,double>", pa.map_(pa.string(), pa.float64())),
        ("struct<`x-y`:int>", pa.struct([pa.field("x-y", pa.int32())])),
    ],
)
def test_a_column_has_its_arrow_type(text: str, expected: pa.DataType) -> None:
    assert row_type(parse_columns(f"a {text}")) == pa.struct([pa.field("a", expected)])


def test_each_simple_type_has_one_of_its_own() -> None:
    types = [row_type(parse_columns(f"a {name}")).field(0).type for name in sorted(SIMPLE)]
    assert len(set(types)) == len(SIMPLE)
