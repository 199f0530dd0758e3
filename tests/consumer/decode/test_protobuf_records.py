"""Messages are read by the schema that they were written with, and fit columns or are bad."""

import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest
from google.protobuf import message_factory
from tests.consumer.decode.protobuf import body, parsed, proto

from binwright.consumer.decide.columns import united
from binwright.consumer.decode import protobuf_records
from binwright.consumer.decode.arrow_types import row_type
from binwright.consumer.decode.one_by_one import Bad
from binwright.consumer.decode.protobuf_records import record_reader
from binwright.consumer.decode.protobuf_schemas import ProtobufSchema
from binwright.tables.columns import parse_columns
from binwright.tables.schemas import SchemaRefused

TIMES = 'import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";'
WRAPPERS = 'import "google/protobuf/wrappers.proto";'
JSON = 'import "google/protobuf/struct.proto"; import "google/protobuf/any.proto";'
E = "enum E { Z = 0; ONE = 1; }"
M = "message M { int32 x = 1; optional string y = 2; }"
FIRST, AT = datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 11, 23, 10, 11, 12, 345678, UTC)


def read_bytes(schema: ProtobufSchema, content: bytes, columns: str = "") -> Any:
    """Return a message's row, or why it is bad."""
    wanted = parse_columns(columns) if columns else schema.columns("")
    found = record_reader(schema.message(""), wanted)(content)
    if isinstance(found, Bad):
        return found.kind, found.reason
    row = pa.array([found], row_type(wanted))
    row.validate(full=True)
    return row[0].as_py()


def read(text: str, value: Any, columns: str = "") -> Any:
    """Return the row of a message that is given as JSON is, or why it is bad."""
    return read_bytes(parsed(text), body(parsed(text), value), columns)


@pytest.mark.parametrize(
    ("field", "rest", "value", "row"),
    [
        ("double a", "", 0.1, 0.1),
        ("float a", "", 1.5, 1.5),
        ("sint32 a", "", -(1 << 31), -(1 << 31)),
        ("sfixed64 a", "", -(1 << 63), -(1 << 63)),
        ("uint32 a", "", (1 << 32) - 1, (1 << 32) - 1),
        ("uint64 a", "", (1 << 64) - 1, Decimal((1 << 64) - 1)),
        ("bool a", "", True, True),
        ("string a", "", "ä", "ä"),
        ("bytes a", "", "/w==", b"\xff"),
        ("E a", E, "ONE", "ONE"),
        ("E a", E, 7, "7"),
        ("repeated E a", E, ["ONE", 7, "Z"], ["ONE", "7", "Z"]),
        ("M a", M, {"x": 1, "y": "z"}, {"x": 1, "y": "z"}),
        ("M a", M, {}, {"x": 0, "y": None}),
        ("repeated M a", M, [{}, {"y": ""}], [{"x": 0, "y": None}, {"x": 0, "y": ""}]),
        ("repeated uint64 a", "", [1, 2], [1, 2]),
        ("map<string, M> a", M, {"z": {}, "b": {"x": 1}},
         [("b", {"x": 1, "y": None}), ("z", {"x": 0, "y": None})]),
        ("map<int32, string> a", "", {"7": "seven", "-1": ""},
         [{"key": -1, "value": ""}, {"key": 7, "value": "seven"}]),
        ("map<bool, E> a", E, {"true": "ONE"}, [{"key": True, "value": "ONE"}]),
        ("google.protobuf.Timestamp a", TIMES, "2026-11-23T10:11:12.345678999Z", AT),
        ("google.protobuf.Timestamp a", TIMES, "0001-01-01T00:00:00Z", FIRST),
        ("repeated google.protobuf.Timestamp a", TIMES, ["2026-11-23T10:11:12.345678Z"], [AT]),
        ("google.protobuf.Duration a", TIMES, "-1.5s", {"seconds": -1, "nanos": -500_000_000}),
        ("google.protobuf.UInt64Value a", WRAPPERS, "5", Decimal(5)),
        ("google.protobuf.BoolValue a", WRAPPERS, False, False),
        ("repeated google.protobuf.StringValue a", WRAPPERS, ["", "x"], ["", "x"]),
        ("google.protobuf.Struct a", JSON, {"z": [1, 2.5, None, True], "b": {"c": "d"}},
         '{"b":{"c":"d"},"z":[1,2.5,null,true]}'),
        ("google.protobuf.Value a", JSON, 1e300, "1e+300"),
        ("google.protobuf.ListValue a", JSON, [], "[]"),
    ],
)  # fmt: skip
def test_each_type_is_read(field: str, rest: str, value: Any, row: Any) -> None:
    is_import = rest.startswith("import")
    text = proto(field, head=rest if is_import else "", rest="" if is_import else rest)
    assert read(text, {"a": value}) == {"a": row}


