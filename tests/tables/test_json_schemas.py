"""JSON Schemas become columns."""

import json
from typing import Any

import pytest
from tests.tables.json_schema_parts import AT, DECIMAL, NULL, POINT, TEXT, WHOLE, columns, objects

from binwright.tables.columns import columns_text, stored
from binwright.tables.json_schemas import JsonSchema


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (TEXT, "string"),
        (WHOLE, "bigint"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "boolean"),
        (AT, "timestamp"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "string", "format": "uuid"}, "string"),
        ({"type": "integer", "format": "date"}, "bigint"),
        ({"type": ["string", "null"]}, "string"),
        ({"type": ["integer", "number"]}, "double"),
        (TEXT | {"nullable": True}, "string"),
        ({"enum": ["a", "b", None]}, "string"),
        ({"enum": [1, 2]}, "bigint"),
        ({"enum": [1, 2.5]}, "double"),
        ({"enum": [True]}, "boolean"),
        ({"enum": ["a", 1]}, "json"),
        ({"enum": [["a"], ["b"]]}, "json"),
        ({"const": "a"}, "string"),
        ({"const": {"a": 1}}, "json"),
        (WHOLE | {"minimum": 0, "maximum": 9}, "bigint"),
        (WHOLE | {"connect.type": "int8"}, "int"),
        (WHOLE | {"connect.type": "int16"}, "int"),
        (WHOLE | {"connect.type": "int32"}, "int"),
        (WHOLE | {"connect.type": "int64"}, "bigint"),
        ({"type": "number", "connect.type": "float32"}, "float"),
        ({"type": "number", "connect.type": "float64"}, "double"),
        (TEXT | {"connect.type": "bytes"}, "binary"),
        (DECIMAL, "decimal(38,2)"),
        (
            DECIMAL
            | {"connect.parameters": {"scale": "2", "connect.decimal.precision": "9"}},
            "decimal(9,2)",
        ),
    ],
)  # fmt: skip
def test_each_type_has_a_column_type(kind: Any, column: str) -> None:
    assert columns(objects(a=kind)) == f"a {column}"


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ({"type": "array", "items": WHOLE}, "array<bigint>"),
        ({"items": {"type": ["integer", "null"]}}, "array<bigint>"),
        ({"type": "array", "items": [WHOLE, {"type": "number"}]}, "array<double>"),
        ({"type": "array", "items": [WHOLE], "additionalItems": TEXT}, "json"),
        ({"prefixItems": [TEXT, TEXT], "items": False}, "array<string>"),
        ({"type": "array", "prefixItems": [TEXT], "items": WHOLE}, "json"),
        ({"type": "array", "items": {"type": "array", "items": TEXT}}, "array<array<string>>"),
        ({"type": "array"}, "json"),
        ({"type": "array", "items": NULL}, "json"),
        (objects(x=WHOLE, y=objects(z=TEXT)), "struct<x:bigint,y:struct<z:string>>"),
        (objects(x=WHOLE) | {"additionalProperties": TEXT}, "struct<x:bigint>"),
        ({"properties": {"x": WHOLE}}, "struct<x:bigint>"),
        ({"type": "object", "additionalProperties": WHOLE}, "map<string,bigint>"),
        ({"additionalProperties": objects(x=WHOLE)}, "map<string,struct<x:bigint>>"),
        (
            {"patternProperties": {"^a": WHOLE, "^b": {"type": "number"}},
             "additionalProperties": False},
            "map<string,double>",
        ),
        ({"type": "object", "patternProperties": {"^a": WHOLE}}, "json"),
        ({"type": "object"}, "json"),
        ({"type": "object", "additionalProperties": {}}, "json"),
        ({"type": "object", "additionalProperties": {"type": ["string", "integer"]}}, "json"),
        ({}, "json"),
        (True, "json"),
        ({"description": "anything"}, "json"),
        ({"type": ["string", "integer", "null"]}, "json"),
        (objects(x={}, y=WHOLE), "struct<x:json,y:bigint>"),
    ],
)  # fmt: skip
def test_lists_objects_and_what_has_no_single_type(kind: Any, column: str) -> None:
    assert columns(objects(a=kind)) == f"a {column}"


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ({"oneOf": [NULL, WHOLE]}, "bigint"),
        ({"anyOf": [WHOLE, NULL]}, "bigint"),
        ({"oneOf": [NULL, WHOLE | {"connect.type": "int32"}]}, "int"),
        ({"oneOf": [TEXT, {"const": "x"}]}, "string"),
        ({"oneOf": [AT, {"type": "string", "format": "date"}]}, "string"),
        ({"anyOf": [WHOLE, {"type": "number"}]}, "double"),
        ({"anyOf": [WHOLE, WHOLE | {"connect.type": "int32"}]}, "bigint"),
        ({"anyOf": [WHOLE, TEXT]}, "json"),
        ({"anyOf": [WHOLE, objects(x=WHOLE)]}, "json"),
        ({"anyOf": [objects(x=WHOLE), objects(y=TEXT)]}, "struct<x:bigint,y:string>"),
        (
            {"oneOf": [objects(x=WHOLE, y=AT), objects(x=TEXT, z=WHOLE)]},
            "struct<x:json,y:timestamp,z:bigint>",
        ),
        ({"oneOf": [{"items": WHOLE}, {"items": {"type": "number"}}]}, "array<double>"),
        ({"oneOf": [{"items": WHOLE}, {"items": TEXT}]}, "json"),
        (
            {"oneOf": [{"additionalProperties": objects(x=WHOLE)},
                       {"additionalProperties": objects(y=WHOLE)}]},
            "map<string,struct<x:bigint,y:bigint>>",
        ),
        ({"oneOf": [{"items": WHOLE}, {"additionalProperties": WHOLE}]}, "json"),
        (
            objects(x=WHOLE) | {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]},
            "struct<x:bigint>",
        ),
        (
            objects(x=WHOLE) | {"oneOf": [{"required": ["x"]}, {"properties": {"y": TEXT}}]},
            "struct<x:bigint,y:string>",
        ),
        ({"type": "object", "oneOf": [objects(x=WHOLE), objects(y=TEXT)]},
         "struct<x:bigint,y:string>"),
        (TEXT | {"anyOf": [{"minLength": 3}, {"pattern": "a"}]}, "string"),
        ({"allOf": [objects(x=WHOLE), objects(y=TEXT)]}, "struct<x:bigint,y:string>"),
        (objects(x={}) | {"allOf": [objects(x=WHOLE)]}, "struct<x:bigint>"),
        ({"allOf": [TEXT, {"type": "string", "format": "date-time"}]}, "timestamp"),
        ({"allOf": [{"type": "number"}, WHOLE]}, "bigint"),
        ({"allOf": [{"type": "array"}, {"items": WHOLE}]}, "array<bigint>"),
        ({"allOf": [{"items": objects(x={})}, {"items": objects(x=TEXT)}]},
         "array<struct<x:string>>"),
        ({"allOf": [{"additionalProperties": WHOLE}, objects(x=WHOLE)]}, "struct<x:bigint>"),
        ({"allOf": [{}, {"minLength": 3}]}, "json"),
        (
            objects(x=WHOLE)
            | {"if": {"required": ["x"]}, "then": objects(y=TEXT), "else": objects(z=AT)},
            "struct<x:bigint,y:string,z:timestamp>",
        ),
        (
            objects(x=WHOLE, y={})
            | {"allOf": [{"if": {}, "then": objects(y=TEXT, z=WHOLE)},
                         {"allOf": [{"if": {}, "then": objects(y=WHOLE, z=WHOLE)}]}]},
            "struct<x:bigint,y:json,z:bigint>",
        ),
        ({"type": ["object", "null"], "if": {}, "then": objects(y=TEXT)}, "struct<y:string>"),
        ({"type": ["object", "string"], "if": {}, "then": objects(y=TEXT)}, "json"),
        (TEXT | {"if": {}, "then": objects(y=TEXT)}, "string"),
        (objects(x=WHOLE) | {"then": objects(y=TEXT)}, "struct<x:bigint>"),
        (objects(x=WHOLE) | {"dependentSchemas": {"x": objects(y=TEXT)}},
         "struct<x:bigint,y:string>"),
        (objects(x=WHOLE) | {"dependencies": {"x": ["y"], "y": objects(z=TEXT)}},
         "struct<x:bigint,z:string>"),
    ],
)  # fmt: skip
def test_several_schemas_of_one_value(kind: Any, column: str) -> None:
    assert columns(objects(a=kind)) == f"a {column}"


