"""Values are read by the schema that they were written with, and fit columns or are bad."""

import decimal
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.consumer.decode.avro import parsed, record, written

from binwright.consumer.decode.arrow_types import row_type
from binwright.consumer.decode.avro_records import record_reader
from binwright.consumer.decode.one_by_one import Bad
from binwright.tables.columns import parse_columns
from binwright.tables.schemas import SchemaRefused

DATE = {"type": "int", "logicalType": "date"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
POINT, TEXT = record(("x", "int"), name="P"), record(("s", "string"), name="T")
WIDE = PRICE | {"precision": 64}
FIXED_PRICE = {**PRICE, "type": "fixed", "name": "P", "size": 6}
AT = datetime(2026, 11, 23, 10, 11, 12, 345678, UTC)


def read(schema: Any, value: Any, columns: str = "") -> Any:
    """Return a value's row, or why it is bad."""
    known = parsed(schema)
    wanted = parse_columns(columns) if columns else known.columns
    found = record_reader(known, wanted)(written(schema, value))
    if isinstance(found, Bad):
        return found.kind, found.reason
    row = pa.array([found], row_type(wanted))
    row.validate(full=True)
    return row[0].as_py()


@pytest.mark.parametrize(
    ("kind", "value", "row"),
    [
        ("boolean", True, True),
        ("int", -(1 << 31), -(1 << 31)),
        ("long", (1 << 63) - 1, (1 << 63) - 1),
        ("float", 1.5, 1.5),
        ("double", 0.1, 0.1),
        ("bytes", b"\xff", b"\xff"),
        ("string", "ä", "ä"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"\x00\x01", b"\x00\x01"),
        (["null", "int"], None, None),
        (["null", "int"], 5, 5),
        ({"type": "array", "items": ["null", "long"]}, [1, None], [1, None]),
        ({"type": "array", "items": MILLIS}, [AT, AT], [AT.replace(microsecond=345000)] * 2),
        ({"type": "map", "values": ["null", "double"]}, {"k": 1.0, "z": None},
         [("k", 1.0), ("z", None)]),
        ({"type": "map", "values": DATE}, {"k": date(2026, 1, 2)}, [("k", date(2026, 1, 2))]),
        (record(("x", "int"), ("at", MICROS), name="I"), {"x": 1, "at": AT}, {"x": 1, "at": AT}),
        (DATE, date(1, 1, 1), date(1, 1, 1)),
        (DATE, date(9999, 12, 31), date(9999, 12, 31)),
        (MILLIS, AT, AT.replace(microsecond=345000)),
        (MICROS, AT, AT),
        (MICROS, datetime(1, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)),
        (PRICE, Decimal("-1234567.89"), Decimal("-1234567.89")),
        (FIXED_PRICE, Decimal("12.50"), Decimal("12.50")),
        ({"type": "int", "logicalType": "time-millis"}, 5, 5),
        ({"type": "string", "logicalType": "uuid"}, "f8d5b8e0-0000-4000-8000-000000000000",
         "f8d5b8e0-0000-4000-8000-000000000000"),
    ],
)  # fmt: skip
def test_each_type_is_read(kind: Any, value: Any, row: Any) -> None:
    assert read(record(("a", kind)), {"a": value}) == {"a": row}


def test_nanoseconds_are_cut_before_1970_too() -> None:
    schema, plain = record(("a", NANOS)), record(("a", "long"))
    reader = record_reader(parsed(schema), parse_columns("a timestamp"))
    assert reader(written(plain, {"a": 1_999})) == {"a": 1}
    assert reader(written(plain, {"a": -1_001})) == {"a": -2}


@pytest.mark.parametrize(
    ("kind", "column", "value", "row"),
    [
        ("int", "bigint", 5, 5),
        ("int", "double", 5, 5.0),
        ("long", "int", 5, 5),
        ("long", "tinyint", -128, -128),
        ("long", "double", 1 << 53, float(1 << 53)),
        ("float", "double", 1.5, 1.5),
        (PRICE, "decimal(20,4)", Decimal("1.25"), Decimal("1.2500")),
        (PRICE, "decimal(2,1)", Decimal("1.20"), Decimal("1.2")),
        (PRICE, "string", Decimal("-0.05"), "-0.05"),
        (PRICE, "binary", Decimal("1.25"), b"\x7d"),
        (["null", "int", "string"], "int", 5, 5),
        (["null", "int", "string"], "bigint", None, None),
        ([POINT, TEXT], "struct<p:struct<x:bigint>>", {"x": 5}, {"p": {"x": 5}}),
        ([POINT, TEXT], "struct<p:struct<x:bigint>>", {"s": "t"}, {"p": None}),
        (POINT, "string", {"x": 5}, '{"x":5}'),
        ({"type": "map", "values": "int"}, "string", {"k": 5}, '{"k":5}'),
    ],
)
def test_values_fit_columns_of_other_types_exactly(
    kind: Any, column: str, value: Any, row: Any
) -> None:
    assert read(record(("a", kind)), {"a": value}, f"a {column}") == {"a": row}


@pytest.mark.parametrize(
    ("kind", "column", "value", "reason"),
    [
        ("long", "int", 1 << 31, "a needs int, has 2147483648"),
        ("int", "tinyint", 128, "a needs tinyint, has 128"),
        ("long", "double", (1 << 53) + 1, "a needs double, has 9007199254740993"),
        (PRICE, "decimal(9,1)", Decimal("1.25"), "a needs decimal(9,1), has 1.25"),
        (PRICE, "decimal(3,2)", Decimal("12.25"), "a needs decimal(3,2), has 12.25"),
        ({"type": "array", "items": "long"}, "array<int>", [1, 1 << 40],
         "a[1] needs int, has 1099511627776"),
        ({"type": "map", "values": "long"}, "map<string,int>", {"k": 1 << 40},
         "a.k needs int, has 1099511627776"),
        (record(("b", "long"), name="I"), "struct<b:int>", {"b": 1 << 40},
         "a.b needs int, has 1099511627776"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_bad_by_its_place(
    kind: Any, column: str, value: Any, reason: str
) -> None:
    assert read(record(("a", kind)), {"a": value}, f"a {column}") == ("incompatible", reason)


@pytest.mark.parametrize(
    ("kind", "stored", "reason"),
    [
        (DATE, 2_932_897, "a needs date, has 2932897"),
        (DATE, -719_163, "a needs date, has -719163"),
        (MILLIS, (1 << 63) - 1, "a needs a timestamp of the years 1 to 9999, has 92233720"),
        (MICROS, -62_135_596_800_000_001, "a needs a timestamp of the years 1 to 9999, has"),
    ],
)  # fmt: skip
def test_a_moment_out_of_range_is_bad(kind: Any, stored: int, reason: str) -> None:
    plain = record(("a", kind["type"]))
    reader = record_reader(parsed(record(("a", kind))), parsed(record(("a", kind))).columns)
    found = reader(written(plain, {"a": stored}))
    assert isinstance(found, Bad)
    assert found.kind == "incompatible"
    assert found.reason.startswith(reason)


def test_a_decimal_of_many_bytes_is_bad() -> None:
    reader = record_reader(parsed(record(("a", PRICE))), parse_columns("a decimal(9,2)"))
    found = reader(written(record(("a", "bytes")), {"a": b"\x7f" * 100_000}))
    assert found == Bad("incompatible", "a needs decimal(9,2), has the string '100000 bytes'")


@pytest.mark.parametrize(
    ("kind", "column", "reason"),
    [
        ("string", "int", "a needs int, has string"),
        ("int", "string", "a needs string, has int"),
        ("double", "float", "a needs float, has double"),
        ("bytes", "string", "a needs string, has bytes"),
        (DATE, "int", "a needs int, has date"),
        (MILLIS, "bigint", "a needs bigint, has timestamp"),
        (MILLIS, "date", "a needs date, has timestamp"),
        ("long", "timestamp", "a needs timestamp, has long"),
        (PRICE, "double", r"a needs double, has decimal\(9,2\)"),
        ("bytes", "decimal(9,2)", r"a needs decimal\(9,2\), has bytes"),
        (["bytes", "string"], "int", "a needs int, has union"),
        (["null", "string"], "int", "a needs int, has string"),
        ({"type": "array", "items": "null"}, "string", "a needs string, has array"),
        ({"type": "array", "items": "null"}, "array<int>", "a needs array<int>, has array"),
        (LOCAL, "date", "a needs date, has long"),
        ([POINT, TEXT], "struct<P:struct<x:date>>", "a.P.x needs date, has int"),
        ({"type": "array", "items": "string"}, "array<int>", r"a\[\] needs int, has string"),
        ({"type": "map", "values": "string"}, "map<string,int>", r"a\[\] needs int, has string"),
        (record(("b", "string"), name="I"), "struct<b:int>", "a.b needs int, has string"),
        (record(("b", "string"), name="I"), "int", "a needs int, has record"),
    ],
)
def test_a_schema_that_never_fits_is_refused_by_the_field(
    kind: Any, column: str, reason: str
) -> None:
    with pytest.raises(SchemaRefused, match=rf"^{reason}$"):
        record_reader(parsed(record(("a", kind))), parse_columns(f"a {column}"))


def test_columns_choose_fields_whatever_their_case_and_others_are_null() -> None:
    schema = record(("Id", "int"), ("more", ["int", "string"]), ("n", "null"))
    value = {"Id": 5, "more": "x", "n": None}
    assert read(schema, value, "id int, n string, z double") == {"id": 5, "n": None, "z": None}


def test_a_name_of_the_same_case_comes_first() -> None:
    schema = record(("id", "int"), ("ID", "int"))
    assert read(schema, {"id": 1, "ID": 2}, "ID int") == {"ID": 2}
    assert read(schema, {"id": 1, "ID": 2}, "id int") == {"id": 1}


ORDER = record(
    ("id", "long"),
    ("item", ["null", "string"]),
    ("kind", {"type": "enum", "name": "K", "symbols": ["A", "B"]}),
    ("tags", {"type": "array", "items": "string"}),
    ("at", MILLIS),
    ("m", {"type": "map", "values": record(("p", PRICE), name="I")}),
)
GOOD = {
    "id": 1, "item": "tea", "kind": "B", "tags": ["x", "y"], "at": AT,
    "m": {"k": {"p": Decimal("1.25")}},
}  # fmt: skip


TREE = record(
    ("id", "long"),
    ("next", ["null", "Tree"]),
    ("at", {"type": "array", "items": "Tree"}),
    name="Tree",
)


def test_a_type_within_itself_is_text_of_json_and_may_be_left_out() -> None:
    leaf: Any = {"id": 2, "next": None, "at": []}
    value = {"id": 1, "next": leaf, "at": [leaf, {"id": 3, "next": leaf, "at": []}]}
    text = '{"id":2,"next":null,"at":[]}'
    assert read(TREE, value) == {
        "id": 1,
        "next": text,
        "at": [text, '{"id":3,"next":{"id":2,"next":null,"at":[]},"at":[]}'],
    }
    assert read(TREE, value, "id BIGINT") == {"id": 1}
    assert read(TREE, value, "next STRUCT<next: STRING, id: INT>, at STRING") == {
        "next": {"next": None, "id": 2},
        "at": f'[{text},{{"id":3,"next":{text},"at":[]}}]',
    }


@pytest.mark.parametrize("columns", ["", "id BIGINT"])
@pytest.mark.parametrize("depth", [300, 1_000_000])
def test_a_value_that_is_nested_too_deep_is_one_bad_record(depth: int, columns: str) -> None:
    schema = parsed(TREE)
    wanted = parse_columns(columns) if columns else schema.columns
    body = b"\x02\x02" * depth + b"\x02\x00" + b"\x00" * (depth + 1)
    found = record_reader(schema, wanted)(b"\x00\x00\x00\x00\x07" + body)
    assert isinstance(found, Bad) or (columns, depth) == ("id BIGINT", 300)


@pytest.mark.parametrize(
    ("branches", "value", "text"),
    [
        (["null", "string", "boolean"], None, None),
        (["null", "string", "boolean"], "ok", '"ok"'),
        (["null", "string", "boolean"], True, "true"),
        (["int", "double", "string"], 5, "5"),
        (["int", "double", "string"], float("-inf"), '"-Infinity"'),
        (["double", "string"], float("nan"), '"NaN"'),
        (["string", "bytes"], "YQ==", '{"string":"YQ=="}'),
        (["string", "bytes"], b"a", '{"bytes":"YQ=="}'),
        (["string", {"type": "array", "items": "bytes"}], [b"a"], '["YQ=="]'),
        ([POINT, TEXT, "int"], ("T", {"s": "x"}), '{"T":{"s":"x"}}'),
        ([POINT, TEXT, "int"], 5, '{"int":5}'),
        ([POINT, "int"], {"x": 5}, '{"x":5}'),
        ([MILLIS, "int"], AT.replace(microsecond=0), '{"long":1795428672000}'),
        ([PRICE, "string"], Decimal("1.50"), "1.50"),
        ([PRICE, "int", "string"], 7, "7"),
    ],
)
def test_a_union_of_several_types_is_json(branches: Any, value: Any, text: Any) -> None:
    """A branch that JSON does not tell from another has its name."""
    assert read(record(("a", branches)), {"a": value}) == {"a": text}


def test_a_union_of_numbers_is_the_widest_of_them() -> None:
    assert read(record(("a", ["null", "int", "long"])), {"a": 1 << 40}) == {"a": 1 << 40}
    assert read(record(("a", ["int", "double"])), {"a": 1.5}) == {"a": 1.5}
    reason = "a needs double, has 9007199254740993"
    assert read(record(("a", ["long", "double"])), {"a": (1 << 53) + 1}) == ("incompatible", reason)


def test_a_branch_that_does_not_fit_is_bad_by_itself() -> None:
    schema = record(("a", ["null", "int", "string"]))
    assert read(schema, {"a": "x"}, "a INT") == ("incompatible", "a needs int, has string")


def test_a_union_of_records_has_a_struct_for_each() -> None:
    schema = record(("a", ["null", POINT, record(name="Empty")]))
    assert read(schema, {"a": ("P", {"x": 5})}) == {"a": {"P": {"x": 5}, "Empty": None}}
    assert read(schema, {"a": ("Empty", {})}) == {"a": {"P": None, "Empty": {"_present": True}}}
    assert read(schema, {"a": None}) == {"a": None}
    assert read([POINT, TEXT], ("T", {"s": "x"})) == {"P": None, "T": {"s": "x"}}
    assert read(["null", POINT, TEXT], None) == {"P": None, "T": None}
    assert read([POINT, TEXT], ("P", {"x": 5}), "t STRUCT<s: STRING>") == {"t": None}


def test_an_empty_record_that_may_be_absent_states_whether_it_is_there() -> None:
    schema = record(("a", ["null", record(name="Empty")]))
    assert read(schema, {"a": {}}) == {"a": {"_present": True}}
    assert read(schema, {"a": {}}, "a BOOLEAN") == {"a": True}
    assert read(schema, {"a": None}) == {"a": None}


@pytest.mark.parametrize("digits", ["19.99", "-0.01", "0.00", "9" * 36 + ".99"])
def test_a_decimal_of_more_digits_than_columns_have_is_judged_by_its_value(digits: str) -> None:
    with decimal.localcontext(prec=70):
        value = Decimal(digits)
        assert read(record(("a", WIDE)), {"a": value}) == {"a": value}
        assert read(record(("a", WIDE)), {"a": value}, "a STRING") == {"a": digits}


def test_a_decimal_of_more_digits_than_its_column_is_bad_by_itself() -> None:
    with decimal.localcontext(prec=70):
        assert read(record(("a", WIDE)), {"a": Decimal("9" * 37 + ".99")})[0] == "incompatible"


def test_a_local_timestamp_is_a_number_or_by_choice_a_timestamp_of_utc() -> None:
    plain, us = record(("a", "long")), 1_700_000_000_123_456
    for name, ticks in (("millis", 10**3), ("micros", 10**6), ("nanos", 10**9)):
        kind = {"type": "long", "logicalType": f"local-timestamp-{name}"}
        schema, stored = parsed(record(("a", kind))), us * ticks // 10**6
        value = written(plain, {"a": stored})
        assert record_reader(schema, schema.columns)(value) == {"a": stored}
        seen = record_reader(schema, parse_columns("a TIMESTAMP"))(value)
        assert seen == {"a": us if ticks > 10**3 else us // 1_000 * 1_000}


COUNTED = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # 2**62 items


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "null"},
        {"type": "array", "items": record(("n", "null"), name="N")},
        {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}},
    ],
)
def test_a_list_of_what_takes_no_bytes_costs_nothing(kind: Any) -> None:
    header = b"\x00\x00\x00\x00\x07"
    schema = parsed(record(("a", kind), ("b", "int")))
    value = header + COUNTED + b"\x01\x00\x00\x0a"
    assert record_reader(schema, schema.columns)(value) == {"b": 5}
    listed = parsed(record(("a", [kind, "string"])))
    assert record_reader(listed, listed.columns)(header + b"\x00\x06\x00") == {"a": "3"}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("int", b"\x80\x80\x80\x80\x20"),  # 2**32
        ("long", b"\xff" * 9 + b"\x02"),  # 65 bits
        ("long", b"\xff" * 20 + b"\x01"),
        ("boolean", b"\x02"),
        ("bytes", b"\x01abc"),  # -1 bytes
        ("string", b"\x05abc"),
        ("string", COUNTED + b"abc"),
        (["null", "int"], b"\x01\x0a"),  # branch -1
        (["null", "int"], b"\x03\x0a"),
        (["null", "int", "string"], b"\x05\x0a"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x01"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x04"),
        ({"type": "enum", "name": "E", "symbols": []}, b"\x00"),
        ({"type": "array", "items": "int"}, b"\x01\x01\x0a\x00"),  # a block of -1 bytes
        ({"type": "array", "items": "int"}, COUNTED + b"\x0a\x00"),
        ({"type": "map", "values": "int"}, COUNTED + b"\x0a\x00"),
        ({"type": "fixed", "name": "F", "size": 4}, b"ab"),
        ("float", b"abc"),
        ("double", b"abcdefg"),
    ],
)
@pytest.mark.parametrize("columns", ["", "other INT"])
def test_what_no_writer_writes_is_malformed(kind: Any, body: bytes, columns: str) -> None:
    schema = parsed(record(("a", kind)))
    wanted = parse_columns(columns) if columns else schema.columns
    found = record_reader(schema, wanted)(b"\x00\x00\x00\x00\x07" + body)
    if isinstance(found, Bad):
        assert found.kind == "malformed"
    else:  # what is passed over is looked at as far as needed
        assert columns
        assert kind in ("int", "boolean") or "symbols" in kind


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_value_that_is_cut_is_malformed(cut: int) -> None:
    schema = parsed(ORDER)
    whole = written(ORDER, GOOD)
    reader = record_reader(schema, schema.columns)
    assert not isinstance(reader(whole), Bad)
    found = reader(whole[:-cut] if cut < len(whole) - 5 else whole[:5])
    assert isinstance(found, Bad)
    assert found.kind == "malformed"