def test_bytes_from_the_specification_are_read() -> None:
    """The examples of Protobuf's own description of its encoding."""
    schema = parsed(proto("int32 a", "string b", "M c", "repeated int32 d", rest=M))
    assert read_bytes(schema, bytes.fromhex("08 96 01"))["a"] == 150
    assert read_bytes(schema, bytes.fromhex("12 07 74 65 73 74 69 6e 67"))["b"] == "testing"
    assert read_bytes(schema, bytes.fromhex("1a 03 08 96 01"))["c"] == {"x": 150, "y": None}
    assert read_bytes(schema, bytes.fromhex("22 06 03 8e 02 9e a7 05"))["d"] == [3, 270, 86_942]
    assert read_bytes(schema, bytes.fromhex("20 03 20 8e 02"))["d"] == [3, 270]  # not packed
    assert read_bytes(schema, bytes.fromhex("08 01 08 02"))["a"] == 2  # the last one counts


def test_a_field_that_is_not_there_is_its_default_or_null_by_its_presence() -> None:
    text = proto(
        "int32 plain", "optional int32 may", "M message", "repeated int32 list",
        "map<string, int32> by", "google.protobuf.Int32Value wrapped",
        head=WRAPPERS, rest=f"{M} {E}",
    )  # fmt: skip
    absent: dict[str, Any] = {
        "plain": 0,
        "may": None,
        "message": None,
        "list": [],
        "by": [],
        "wrapped": None,
    }
    assert read(text, {}) == absent
    there = {"may": 0, "message": {}, "wrapped": 0}
    assert read(text, there) == {**absent, **there, "message": {"x": 0, "y": None}}


def test_of_a_oneof_one_field_is_there_though_it_has_its_default_value() -> None:
    text = """syntax = "proto3"; message X { oneof which { string s = 1; int32 n = 2; } }"""
    assert read(text, {"n": 0}) == {"s": None, "n": 0}
    assert read(text, {}) == {"s": None, "n": None}


PROTO2 = """syntax = "proto2"; message Order { required int32 id = 1; optional Part part = 2;
optional string name = 3 [default = "none"]; optional E e = 4; optional group Old = 5 { optional
int32 n = 1; } } message Part { required int32 x = 1; } enum E { A = 1; }"""


def test_proto2_has_presence_closed_enums_and_groups() -> None:
    absent = {"part": None, "name": None, "e": None, "old": None}
    assert read(PROTO2, {"id": 1}) == {"id": 1, **absent}
    assert read(PROTO2, {"id": 1, "old": {"n": 2}}) == {"id": 1, **absent, "old": {"n": 2}}
    assert read_bytes(parsed(PROTO2), b"\x08\x01\x20\x07") == {"id": 1, **absent}


def test_editions_have_the_presence_and_the_encoding_that_their_features_name() -> None:
    schema = parsed("""edition = "2023"; message Order { int32 a = 1;
    int32 b = 2 [features.field_presence = IMPLICIT];
    Part part = 3 [features.message_encoding = DELIMITED]; } message Part { int32 x = 1; }""")
    assert read_bytes(schema, b"") == {"a": None, "b": 0, "part": None}
    assert read_bytes(schema, bytes.fromhex("1b 08 05 1c")) == {"a": None, "b": 0, "part": {"x": 5}}


def test_a_message_that_lacks_what_it_requires_is_malformed() -> None:
    assert read(PROTO2, {}) == ("malformed", "lacks id")
    assert read(PROTO2, {"id": 1, "part": {}}) == ("malformed", "lacks part.x")


