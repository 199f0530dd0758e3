"""Avro schemas become columns; those that no reader may be given are refused."""

from time import process_time
from typing import Any

import pytest
from tests.consumer.decode.avro import doubling, parsed, record

from binwright.consumer.decode.avro_records import record_reader
from binwright.consumer.decode.avro_schemas import MOST_PARTS, AvroSchema
from binwright.tables.columns import DEEPEST, columns_text, parse_columns
from binwright.tables.schemas import SchemaRefused


def columns(schema: Any, *references: Any) -> str:
    return columns_text(parsed(schema, *references).columns)


def unnamed(name: object) -> Any:
    return record(("a", "int"), name="P") | {"fields": [{"name": name, "type": "int"}]}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
FIXED = {**DECIMAL, "type": "fixed", "name": "F", "size": 4}


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("boolean", "boolean"),
        ("int", "int"),
        ("long", "bigint"),
        ("float", "float"),
        ("double", "double"),
        ("bytes", "binary"),
        ("string", "string"),
        ({"type": "string", "avro.java.string": "String"}, "string"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        ({"type": "fixed", "name": "F", "size": 4}, "binary"),
        (["null", "int"], "int"),
        (["int", "null"], "int"),
        (["int"], "int"),
        ({"type": "array", "items": ["null", "long"]}, "array<bigint>"),
        ({"type": "map", "values": "double"}, "map<string,double>"),
        (record(("x", "int"), name="P"), "struct<x:int>"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "timestamp"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "decimal(9,2)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9}, "decimal(9,0)"),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        ({"type": "int", "logicalType": "time-millis"}, "int"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "bigint"),
        ({"type": "string", "logicalType": "date"}, "string"),
        (record(("x", "int"), name="P") | {"type": "error"}, "struct<x:int>"),
        ({"type": {"type": "long"}}, "bigint"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "bigint"),
        (DECIMAL | {"precision": 64}, "decimal(38,2)"),
        (DECIMAL | {"precision": 64, "scale": 39}, "string"),
        (["int", "long"], "bigint"),
        (["null", "int", "long"], "bigint"),
        (["int", "float"], "double"),
        (["float", "double"], "double"),
        (["long", "double"], "double"),
        (["string", {"type": "enum", "name": "E", "symbols": []}], "string"),
        (["null", "string", "boolean"], "string"),
        (["string", "bytes"], "string"),
        ([{"type": "array", "items": "int"}, "int"], "string"),
        ([record(("x", "int"), name="P"), "int"], "string"),
        (
            ["null", record(("x", "int"), name="a.P"), record(name="Q")],
            "struct<P:struct<x:int>,Q:struct<_present:boolean>>",
        ),
        (
            [record(("x", "int"), name="a.P"), record(("x", "int"), name="b.P")],
            "struct<`a.P`:struct<x:int>,`b.P`:struct<x:int>>",
        ),
        (["null", record(name="Empty")], "struct<_present:boolean>"),
        ({"type": "map", "values": "null"}, "string"),
        ({"type": "array", "items": ["null"]}, "string"),
    ],
)
def test_each_type_has_a_column_type(kind: Any, column: str) -> None:
    assert columns(record(("a", kind))) == f"a {column}"


def test_what_stores_nothing_has_no_column() -> None:
    nothing = record(name="Nothing")
    assert columns(record(("a", "null"), ("b", "int"), ("c", nothing))) == "b int"


def test_a_type_is_used_again_by_its_name() -> None:
    point = record(("x", "int"), name="geo.Point")
    assert columns(record(("a", point), ("b", "geo.Point"))) == "a struct<x:int>, b struct<x:int>"


def test_a_schema_uses_types_of_others() -> None:
    point = record(("x", "int"), name="geo.Point")
    line = record(("a", "geo.Point"), ("b", "geo.Point"), name="geo.Line")
    assert columns(record(("l", "geo.Line")), point, line) == (
        "l struct<a:struct<x:int>,b:struct<x:int>>"
    )


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        ("long", "value bigint"),
        (["null", "string"], "value string"),
        ({"type": "int", "logicalType": "date"}, "value date"),
        ({"type": "array", "items": "int"}, "value array<int>"),
        (["null", record(("a", "int"))], "value struct<a:int>"),
        ({"type": "long", "name": "R"}, "value bigint"),
        ({"type": ["null", "string"]}, "value string"),
        ({"type": {"type": "array", "items": "int"}}, "value array<int>"),
        ({"type": []}, ""),
    ],
)
def test_what_is_no_record_is_one_column(schema: Any, column: str) -> None:
    assert columns(schema) == column


