"""One JSON value is read strictly into its columns: what does not fit is bad, and says why."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from binwright.consumer.decode.json_records import MOST_NESTED, RecordReader
from binwright.consumer.decode.one_by_one import PATH_LENGTH, REASON_LENGTH, Bad
from binwright.tables.columns import DEEPEST, parse_columns


def read(kind: str, text: str) -> Any:
    """Return column `a` as Arrow stores it, or what is wrong."""
    reader = RecordReader(parse_columns(f"a {kind}"))
    found = reader.read(f'{{"a": {text}}}'.encode())
    if isinstance(found, Bad):
        return found
    stored: pa.Array[Any] = pa.array([found], reader.type)
    return stored[0].as_py()["a"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("tinyint", "-128", -128),
        ("smallint", "32767", 32767),
        ("int", "-2147483648", -(2**31)),
        ("bigint", "9223372036854775807", 2**63 - 1),
        ("bigint", "-0", 0),
        ("tinyint", "1.0", 1),
        ("int", "1e2", 100),
        ("int", "-12.50e1", -125),
        ("int", "-0.0", 0),
        ("int", "0e999999999", 0),
        ("bigint", "9223372036854775807.000", 2**63 - 1),
        ("bigint", "9007199254740993.0", 2**53 + 1),
        ("array<int>", "[1, 2.0, null]", [1, 2, None]),
        ("double", "5", 5.0),
        ("double", "1e-400", 0.0),
        ("double", "123456789012345678901234567890", 123456789012345678901234567890.0),
        ("float", "0.5", 0.5),
        ("float", "3.4028235e38", 3.4028234663852886e38),
        ("decimal(5,2)", "1", Decimal("1.00")),
        ("decimal(5,2)", "999.990", Decimal("999.99")),
        ("decimal(5,2)", "-1e2", Decimal("-100.00")),
        ("decimal(5,2)", "0e999", Decimal("0.00")),
        ("decimal(5,2)", '"0.10"', Decimal("0.10")),
        ("decimal(5,2)", '"+.5e1"', Decimal("5.00")),
        ("decimal(38,20)", "0.10000000000000000555", Decimal("0.10000000000000000555")),
        ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
        ("string", '"\\u00e9\\ud83d\\ude00\\u0000"', "é😀\0"),
        ("string", '""', ""),
        ("binary", '"AP8="', b"\x00\xff"),
        ("binary", '""', b""),
        ("date", '"2024-02-29"', date(2024, 2, 29)),
        ("date", '"0001-01-01"', date(1, 1, 1)),
        ("array<int>", "[1, null, 3]", [1, None, 3]),
        ("array<array<int>>", "[[], null, [1]]", [[], None, [1]]),
        ("map<string,int>", '{"x": 1, "y": null, "x": 2}', [("x", 2), ("y", None)]),
        ("struct<b:int,c:string>", '{"b": 1, "d": 7}', {"b": 1, "c": None}),
        ("struct<b:struct<c:int>>", '{"b": {}}', {"b": {"c": None}}),
    ],
)
def test_a_value_that_fits_is_read(kind: str, text: str, value: object) -> None:
    assert read(kind, text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-11-23T10:11:12Z", datetime(2026, 11, 23, 10, 11, 12, tzinfo=UTC)),
        ("2026-11-23 10:11:12", datetime(2026, 11, 23, 10, 11, 12, tzinfo=UTC)),
        ("2026-11-23T10:11+01:30", datetime(2026, 11, 23, 8, 41, tzinfo=UTC)),
        ("2026-11-23T10:11:12.5-0200", datetime(2026, 11, 23, 12, 11, 12, 500_000, UTC)),
        ("2026-11-23T10:11:12.123456999-02", datetime(2026, 11, 23, 12, 11, 12, 123_456, UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.9999999Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)),
        ("2026-11-23t10:11:12.5z", datetime(2026, 11, 23, 10, 11, 12, 500_000, UTC)),
        ("2026-11-23 10:11:12,250", datetime(2026, 11, 23, 10, 11, 12, 250_000, UTC)),
        ("2026-11-23 10:11:12 UTC", datetime(2026, 11, 23, 10, 11, 12, tzinfo=UTC)),
        ("2026-11-23 10:11:12 +0000", datetime(2026, 11, 23, 10, 11, 12, tzinfo=UTC)),
        ("2026-11-23 10:11:12 -0230 NDT", datetime(2026, 11, 23, 12, 41, 12, tzinfo=UTC)),
        ("2026-11-23T10:11:12+01:00[Europe/Berlin]", datetime(2026, 11, 23, 9, 11, 12, tzinfo=UTC)),
        ("2026-11-23T10:11:12Z[Etc/GMT+1]", datetime(2026, 11, 23, 10, 11, 12, tzinfo=UTC)),
        ("1890-01-01T00:00:00+00:53:28", datetime(1889, 12, 31, 23, 6, 32, tzinfo=UTC)),
        ("2026-11-23", datetime(2026, 11, 23, tzinfo=UTC)),
        ("2016-12-31T23:59:60.5Z", datetime(2017, 1, 1, 0, 0, 0, 500_000, UTC)),
        ("2017-01-01T00:59:60+01:00", datetime(2017, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_timestamp_is_read_in_utc_and_cut_to_microseconds(text: str, value: datetime) -> None:
    assert read("timestamp", f'"{text}"') == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("boolean", "1", "a needs boolean, has 1"),
        ("boolean", '"true"', "a needs boolean, has the string 'true'"),
        ("tinyint", "128", "a needs tinyint, has 128"),
        ("int", "1.5", "a needs int, has 1.5"),
        ("int", "15e-1", "a needs int, has 15e-1"),
        ("tinyint", "1.28e2", "a needs tinyint, has 1.28e2"),
        ("bigint", "1e-400", "a needs bigint, has 1e-400"),
        ("bigint", "1e19", "a needs bigint, has 1e19"),
        ("bigint", "9007199254740992.5", "a needs bigint, has 9007199254740992.5"),
        ("bigint", "9223372036854775808.0", "a needs bigint, has 9223372036854775808.0"),
        ("bigint", "1.00000000000000000001", "a needs bigint, has 1.00000000000000000001"),
        ("bigint", "1e308", "a needs bigint, has 1e308"),
        ("bigint", "0." + "0" * 1000 + "1", "a needs bigint, has 0.000"),
        ("int", '"1.0"', "a needs int, has the string '1.0'"),
        ("int", "true", "a needs int, has true"),
        ("int", "[]", "a needs int, has an array"),
        ("bigint", "9223372036854775808", "a needs bigint, has 9223372036854775808"),
        ("bigint", "-9223372036854775809", "a needs bigint, has -9223372036854775809"),
        ("double", '"1"', "a needs double, has the string '1'"),
        ("double", "true", "a needs double, has true"),
        ("float", "3.4028236e38", "a needs float, has 3.4028236e38"),
        ("float", "false", "a needs float, has false"),
        ("decimal(5,2)", "0.001", "a needs decimal(5,2), has 0.001"),
        ("decimal(5,2)", "1000", "a needs decimal(5,2), has 1000"),
        ("decimal(5,2)", "1e-99999999999999999999", "a needs decimal(5,2), has 1e-999999"),
        ("decimal(5,2)", "true", "a needs decimal(5,2), has true"),
        ("decimal(5,2)", '"1e99999999999999999999"', "a needs decimal(5,2), has the string '1e9"),
        ("decimal(5,2)", '" 1"', "a needs decimal(5,2), has the string ' 1'"),
        ("decimal(5,2)", '"NaN"', "a needs decimal(5,2), has the string 'NaN'"),
        ("decimal(5,2)", '"1_0"', "a needs decimal(5,2), has the string '1_0'"),
        ("decimal(5,2)", '"٣"', "a needs decimal(5,2), has the string '٣'"),
        ("decimal(2,1)", "0." + "1" * 300, "a needs decimal(2,1), has 0.1111"),
        ("decimal(2,1)", "1" * 300, "a needs decimal(2,1), has 111"),
        ("string", "5", "a needs string, has 5"),
        ("string", "{}", "a needs string, has an object"),
        ("binary", '"A"', "a needs binary as base64, has the string 'A'"),
        ("binary", '"AP8=\\n"', "a needs binary as base64, has the string 'AP8=\\n'"),
        ("binary", '"é"', "a needs binary as base64, has the string 'é'"),
        ("binary", "5", "a needs binary as base64, has 5"),
        ("date", '"2023-02-29"', "a needs a date YYYY-MM-DD, has the string '2023-02-29'"),
        ("date", '"20230228"', "a needs a date YYYY-MM-DD, has the string '20230228'"),
        ("date", '"2023-W01-1"', "a needs a date YYYY-MM-DD, has the string"),
        ("date", '"0000-01-01"', "a needs a date"),
        ("date", "19000", "a needs a date YYYY-MM-DD, has 19000"),
        ("timestamp", "1795000000000", "a needs a timestamp of ISO 8601, has 1795000000000"),
        ("timestamp", '"2026-11-23T"', "a needs a timestamp"),
        ("timestamp", '"2026-11-23Z"', "a needs a timestamp"),
        ("timestamp", '"2026-11-23T10:11:12[Europe/Berlin]"', "a needs a timestamp"),
        ("timestamp", '"2026-11-23T10:11:12+01:00[Europe/Berlin"', "a needs a timestamp"),
        ("timestamp", '"2026-11-23T10:11:12 CET"', "a needs a timestamp"),
        ("timestamp", '"9999-12-31T23:59:60Z"', "a needs a timestamp"),
        ("timestamp", '"2026-11-23T24:00:00Z"', "a needs a timestamp"),
        ("timestamp", '"2026-11-23T10:11:61Z"', "a needs a timestamp"),
        ("timestamp", '"2026-02-30T10:11:12Z"', "a needs a timestamp"),
        ("timestamp", '"0001-01-01T00:00:00+01:00"', "a needs a timestamp"),
        ("timestamp", '"2026-11-23T10:11:12Z\\n"', "a needs a timestamp"),
        ("array<int>", "{}", "a needs an array, has an object"),
        ("array<int>", '[1, null, "x"]', "a[2] needs int, has the string 'x'"),
        ("map<string,int>", "[]", "a needs an object, has an array"),
        ("map<string,int>", '{"k": 1.5}', "a.k needs int, has 1.5"),
        ("struct<b:int>", '"x"', "a needs an object, has the string 'x'"),
        ("array<struct<price:double>>", '[{}, {"price": "1"}]', "a[1].price needs double, has"),
    ],
)
def test_a_value_that_does_not_fit_is_incompatible(kind: str, text: str, reason: str) -> None:
    bad = read(kind, text)
    assert bad.kind == "incompatible"
    assert bad.reason.startswith(reason)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "zero-length"),
        (b" ", "is empty"),
        (b"plain", "unexpected character"),
        (b'{"a": 1', "unexpected end"),
        (b'{"a": 1}x', "unexpected content"),
        (b'{"a": 1}{"a": 1}', "unexpected content"),
        (b'{"a": 1}\x00', "unexpected content"),
        (b'\xef\xbb\xbf\xef\xbb\xbf{"a": 1}', "byte order mark"),
        (b"\xef\xbb\xbf", "zero-length"),
        (b'{"a": "\xef\xbb\xbf"}\xef\xbb\xbf', "unexpected content"),
        (b'{"a": NaN}', "unexpected character"),
        (b'{"a": 1e400}', "infinity"),
        (b'{"b": "\xff"}', "UTF-8"),
        (b'{"b": "\\ud800"}', "surrogate"),
        (b'{"b": "\n"}', "control character"),
        (b"[]", "needs an object, has an array"),
        (b"7", "needs an object, has 7"),
        (b"null", "needs an object, has null"),
        (b"true", "needs an object, has true"),
        (b'"%s"' % (b"\x7f" * 5000), "needs an object, has the string"),
        (b'{"b": ' + b"[" * 600 + b"]" * 600 + b"}", "nested more than 500 deep"),
        (b'{"b": ' + b'{"b":' * 600 + b"1" + b"}" * 601, "nested more than 500 deep"),
        (b'{"b": ' + b"[" * 3_000_000, ""),
        (b'{"b": ' + b"[" * 3_000_000 + b"]" * 3_000_000 + b"}", ""),
    ],
)
@pytest.mark.parametrize("columns", ["a int", "a decimal(5,2)"])
def test_a_value_that_is_not_one_json_object_is_malformed(
    value: bytes, reason: str, columns: str
) -> None:
    bad = RecordReader(parse_columns(columns), most_bytes=1 << 30).read(value)
    assert isinstance(bad, Bad)
    assert bad.kind == "malformed"
    assert reason in bad.reason
    assert len(bad.reason) <= REASON_LENGTH


@pytest.mark.parametrize("columns", ["a int", "a decimal(5,2)"])
def test_what_is_not_asked_for_may_be_nested_and_long(columns: str) -> None:
    reader = RecordReader(parse_columns(columns))
    inner = MOST_NESTED - 1
    assert reader.read(b'{"a": 1, "b": ' + b"[" * inner + b"]" * inner + b"}") == {"a": 1}
    assert reader.read(b'{"a": 1, "b": ' + b"9" * 300 + b"}") == {"a": 1}
    assert reader.read(b'{"a": 1, "b": "' + b"[" * 10_000 + b'"}') == {"a": 1}


def test_missing_fields_and_nulls_are_null_and_names_match_exactly() -> None:
    reader = RecordReader(parse_columns("a int, B int"))
    assert reader.read(b'{"a": null, "b": 1, "A": "x"}') == {}
    assert reader.read(b' {"\\u0061": 1, "a": 2, "B": 3}\n') == {"a": 2, "B": 3}


def test_a_byte_order_mark_is_no_part_of_a_value() -> None:
    for columns in ("a int", "a decimal(5,2)"):
        assert RecordReader(parse_columns(columns)).read(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_a_tombstone_has_no_fields() -> None:
    assert RecordReader(parse_columns("a int")).read(None) == {}


def test_a_reason_is_short_whatever_the_value_is() -> None:
    names = [f"{i:02d}{'x' * 60}" for i in range(DEEPEST)]
    kind = "".join(f"struct<{name}:" for name in names) + "int" + ">" * len(names)
    text = "".join(f'{{"{name}":' for name in names) + f'"{chr(0x7F) * 900}"' + "}" * len(names)
    bad = read(kind, text)
    assert len(bad.reason) <= REASON_LENGTH
    assert bad.reason.startswith(f"a.{names[0]}"[: PATH_LENGTH // 2 - 1])
    assert f"{'x' * 40} needs int, has the string" in bad.reason
