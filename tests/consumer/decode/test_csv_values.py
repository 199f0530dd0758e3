"""Lines of CSV become columns by position."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from binwright.consumer.decode.csv_values import CsvDecoder
from binwright.consumer.decode.one_by_one import Bad
from binwright.tables.columns import parse_columns

COLUMNS = parse_columns(
    "id BIGINT, ok BOOLEAN, ratio DOUBLE, price DECIMAL(9,2), name STRING, day DATE, at TIMESTAMP, "
    "content BINARY"
)
DECODER = CsvDecoder(COLUMNS, ",")
TWO = CsvDecoder(parse_columns("a TINYINT, b STRING"), ";")


def test_each_type_is_read_from_text() -> None:
    line = b'-7,True,1e-3,12.30,"a ""b"",\nc",2026-11-25,2026-11-25T10:00:00Z,AAEC\r\n'
    assert DECODER.read(line) == {
        "id": -7,
        "ok": True,
        "ratio": 0.001,
        "price": Decimal("12.30"),
        "name": 'a "b",\nc',
        "day": date(2026, 11, 25),
        "at": datetime(2026, 11, 25, 10, tzinfo=UTC),
        "content": b"\0\1\2",
    }


def test_an_empty_field_is_null_and_so_is_every_one_of_a_tombstone() -> None:
    assert TWO.read(b";") == {}
    assert TWO.read(b'"";x') == {"b": "x"}
    assert TWO.read(None) == {}


@pytest.mark.parametrize(
    ("line", "kind", "reason"),
    [
        (b"", "malformed", "needs 2 fields, has 0"),
        (b"1", "malformed", "needs 2 fields, has 1"),
        (b"1;2;3", "malformed", "needs 2 fields, has 3"),
        (b"1;2\n1;2", "malformed", "is no line of CSV: new-line character"),
        (b'1;"2', "malformed", "is no line of CSV: unexpected end of data"),
        (b'1;"2"3', "malformed", "is no line of CSV"),
        (b"1;\xff", "malformed", "is not UTF-8: invalid start byte at byte 2"),
        (b"128;x", "incompatible", "a needs tinyint, has the string '128'"),
        (b" 1;x", "incompatible", "a needs tinyint"),
        (b"1.0;x", "incompatible", "a needs tinyint"),
    ],
)
def test_what_does_not_fit_is_bad(line: bytes, kind: str, reason: str) -> None:
    found = TWO.read(line)
    assert isinstance(found, Bad)
    assert (found.kind, reason in found.reason) == (kind, True), found


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("DOUBLE", "1e400"),
        ("DOUBLE", "nan"),
        ("FLOAT", "1e39"),
        ("DECIMAL(9,2)", "1.234"),
        ("DECIMAL(9,2)", "1e999999999"),
        ("DECIMAL(9,2)", "1e99999999999999999999"),
        ("DECIMAL(9,2)", "-1e-99999999999999999999"),
        ("DECIMAL(9,2)", "0e99999999999999999999"),
        ("DECIMAL(9,2)", "0" * 1_001),
        ("DOUBLE", "1e99999999999999999999"),
        ("BOOLEAN", "1"),
        ("DATE", "25.11.2026"),
        ("TIMESTAMP", "now"),
        ("BINARY", "?"),
        ("INT", "2147483648"),
        ("BIGINT", "1" * 5_000),
    ],
)
def test_a_text_that_is_no_value_of_its_column_is_bad(kind: str, text: str) -> None:
    found = CsvDecoder(parse_columns(f"a {kind}"), ",").read(text.encode())
    assert isinstance(found, Bad)
    assert found.reason.startswith("a needs")


def test_a_byte_order_mark_is_no_part_of_a_line() -> None:
    assert TWO.read(b"\xef\xbb\xbf1;x") == {"a": 1, "b": "x"}
    assert TWO.read(b'\xef\xbb\xbf"1";"\xef\xbb\xbfx"') == {"a": 1, "b": "\ufeffx"}


def test_a_long_field_is_read() -> None:
    assert TWO.read(b"1;" + b"x" * 1_000_000) == {"a": 1, "b": "x" * 1_000_000}


def test_bad_lines_have_their_bytes_beside_the_rows() -> None:
    values: Any = pa.array([b"1;x", b"1", None], pa.binary())
    rows, bad = TWO.decode(values)
    assert rows.to_pylist() == [{"a": 1, "b": "x"}, None, {"a": None, "b": None}]
    assert [each and each["value"] for each in bad.to_pylist()] == [None, b"1", None]


def test_a_type_with_parts_is_no_field() -> None:
    with pytest.raises(TypeError, match="no field of CSV is array<int>"):
        CsvDecoder(parse_columns("a ARRAY<INT>"), ",")
