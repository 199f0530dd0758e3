"""Protobuf schemas become columns, or are refused by a reason that names the place."""

import pytest
from tests.consumer.decode.protobuf import parsed, proto

from binwright.tables.columns import DEEPEST, columns_text, parse_columns
from binwright.tables.schemas import SchemaRefused

TIMES = 'import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";'
WRAPPERS = 'import "google/protobuf/wrappers.proto";'
JSON = 'import "google/protobuf/struct.proto"; import "google/protobuf/any.proto";'
NESTED = """syntax = "proto3"; package shop;
message First {
  message Inner { int32 x = 1; }
  map<string, int32> m = 1;
  message Last { int32 y = 1; }
}
message Second { string name = 1; }
"""


def lists(depth: int) -> str:
    """Return messages of which each has a list of the next."""
    levels = "".join(f"message L{n} {{ repeated L{n + 1} a = 1; }}" for n in range(depth))
    return f"{levels} message L{depth} {{ int32 x = 1; }}"


@pytest.mark.parametrize(
    ("field", "head", "column"),
    [
        ("double a", "", "double"),
        ("float a", "", "float"),
        *((f"{kind} a", "", "int") for kind in ("int32", "sint32", "sfixed32")),
        *((f"{kind} a", "", "bigint") for kind in ("int64", "sint64", "sfixed64")),
        *((f"{kind} a", "", "bigint") for kind in ("uint32", "fixed32")),
        *((f"{kind} a", "", "decimal(20,0)") for kind in ("uint64", "fixed64")),
        ("bool a", "", "boolean"),
        ("string a", "", "string"),
        ("optional string a", "", "string"),
        ("bytes a", "", "binary"),
        ("E a", "enum E { Z = 0; }", "string"),
        ("M a", "message M { int32 x = 1; string y = 2; }", "struct<x:int,y:string>"),
        ("repeated M a", "message M { int32 x = 1; }", "array<struct<x:int>>"),
        ("repeated uint64 a", "", "array<decimal(20,0)>"),
        ("map<string, int64> a", "", "map<string,bigint>"),
        ("map<int32, string> a", "", "array<struct<key:int,value:string>>"),
        ("google.protobuf.Timestamp a", TIMES, "timestamp"),
        ("repeated google.protobuf.Timestamp a", TIMES, "array<timestamp>"),
        ("google.protobuf.Duration a", TIMES, "struct<seconds:bigint,nanos:int>"),
        ("google.protobuf.UInt64Value a", WRAPPERS, "decimal(20,0)"),
        ("google.protobuf.StringValue a", WRAPPERS, "string"),
        ("google.protobuf.Struct a", JSON, "string"),
        ("google.protobuf.Value a", JSON, "string"),
        ("google.protobuf.ListValue a", JSON, "string"),
        ("google.protobuf.NullValue a", JSON, "string"),
        ("google.protobuf.Any a", JSON, "struct<type_url:string,value:binary>"),
    ],
)  # fmt: skip
def test_each_type_has_a_column_type(field: str, head: str, column: str) -> None:
    schema = parsed(
        proto(field, head=head if "import" in head else "", rest="" if "import" in head else head)
    )
    assert columns_text(schema.columns("")) == f"a {column}"


def test_a_oneof_is_its_fields_and_a_message_without_fields_states_whether_it_is_there() -> None:
    there = "struct<_present:boolean>"
    text = proto("Nothing a", "repeated Nothing b", "map<string, Nothing> c", "Around d",
                 rest="message Nothing {} message Around { Nothing e = 1; }")  # fmt: skip
    assert columns_text(parsed(text).columns("")) == (
        f"a {there}, b array<{there}>, c map<string,{there}>, d struct<e:{there}>"
    )
    text = """syntax = "proto3"; message M { oneof which { string s = 2; int32 n = 1; } }"""
    assert columns_text(parsed(text).columns("")) == "s string, n int"