def test_fields_may_be_named_like_methods() -> None:
    schema = parsed("""syntax = "proto3"; message Order { optional int32 HasField = 1;
    M DESCRIPTOR = 2; int32 FromString = 3; int32 class = 4; E WhichOneof = 5;
    enum E { GetOptions = 0; fields = 1; } } message M { int32 items = 1; }""")
    row = {"HasField": None, "DESCRIPTOR": {"items": 2}, "FromString": 3, "class": 4}
    found = read_bytes(schema, bytes.fromhex("12 02 08 02 18 03 20 04 28 01"))
    assert found == {**row, "WhichOneof": "fields"}
    assert read_bytes(schema, b"\x08\x00")["HasField"] == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("08", "is no value of its schema: "),  # ends within a number
        ("12 05 61", "is no value of its schema: "),  # ends within a text
        ("08 01 00", "is no value of its schema: "),  # a byte that is no field
        ("08 ff ff ff ff ff ff ff ff ff ff 01", "is no value of its schema: "),
        ("12 01 ff", "is no value of its schema: "),  # no UTF-8
        ("1b", "is no value of its schema: "),  # a group without an end
        ("ff ff ff ff", "is no value of its schema: "),
    ],
)
def test_what_is_no_message_is_malformed(content: str, reason: str) -> None:
    kind, why = read_bytes(parsed(proto("int32 a", "string b")), bytes.fromhex(content))
    assert kind == "malformed"
    assert why.startswith(reason)
    assert "bad" in why.lower() or "corrupt" in why.lower()


def test_text_of_proto2_that_is_no_utf8_is_malformed() -> None:
    schema = parsed("""syntax = "proto2"; message Order { optional string a = 1;
    repeated string b = 2; map<string, int32> c = 3; map<int32, string> d = 4; }""")
    for content in ("0a 01 ff", "12 01 ff", "1a 03 0a 01 ff", "22 03 12 01 ff"):
        assert read_bytes(schema, bytes.fromhex(content)) == (
            "malformed", "is not UTF-8: invalid start byte at byte 0",
        )  # fmt: skip


def test_a_field_that_the_schema_does_not_have_is_left_out() -> None:
    schema = parsed(proto("int32 a"))
    assert read_bytes(schema, b"\x08\x05\x50\x07\x5a\x01x") == {"a": 5}


def test_what_is_nested_deeper_than_protobuf_reads_is_malformed() -> None:
    schema = parsed(proto("google.protobuf.Value a", head=JSON))
    content = b"\x20\x01"  # a boolean
    for _ in range(200):
        content = bytes((0x0A, *_length(len(content)))) + content  # of a list's item
        content = bytes((0x32, *_length(len(content)))) + content  # a list as value
    found = read_bytes(schema, bytes((0x0A, *_length(len(content)))) + content)
    assert found[0] == "malformed"


def _length(number: int) -> bytes:
    found = []
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))


@pytest.mark.parametrize(
    ("field", "column", "value", "row"),
    [
        ("int32 a", "bigint", 5, 5),
        ("int32 a", "double", 5, 5.0),
        ("uint32 a", "int", 5, 5),
        ("int64 a", "int", 5, 5),
        ("int64 a", "tinyint", -128, -128),
        ("int64 a", "double", 1 << 53, float(1 << 53)),
        ("uint64 a", "bigint", (1 << 63) - 1, (1 << 63) - 1),
        ("int32 a", "decimal(5,2)", 5, Decimal("5.00")),
        ("float a", "double", 1.5, 1.5),
        ("map<string, int32> a", "array<struct<value:bigint,key:string>>", {"k": 1},
         [{"value": 1, "key": "k"}]),
    ],
)  # fmt: skip
def test_values_fit_columns_of_other_types_exactly(
    field: str, column: str, value: Any, row: Any
) -> None:
    assert read(proto(field), {"a": value}, f"a {column}") == {"a": row}


def test_an_enum_fits_numbers_and_a_timestamp_its_parts() -> None:
    assert read(proto("E a", rest=E), {"a": "ONE"}, "a int") == {"a": 1}
    text = proto("google.protobuf.Timestamp a", head=TIMES)
    found = read(
        text, {"a": "1970-01-01T00:00:05.000000007Z"}, "a struct<nanos:int,seconds:bigint>"
    )
    assert found == {"a": {"nanos": 7, "seconds": 5}}