def test_bytes_behind_a_value_are_malformed() -> None:
    schema = parsed(ORDER)
    found = record_reader(schema, schema.columns)(written(ORDER, GOOD) + b"\x00\x01")
    assert found == Bad("malformed", "has 2 more bytes than a value of its schema")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x02\x02\x04\xff\xfe", "UnicodeDecodeError"),
        (b"\x02\x08", "IndexError"),  # no fourth branch
        (b"\x02\x00\x08", "IndexError"),  # no fifth symbol
        (b"\x02\x00\x00\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "EOFError"),  # 2**62 items
    ],
)
def test_bytes_of_something_else_are_malformed(body: bytes, reason: str) -> None:
    schema = parsed(ORDER)
    found = record_reader(schema, schema.columns)(b"\x00\x00\x00\x00\x07" + body)
    assert isinstance(found, Bad)
    assert found.kind == "malformed"
    assert reason in found.reason


def test_any_bytes_are_read_or_bad() -> None:
    schema, chance = parsed(ORDER), random.Random(5)
    reader, whole = record_reader(schema, schema.columns), written(ORDER, GOOD)
    for _ in range(3_000):
        value = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            value[chance.randrange(5, len(value))] = chance.randrange(256)
        found = reader(bytes(value))
        if not isinstance(found, Bad):
            pa.array([found], row_type(schema.columns)).validate(full=True)


KINDS = st.sampled_from(
    [
        ("int", st.integers(-(1 << 31), (1 << 31) - 1)),
        ("long", st.integers(-(1 << 63), (1 << 63) - 1)),
        ("double", st.floats(allow_nan=False)),
        ("string", st.text()),
        ("bytes", st.binary()),
        (["null", "boolean"], st.none() | st.booleans()),
        ({"type": "array", "items": "string"}, st.lists(st.text(), max_size=4)),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(KINDS, min_size=1, max_size=5), st.data())
def test_what_is_written_is_read(kinds: list[Any], data: st.DataObject) -> None:
    schema = record(*((f"f{n}", kind) for n, (kind, _) in enumerate(kinds)))
    value = {f"f{n}": data.draw(values) for n, (_, values) in enumerate(kinds)}
    fastavro.parse_schema(schema)
    assert read(schema, value) == value