@pytest.mark.parametrize(
    ("text", "columns", "note"),
    [
        (
            proto("Order a"),
            "a string",
            "a is JSON as text: it has the type shop.Order within itself",
        ),
        (
            proto(
                "A a", rest="message A { repeated B b = 1; } message B { map<string, A> a = 1; }"
            ),
            "a struct<b:array<struct<a:string>>>",
            "a is JSON as text: it has the type shop.A within itself",
        ),
        (proto("int32 id", "int32 ID"), "id int, ID_2 int", ""),
        (proto("int32 _Kafka"), "_Kafka_2 int", ""),
        (
            proto(*(f"repeated L{n} a" for n in [0]), rest=lists(40)),
            None,
            "a is JSON as text: it is nested more than 32 deep",
        ),
    ],
)
def test_a_field_without_a_column_type_is_json_and_costs_no_other(
    text: str, columns: str | None, note: str
) -> None:
    schema = parsed(text)
    there = columns_text(schema.columns(""))
    assert columns is None or there == columns
    assert columns_text(parse_columns(there)) == there, "a file's footer reads it back"
    assert schema.notes("") == ((note,) if note else ())


def test_messages_that_contain_each_other_many_times_over_are_refused() -> None:
    """Sixteen small messages could ask for 2**16 columns."""
    levels = "".join(f"message L{n} {{ L{n + 1} a = 1; L{n + 1} b = 2; }}" for n in range(1, 16))
    text = proto("L1 a", rest=f"{levels} message L16 {{ int32 x = 1; }}")
    with pytest.raises(SchemaRefused, match="has more than 10000 fields"):
        parsed(text).columns("")
    levels = "".join(f"message L{n} {{ L{n + 1} a = 1; }}" for n in range(1, 40))
    text = proto("L1 a", rest=f"{levels} message L40 {{ int32 x = 1; }}")
    assert columns_text(parsed(text).columns("")).count("struct<") == DEEPEST


def test_a_message_is_found_by_its_name_and_by_its_place() -> None:
    schema = parsed(NESTED)
    assert schema.message("").full_name == "shop.First"
    assert schema.message("shop.Second").full_name == "shop.Second"
    assert schema.message("shop.First.Last").full_name == "shop.First.Last"
    for indexes, name in (
        ((0,), "shop.First"),
        ((1,), "shop.Second"),
        ((0, 0), "shop.First.Inner"),
        ((0, 2), "shop.First.Last"),  # a map's entry takes a place, as in all descriptors
    ):
        assert schema.message_at(indexes).full_name == name


@pytest.mark.parametrize("indexes", [(2,), (-1,), (0, 1), (0, 3), (1, 0), ()])
def test_a_place_without_a_message_is_refused(indexes: tuple[int, ...]) -> None:
    with pytest.raises(SchemaRefused, match=r"has no message at \["):
        parsed(NESTED).message_at(indexes)


def test_a_message_of_another_file_is_none_of_the_schema() -> None:
    other = 'syntax = "proto3"; package shop; message Point { int32 x = 1; }'
    schema = parsed(proto("Point at", head='import "point.proto";'), point_proto=other)
    assert columns_text(schema.columns("")) == "at struct<x:int>"
    for name in ("shop.Point", "shop.Nobody"):
        with pytest.raises(SchemaRefused, match=f"has no message {name}"):
            schema.message(name)


def test_a_schema_without_a_message_is_refused() -> None:
    with pytest.raises(SchemaRefused, match="has no message"):
        parsed('syntax = "proto3"; enum E { Z = 0; }')


def test_schemas_do_not_share_their_names() -> None:
    """Two versions have the same messages: each schema has a pool of its own."""
    one, two = parsed(proto("int32 id")), parsed(proto("string id", "int32 n"))
    assert columns_text(one.columns("")) == "id int"
    assert columns_text(two.columns("shop.Order")) == "id string, n int"