@pytest.mark.parametrize(
    "kind",
    [
        NULL,
        False,
        {"type": []},
        {"enum": [None]},
        {"oneOf": [NULL]},
        objects(x=NULL),
        {"type": "object", "additionalProperties": False},
        {"type": "object", "additionalProperties": NULL},
    ],
)
def test_what_has_no_value_has_no_column(kind: Any) -> None:
    assert columns(objects(a=kind, b=TEXT)) == "b string"


# --- references -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (objects(a={"$ref": "#/definitions/p"}) | {"definitions": {"p": POINT}}, POINT),
        (objects(a={"$ref": "#/$defs/p"}) | {"$defs": {"p": POINT}}, POINT),
        (objects(a={"$ref": "#/$defs/p~1q%20~0"}) | {"$defs": {"p/q ~": POINT}}, POINT),
        (objects(a={"$ref": "#/$defs/0/1"}) | {"$defs": [[NULL, POINT]]}, POINT),
        (objects(a={"$ref": "#p"}) | {"$defs": {"p": POINT | {"$anchor": "p"}}}, POINT),
        (objects(a={"$ref": "#p"}) | {"$defs": {"p": POINT | {"$id": "#p"}}}, POINT),
        (
            objects(a={"$dynamicRef": "#p"}) | {"$defs": {"p": POINT | {"$dynamicAnchor": "p"}}},
            POINT,
        ),
        (objects(a={"$ref": "p.json"}) | {"$defs": {"p": POINT | {"$id": "p.json"}}}, POINT),
        (
            objects(a={"$ref": "p.json"})
            | {"$id": "http://h/d/top.json", "$defs": {"p": POINT | {"$id": "p.json"}}},
            POINT,
        ),
        (
            objects(a={"$ref": "http://h/d/p.json"})
            | {"$id": "http://h/d/top.json", "$defs": {"p": POINT | {"$id": "p.json"}}},
            POINT,
        ),
        (
            objects(a={"$ref": "p.json#/$defs/q"})
            | {"id": "top.json", "$defs": {"p": {"id": "p.json", "$defs": {"q": POINT}}}},
            POINT,
        ),
        (objects(a={"$ref": "#/properties/b"}, b=POINT), POINT),
        (  # what is within an embedded schema refers to that
            objects(a={"$ref": "p.json"})
            | {"$defs": {"p": objects(x={"$ref": "#/$defs/q"})
                         | {"$id": "p.json", "$defs": {"q": WHOLE}}, "q": TEXT}},
            POINT,
        ),
        (  # so does what is reached through it
            objects(a={"$ref": "#/$defs/p/$defs/r"})
            | {"$defs": {"p": {"$id": "p.json", "$defs": {
                "r": objects(x={"$ref": "#/$defs/q"}), "q": WHOLE}}, "q": TEXT}},
            POINT,
        ),
        (  # an id that is no address must not hide what is around
            objects(a=objects(x={"$ref": "#/$defs/q"}) | {"id": "Point"}) | {"$defs": {"q": WHOLE}},
            POINT,
        ),
    ],
)  # fmt: skip
def test_references_within_the_document(schema: Any, found: Any) -> None:
    assert columns(schema).split(", b ")[0] == columns(objects(a=found))