@pytest.mark.parametrize("wrapped", ["geo.Point", {"type": "geo.Point"}])
def test_a_record_is_rows_however_it_is_written(wrapped: Any) -> None:
    point = record(("x", "int"), name="geo.Point")
    assert columns({"type": point}) == columns({"type": {"type": point}}) == "x int"
    assert columns(wrapped, point) == "x int"


@pytest.mark.parametrize(
    "kind",
    [
        DECIMAL | {"scale": -2},
        DECIMAL | {"scale": 10},
        DECIMAL | {"scale": "2"},
        DECIMAL | {"scale": None},
        DECIMAL | {"precision": "9"},
        DECIMAL | {"precision": 0},
        DECIMAL | {"precision": True},
        {"type": "bytes", "logicalType": "decimal"},
        FIXED | {"precision": 10},
    ],
)
def test_a_decimal_that_is_none_is_its_bytes(kind: Any) -> None:
    """Avro has such a logical type ignored."""
    assert columns(record(("a", kind))) == "a binary"
    assert columns(record(("a", FIXED))) == "a decimal(9,2)"


@pytest.mark.parametrize(
    "default", [None, 0.0, "x", "false", 5, [], {}, {"a": 1}, True, "2024-01-01"]
)
@pytest.mark.parametrize(
    "kind",
    [
        "string", "int", "boolean", ["null", "string"], {"type": "array", "items": "string"},
        {"type": "map", "values": "int"}, record(("x", "int"), name="P"),
        {"type": "enum", "name": "E", "symbols": ["A"], "default": "gone"},
        {"type": "long", "logicalType": "timestamp-millis"}, DECIMAL, FIXED,
    ],
)  # fmt: skip
def test_a_default_is_no_reason_to_refuse_a_schema(kind: Any, default: Any) -> None:
    """It is never used: each value is read by the schema that it was written with."""
    fields = [{"name": "a", "type": kind, "default": default}]
    assert columns({"type": "record", "name": "R", "fields": fields}).startswith("a ")


@pytest.mark.parametrize("name", ["db-1.public.Value", "1", "a b", "größe", "$x", "a..b", "."])
def test_a_type_may_have_any_name(name: str) -> None:
    kind = record(("x", "int"), name=name) | {"namespace": "n-1.2", "aliases": 5, "doc": []}
    assert columns(
        record(("a", kind), ("b", kind["name"] if "." in name else f"n-1.2.{name}"))
    ) == ("a struct<x:int>, b struct<x:int>")


def test_a_namespace_is_that_of_the_type_around() -> None:
    inner = record(("x", "int"), name="P")
    schema = record(("a", inner), ("b", "P"), ("c", "n.P"), name="n.R")
    assert columns(schema | {"namespace": "ignored"}) == columns(schema)
    assert columns(record(("a", inner | {"namespace": "m"}), ("b", "m.P"))).endswith(
        "b struct<x:int>"
    )


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (record(("a", "geo.Point")), "has the type geo.Point, which is not there"),
        (record(("a", {"type": "array"})), "has the type array, which is not there"),
        ({"type": "record", "fields": []}, "is no Avro schema: has a record without a name"),
        ({"type": "record", "name": "R"}, "is no Avro schema"),
        ({"a": 1}, "is no Avro schema"),
        (7, "is no Avro schema"),
        ({"type": "fixed", "name": "F", "size": -1}, "is no Avro schema"),
        ({"type": "enum", "name": "F", "symbols": [1]}, "has a symbol that is no text"),
        (unnamed(-1), "has a field without a name or a type: .*-1"),
        (record(("a", unnamed(["b"]))), "has a field without a name"),
        (record(("a", "int"), ("a", "long")), "has two fields named a"),
        (["null"] * (MOST_PARTS + 1), f"has more than {MOST_PARTS} parts"),
    ],
)
def test_what_does_not_state_how_values_lie_in_bytes_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaRefused, match=reason):
        parsed(schema)


