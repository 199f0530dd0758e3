"""JSON Schemas become columns; those that have none, or too many, are refused."""

import json
from typing import Any

import pytest

from binwright.protocol.columns import columns_text, parse_columns, stored
from binwright.protocol.json_documents import LONGEST_ADDRESS, address_of
from binwright.protocol.json_schemas import LONGEST_PATH, MOST_PARTS, JsonSchema
from binwright.protocol.schemas import SchemaRefused

TEXT, WHOLE, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
AT = {"type": "string", "format": "date-time"}
DECIMAL = {
    "type": "number",
    "connect.type": "bytes",
    "title": "org.apache.kafka.connect.data.Decimal",
    "connect.parameters": {"scale": "2"},
}


def objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def columns(schema: Any, **references: Any) -> str:
    texts = {name: json.dumps(each) for name, each in references.items()}
    return columns_text(JsonSchema(json.dumps(schema), texts).columns)


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

POINT = objects(x=WHOLE)


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


# --- refusals -------------------------------------------------------------------------------------


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = WHOLE
    for _ in range(depth):
        found = {"type": "array", "items": found}
    return objects(a=found)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({}, "describes no object with properties"),
        (True, "describes no object with properties"),
        (TEXT, "describes no object with properties"),
        ({"type": "array", "items": POINT}, "describes no object with properties"),
        ({"type": "object"}, "describes no object with properties"),
        ({"type": "object", "additionalProperties": TEXT}, "describes no object with properties"),
        ([POINT], "has no object where a schema must be"),
        (objects(a=5), "a: has no object where a schema must be"),
        (objects(a=objects(b={"type": "date"})), "a: b: has the type 'date', which no value has"),
        (objects(a={"type": {}}), "a: has the type {}, which no value has"),
        (objects(a={"type": None}), "a: has the type None, which no value has"),
        ({"properties": []}, "has properties, which is no object"),
        (objects(a={"allOf": {}}), "a: has allOf, which is no array"),
        (objects(a={"$ref": "#/$defs/b"}), "a: refers to #/$defs/b, which is not there"),
        (objects(a={"$ref": "#b"}), "a: refers to #b, which is not there"),
        (objects(a={"$ref": "b.json"}), "a: refers to b.json, which is not there"),
        (
            objects(a={"$ref": "http://[/b"}) | {"$id": "http://h/top.json"},
            "a: refers to http://[/b, which is not there",
        ),
        (objects(a={"$ref": "#/properties/a/$ref/0"}), "a: refers to #/properties/a/$ref/0, w"),
        (objects(a={"$ref": "#/allOf/9"}) | {"allOf": [{}]}, "a: refers to #/allOf/9, which is"),
        (objects(a={"$ref": 5}), "a: refers to something by no text"),
        (objects(a={"$ref": "#"}), "a: has # within itself"),
        (objects(a={"$recursiveRef": "#"}), "a: has # within itself"),
        (
            objects(a={"$ref": "#/$defs/n"})
            | {"$defs": {"n": objects(next={"$ref": "#/$defs/n"})}},
            "a: next: has #/$defs/n within itself",
        ),
        (
            {"$ref": "#/$defs/a",
             "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            "has #/$defs/a within itself",
        ),
        (objects(ab=TEXT, aB=TEXT), "has fields whose names differ in case only: ab"),
        (
            {"allOf": [objects(ab=TEXT), objects(aB=TEXT)]},
            "has fields whose names differ in case only: ab",
        ),
        (objects(_Kafka=TEXT), "has a field _kafka, which is the record's place in Kafka"),
        (objects(**{"first name": TEXT}), "has a field 'first name', which is no name of a column"),
        (objects(**{1_001 * "a": TEXT}), "has a field 'aaa"),
        (objects(**{"": TEXT}), "has a field '', which is no name of a column"),
        (objects(**{"a\x00": TEXT}), "has a field 'a\\x00', which is no name of a column"),
        (objects(a=DECIMAL | {"connect.parameters": {}}), "a: is a decimal without a scale"),
        (
            objects(a=DECIMAL | {"connect.parameters": {"scale": "39"}}),
            "a: a decimal(38,39) has no column type",
        ),
        (nested(33), "a: is nested more than 32 deep"),
    ],
)  # fmt: skip
def test_what_has_no_columns_is_refused_with_the_field(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaRefused) as refused:
        columns(schema)
    assert str(refused.value).startswith(reason)


