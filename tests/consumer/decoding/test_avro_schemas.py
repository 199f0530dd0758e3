"""Avro schemas become columns; those that no reader may be given are refused."""

from typing import Any

import pytest
from tests.consumer.decoding.avro import parsed, record

from binwright.consumer.decoding.avro_schemas import AvroSchema
from binwright.protocol.columns import columns_text
from binwright.protocol.schemas import SchemaRefused


def columns(schema: Any, *references: Any) -> str:
    return columns_text(parsed(schema, *references).columns)


def unnamed(name: object) -> Any:
    return record(("a", "int"), name="P") | {"fields": [{"name": name, "type": "int"}]}


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
    ],
)
def test_what_is_no_record_is_one_column(schema: Any, column: str) -> None:
    assert columns(schema) == column


def test_what_is_no_record_may_be_a_type_of_another_schema() -> None:
    assert columns("Point", record(("x", "int"), name="Point")) == "value struct<x:int>"


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (record(("a", "geo.Point")), "is no Avro schema: UnknownType"),
        ({"type": "record", "fields": []}, "is no Avro schema"),
        ({"a": 1}, "is no Avro schema"),
        (7, "is no Avro schema"),
        (record(("a", ["null", "R"]), name="R"), "has the type R within itself"),
        (record(("a", {"type": "array", "items": "null"})), "has a list of what takes no bytes"),
        (
            record(("a", {"type": "array", "items": record(("n", "null"), name="N")})),
            "has a list of what takes no bytes",
        ),
        (
            record(("a", {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}})),
            "has a list of what takes no bytes",
        ),
        (
            record(("a", {"type": "error", "name": "E", "fields": []})),
            "has the type error, which no value has",
        ),
        (unnamed(-1), "has a field whose name is no text, but -1"),
        (record(("a", unnamed(["b"]))), "no text, but .'b'."),
        (record(("a", "int"), ("a", "long")), "has two fields named a"),
    ],
)
def test_what_no_reader_may_be_given_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaRefused, match=reason):
        parsed(schema)


@pytest.mark.parametrize("text", ["", "{", "\ud800", "[" * 5_000, '{"type":' * 3_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(SchemaRefused, match=r"is no Avro schema|is nested too deep"):
        AvroSchema(text)


def test_a_schema_that_is_nested_too_deep_is_refused() -> None:
    kind: Any = "int"
    for _ in range(40):
        kind = {"type": "array", "items": kind}
    with pytest.raises(SchemaRefused, match="is nested more than 32 deep"):
        parsed(record(("a", kind)))
    for _ in range(900):
        kind = {"type": "array", "items": kind}
    with pytest.raises(SchemaRefused, match="is nested"):
        parsed(record(("a", kind)))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (record(("a", ["int", "string"])), "a: a union of int, string has no column type"),
        (record(("a", record(("b", ["int", "string"]), name="P"))), "a: b: a union of"),
        (record(("a", {"type": "map", "values": "null"})), "a: a list of nothing has no"),
        (record(("id", "int"), ("ID", "int")), "fields whose names differ in case only: id"),
        (record(("_Kafka", "int")), "has a field _kafka"),
        (
            record(("a", {"type": "bytes", "logicalType": "decimal", "precision": 50})),
            r"a: a decimal\(50,0\) has no column type",
        ),
    ],
)
def test_what_has_no_columns_is_reported(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaRefused, match=reason):
        _ = parsed(schema).columns