@pytest.mark.parametrize("text", ["", "{", "\ud800", "[" * 5_000, '{"type":' * 3_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(SchemaRefused, match=r"is no Avro schema|is nested too deep"):
        AvroSchema(text)


def test_what_is_nested_too_deep_is_json_from_there_on() -> None:
    kind: Any = "int"
    for _ in range(40):
        kind = {"type": "array", "items": kind}
    schema = parsed(record(("a", kind), ("b", "int")))
    text = columns_text(schema.columns)
    assert columns_text(parse_columns(text)) == text
    assert text.endswith(f"string{'>' * DEEPEST}, b int")
    assert schema.notes == (f"a is JSON as text: it is nested more than {DEEPEST} deep",)


def test_a_schema_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(SchemaRefused, match="is nested too deep"):
        AvroSchema('{"type":"array","items":' * 1_000 + '"int"' + "}" * 1_000)
    chain = [record(("a", "int"), name="R0")]
    chain += [record(("a", f"R{n}"), name=f"R{n + 1}") for n in range(2_000)]
    listed = parsed([*chain, {"type": "array", "items": "R2000"}, "int"])
    with pytest.raises(SchemaRefused, match="is nested too deep"):
        record_reader(listed, parse_columns("value STRING"))


def test_a_type_within_itself_is_json() -> None:
    tree = record(
        ("id", "long"),
        ("next", ["null", "Tree"]),
        ("children", {"type": "array", "items": "Tree"}),
        ("by", {"type": "map", "values": ["null", "Tree"]}),
        name="Tree",
    )
    schema = parsed(tree)
    assert columns_text(schema.columns) == (
        "id bigint, next string, children array<string>, by map<string,string>"
    )
    assert schema.notes[0] == "next is JSON as text: it is a Tree within itself"


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        ("null", "a is left out: it has no value but null"),
        (["null"], "a is left out: it has no value but null"),
        ([], "a is left out: it has no value but null"),
        (record(name="Nothing"), "a is left out: it is a record without fields"),
        ({"type": "array", "items": "null"}, "a is left out: it is a list of what takes no bytes"),
        (
            {"type": "array", "items": record(("n", "null"), name="N")},
            "a is left out: it is a list of what takes no bytes",
        ),
        (
            {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}},
            "a is left out: it is a list of what takes no bytes",
        ),
        (["string", "boolean"], "a is JSON as text: it is a union of string, boolean"),
        ({"type": "map", "values": "null"}, "a is JSON as text: its items have no column type"),
    ],
)
def test_a_field_without_a_column_type_is_named_and_costs_no_other(kind: Any, note: str) -> None:
    schema = parsed(record(("a", kind), ("b", "int")))
    assert columns_text(schema.columns).endswith("b int")
    assert schema.notes == (note,)


def test_fields_have_names_that_a_table_can_have() -> None:
    given = ["a b", "a_b", "A_B", "_Kafka", "x=y", "", "straße", "strasse"]
    inner = record(("_kafka", "int"), ("p,q", "int"), name="P")
    schema = parsed(record(*((name, "int") for name in given), ("r", inner)))
    assert [(c.name, c.named) for c in schema.columns] == [
        ("a_b_2", "a b"), ("a_b", "a_b"), ("A_B_3", "A_B"), ("_Kafka_2", "_Kafka"),
        ("x_y", "x=y"), ("_", ""), ("straße", "straße"), ("strasse_2", "strasse"), ("r", "r"),
    ]  # fmt: skip
    assert str(schema.columns[-1].type) == "struct<_kafka:int,p_q:int>"


def unions(depth: int, width: int, *, defined: bool = True) -> Any:
    """Return a union of so many records, each with a field that is the same of less depth."""
    if not depth:
        return "int"
    names = [f"D{depth}_{n}" for n in range(width)]
    if not defined:
        return ["string", *names]
    parts = [unions(depth - 1, width, defined=n == 0) for n in range(width)]
    records = [record(("x", part), name=name) for name, part in zip(names, parts, strict=True)]
    return ["string", *records]


def test_columns_within_unions_are_looked_for_once_in_each_record() -> None:
    schema, began = parsed(record(("x", unions(4, 40)))), process_time()
    columns = parse_columns("x STRUCT<x: STRUCT<x: STRUCT<x: STRUCT<x: DATE>>>>")
    with pytest.raises(SchemaRefused, match="x needs struct"):
        record_reader(schema, columns)
    assert process_time() - began < 1


def test_a_schema_that_doubles_at_each_level_is_refused_at_once() -> None:
    schema, began = parsed(doubling(30)), process_time()
    with pytest.raises(SchemaRefused, match=f"has more than {MOST_PARTS} fields; `columns` can"):
        _ = schema.columns
    record_reader(schema, parse_columns("a STRUCT<b: STRUCT<x: INT>>, b STRING"))
    assert process_time() - began < 1
    assert len(parsed(doubling(10)).columns) == 2