def test_the_top_may_be_a_reference() -> None:
    top = {"$ref": "#/definitions/p", "definitions": {"p": POINT}}
    assert columns(top) == "x bigint"


def test_references_to_other_documents_are_found_by_their_names() -> None:
    line = objects(a={"$ref": "point.json"}, b={"$ref": "point.json#/properties/x"})
    found = "line struct<a:struct<x:bigint>,b:bigint>"
    top = objects(line={"$ref": "geo/line.json"})
    assert columns(top, **{"point.json": POINT, "geo/line.json": line}) == found
    addressed = top | {"$id": "https://h/top.json"}
    assert columns(addressed, **{"point.json": POINT, "geo/line.json": line}) == found
    absolute = objects(line={"$ref": "https://h/geo/line.json"}) | {"$id": "https://h/top.json"}
    assert columns(absolute, **{"point.json": POINT, "geo/line.json": line}) == found
    named = line | {"$id": "https://h/geo/line.json"}
    assert columns(absolute, line=named, **{"point.json": POINT}) == found


def test_columns_without_a_single_type_are_stored_as_text() -> None:
    kind = objects(
        a={}, b={"items": objects(x={})}, c={"additionalProperties": objects(x={})}, d=WHOLE
    )
    found = stored(JsonSchema(json.dumps(kind)).columns)
    assert columns_text(found) == (
        "a string, b array<struct<x:string>>, c map<string,struct<x:string>>, d bigint"
    )