@pytest.mark.parametrize(
    ("field", "column", "value", "reason"),
    [
        ("int64 a", "int", 1 << 31, "a needs int, has 2147483648"),
        ("uint64 a", "bigint", 1 << 63, "a needs bigint, has 9223372036854775808"),
        ("uint64 a", "decimal(19,0)", (1 << 64) - 1,
         "a needs decimal(19,0), has 18446744073709551615"),
        ("int64 a", "double", (1 << 53) + 1, "a needs double, has 9007199254740993"),
        ("repeated int64 a", "array<int>", [1, 1 << 40], "a[1] needs int, has 1099511627776"),
        ("map<string, int64> a", "map<string,int>", {"k": 1 << 40},
         "a.k needs int, has 1099511627776"),
        ("map<int32, int64> a", "array<struct<key:int,value:int>>", {"7": 1 << 40},
         "a.7 needs int, has 1099511627776"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_bad_by_its_place(
    field: str, column: str, value: Any, reason: str
) -> None:
    assert read(proto(field), {"a": value}, f"a {column}") == ("incompatible", reason)


def test_an_any_is_its_type_and_its_bytes() -> None:
    schema = parsed(proto("google.protobuf.Any a", head=JSON))
    assert read_bytes(schema, bytes.fromhex("0a 07 0a 01 78 12 02 08 05")) == {
        "a": {"type_url": "x", "value": b"\x08\x05"}
    }


def test_a_value_within_messages_that_does_not_fit_is_bad_by_its_path() -> None:
    text = proto("repeated Part parts", rest="message Part { int64 n = 1; }")
    assert read(text, {"parts": [{"n": 1}, {"n": 1 << 40}]}, "parts array<struct<n:int>>") == (
        "incompatible", "parts[1].n needs int, has 1099511627776",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "nanos", "reason"),
    [
        (253_402_300_800, 0, "a needs a timestamp of the years 1 to 9999, has 253402300800"),
        (-62_135_596_801, 0, "a needs a timestamp of the years 1 to 9999, has -62135596801"),
        (0, 1_000_000_000, "a needs nanoseconds of a timestamp, has 1000000000"),
        (0, -1, "a needs nanoseconds of a timestamp, has -1"),
    ],
)
def test_a_moment_out_of_range_is_bad(seconds: int, nanos: int, reason: str) -> None:
    schema = parsed(proto("google.protobuf.Timestamp a", head=TIMES))
    plain = parsed(proto("T a", rest="message T { int64 seconds = 1; int32 nanos = 2; }"))
    kind, why = read_bytes(schema, body(plain, {"a": {"seconds": seconds, "nanos": nanos}}))
    assert (kind, why[: len(reason)]) == ("incompatible", reason)


def test_numbers_that_json_lacks_are_bad() -> None:
    schema = parsed(proto("google.protobuf.Value a", head=JSON))
    content = b"\x0a\x09\x11" + struct.pack("<d", float("nan"))
    assert read_bytes(schema, content) == ("incompatible", "a needs a number of JSON, has nan")


@pytest.mark.parametrize(
    ("field", "column", "reason"),
    [
        ("string a", "int", "a needs int, has string"),
        ("int32 a", "string", "a needs string, has int32"),
        ("M a", "int", "a needs int, has message"),
        ("M a", "struct<x:string>", "a.x needs string, has int32"),
        ("repeated int32 a", "int", "a needs int, has a list"),
        ("int32 a", "array<int>", "a needs array<int>, has int32"),
        ("repeated string a", "array<int>", "a[] needs int, has string"),
        ("map<int32, string> a", "map<string,string>",
         "a needs map<string,string>, has a map by int32"),
        ("map<string, string> a", "map<string,int>", "a[] needs int, has string"),
        ("uint32 a", "float", "a needs float, has uint32"),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_refused_by_its_place(
    field: str, column: str, reason: str
) -> None:
    message = parsed(proto(field, rest=M)).message("")
    with pytest.raises(SchemaRefused) as refused:
        record_reader(message, parse_columns(f"a {column}"))
    assert str(refused.value) == reason


def test_named_columns_are_found_whatever_their_case_and_others_are_left_out() -> None:
    text = proto("int32 Id", "Order next")  # a message within itself, which nobody names
    assert read(text, {"Id": 5, "next": {"Id": 6}}, "id int, more string") == {
        "id": 5,
        "more": None,
    }


EMPTY = "message Ping {} message Fault { int32 code = 1; }"


@pytest.mark.parametrize(
    ("field", "value", "there"),
    [
        ("Ping a", {}, {"_present": True}),
        ("oneof which { Ping a = 4; Fault b = 5; } int32 c", {}, {"_present": True}),
        ("repeated Ping a", [{}, {}], [{"_present": True}] * 2),
        ("map<string, Ping> a", {"k": {}}, [("k", {"_present": True})]),
        ("map<int32, Ping> a", {"4": {}}, [{"key": 4, "value": {"_present": True}}]),
    ],
)
def test_a_message_without_fields_that_is_there_differs_from_one_that_is_not(
    field: str, value: Any, there: Any
) -> None:
    text = proto(field, rest=EMPTY)
    assert read(text, {"a": value})["a"] == there
    assert not read(text, {})["a"]


def test_a_message_that_gets_fields_keeps_its_column() -> None:
    before, after = (
        proto("P a", rest="message P {}"),
        proto("P a", rest="message P { int32 n = 1; }"),
    )
    columns = "a struct<_present: boolean, n: int>"
    assert read(before, {"a": {}}, columns)["a"] == {"_present": True, "n": None}
    assert read(after, {"a": {"n": 5}}, columns)["a"] == {"_present": None, "n": 5}
    assert united(parsed(before).columns(""), parsed(after).columns("")) == parse_columns(columns)
    assert read(before, {"a": {}}, "a struct<n: int>")["a"] == {"n": None}


def test_a_named_column_may_be_whether_a_message_without_fields_is_there() -> None:
    text = proto("Ping a", rest=EMPTY)
    assert read(text, {"a": {}}, "a boolean") == {"a": True}
    assert read(text, {}, "a boolean") == {"a": None}
    with pytest.raises(SchemaRefused, match="needs boolean, has message"):
        read(proto("Fault a", rest=EMPTY), {}, "a boolean")


def test_few_bytes_do_not_become_many_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty message takes two bytes, and has the default values of all its fields."""
    monkeypatch.setattr(protobuf_records, "MOST_FIELDS", 1_000)
    wide = " ".join(f"int32 f{n} = {n};" for n in range(1, 201))
    schema = parsed(proto("repeated Wide a", rest=f"message Wide {{ {wide} }}"))
    assert len(read_bytes(schema, b"\x0a\x00" * 4)["a"]) == 4
    kind, reason = read_bytes(schema, b"\x0a\x00" * 200)
    assert kind == "incompatible"
    assert reason.startswith("a[12] needs fewer fields of messages, has the string 'more than its")


TREE = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto"; import "google/protobuf/struct.proto";
message Order { int64 id = 1; repeated Order next = 2; map<string, Order> by = 3; Order one = 4;
  bytes b = 5; double x = 6; E e = 7; google.protobuf.Timestamp at = 8; uint64 u = 9;
  google.protobuf.StringValue w = 10; google.protobuf.Value v = 11; map<bool, int32> f = 12; }
enum E { Z = 0; ONE = 1; }"""


def test_a_message_within_itself_is_text_of_json_and_may_be_left_out() -> None:
    full: Any = {
        "id": 2, "b": "YQ==", "x": "NaN", "e": "ONE", "at": "2026-01-01T00:00:00Z",
        "u": (1 << 64) - 1, "w": "w", "v": {"a": [1, None]}, "f": {"true": 1}, "next": [{"id": 3}],
    }  # fmt: skip
    row = read(
        TREE, {"id": 1, "one": full, "next": [{}, {"e": 7}], "by": {"k": {"x": "-Infinity"}}}
    )
    assert orjson.loads(row["one"]) == full
    assert row["next"] == '[{},{"e":7}]'
    assert row["by"] == '{"k":{"x":"-Infinity"}}'
    assert read(TREE, {"id": 1, "one": full}, "id BIGINT") == {"id": 1}
    late = {"one": {"at": "9999-12-31T23:59:59Z"}}
    assert read(TREE, late, "one STRING")["one"].endswith('"9999-12-31T23:59:59Z"}')


def test_a_time_beyond_all_years_in_text_of_json_is_one_bad_record() -> None:
    schema = parsed(TREE)
    message: Any = message_factory.GetMessageClass(schema.message(""))()
    message.one.at.seconds = 1 << 50
    assert read_bytes(schema, message.SerializeToString())[0] == "incompatible"


def test_fields_are_found_by_the_names_of_their_columns() -> None:
    text = proto("int32 id", "int32 ID", "int32 _kafka")
    assert read(text, {"id": 1, "ID": 2, "Kafka": 3}) == {"id": 1, "ID_2": 2, "_kafka_2": 3}
