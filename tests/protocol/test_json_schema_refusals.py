"""JSON Schemas that have no columns, or too many, are refused with the field."""

import json
from typing import Any

import pytest
from tests.protocol.json_schema_parts import DECIMAL, POINT, TEXT, WHOLE, columns, objects

from binwright.protocol.columns import columns_text, parse_columns
from binwright.protocol.json_documents import LONGEST_ADDRESS, address_of
from binwright.protocol.json_schemas import LONGEST_PATH, MOST_PARTS, JsonSchema
from binwright.protocol.schemas import SchemaRefused


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