def test_types_may_lie_as_deep_as_those_of_the_settings() -> None:
    text = columns(nested(32))
    assert columns_text(parse_columns(text)) == text


@pytest.mark.parametrize("text", ["", "{", "[1,]", "[" * 5_000, '{"a": NaN}', '{"a": "\\ud800"}'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(SchemaRefused, match=r"^is no JSON: "):
        JsonSchema(text)
    with pytest.raises(SchemaRefused, match=r"^is no JSON: "):
        JsonSchema("{}", {"a": text})


def test_a_schema_that_doubles_at_each_step_is_refused() -> None:
    steps = {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(40)}
    top = {"$ref": "#/$defs/0", "$defs": steps | {"40": POINT}}
    with pytest.raises(SchemaRefused, match=f"has more than {MOST_PARTS} parts"):
        columns(top)


def test_a_schema_that_is_merged_at_each_step_is_refused() -> None:
    top = objects(a=objects(**{f"x{n}": TEXT for n in range(5_000)}))
    for n in range(90):
        top = {"allOf": [top, objects(a=objects(**{f"y{n}": TEXT}))]}
    with pytest.raises(SchemaRefused, match="takes too long to read"):
        columns(top)


def test_addresses_that_grow_are_read_at_once() -> None:
    top = POINT | {"$defs": {"p": {str(n): {"$id": "y/" * 900} for n in range(2_000)}}}
    for n in range(300):
        top = {"$id": f"{n}/" + "x/" * 900, "$ref": "#/$defs/n", "$defs": {"n": top}}
    with pytest.raises(SchemaRefused, match="is nested more than 32 deep"):
        columns(top)
    assert address_of({"$id": "x" * LONGEST_ADDRESS}) is not None
    assert address_of({"$id": "x" * (LONGEST_ADDRESS + 1)}) is None
    long = {"$id": "x" * 1_000_000, "$defs": {str(n): {"$id": "y"} for n in range(2_000)}}
    assert columns(POINT | {"$defs": long}) == "x bigint"


@pytest.mark.parametrize(
    "part",
    [
        {"enum": ["x"] * 50_000},
        {"dependencies": {str(n): [] for n in range(50_000)}},
        {"description": "x" * 1_000_000},
        {str(n): 1 for n in range(50_000)},
    ],
)
def test_a_large_part_that_is_used_often_is_refused(part: Any) -> None:
    uses = {f"a{n}": {"$ref": "#/$defs/p"} for n in range(1_000)}
    with pytest.raises(SchemaRefused, match="takes too long to read"):
        columns(objects(**uses) | {"$defs": {"p": part}})


def test_a_long_way_of_references_is_refused() -> None:
    steps = {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(2 * LONGEST_PATH)}
    with pytest.raises(SchemaRefused, match="is nested more than"):
        columns({"$ref": "#/$defs/0", "$defs": steps})


def test_many_fields_are_not_slow() -> None:
    many = objects(**{f"a{n}": TEXT for n in range(MOST_PARTS - 1)})
    assert len(JsonSchema(json.dumps(many)).columns) == MOST_PARTS - 1
    with pytest.raises(SchemaRefused, match=f"has more than {MOST_PARTS} parts"):
        columns({"allOf": [many, POINT]})


def test_columns_without_a_single_type_are_stored_as_text() -> None:
    kind = objects(
        a={}, b={"items": objects(x={})}, c={"additionalProperties": objects(x={})}, d=WHOLE
    )
    found = stored(JsonSchema(json.dumps(kind)).columns)
    assert columns_text(found) == (
        "a string, b array<struct<x:string>>, c map<string,struct<x:string>>, d bigint"
    )
