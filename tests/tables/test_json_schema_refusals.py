"""JSON Schemas that have no columns, or too many, are refused with the field."""

import json
from typing import Any

import pytest
from tests.tables.json_schema_parts import DECIMAL, POINT, TEXT, WHOLE, columns, objects

from binwright.tables.columns import JSON, columns_text, parse_columns, stored
from binwright.tables.json_documents import LONGEST_ADDRESS, address_of
from binwright.tables.json_schemas import LONGEST_PATH, MOST_PARTS, JsonSchema
from binwright.tables.schemas import SchemaRefused, renamed


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
        ({"properties": []}, "has properties, which is no object"),
        (
            {"$ref": "#/$defs/a",
             "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            "has #/$defs/a within itself",
        ),
    ],
)  # fmt: skip
def test_what_has_no_columns_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaRefused) as refused:
        columns(schema)
    assert str(refused.value).startswith(reason)


@pytest.mark.parametrize(
    ("part", "more", "why"),
    [
        (5, {}, "has no object where a schema must be"),
        ({"type": "date"}, {}, "has the type 'date', which no value has"),
        ({"type": {}}, {}, "has the type {}, which no value has"),
        ({"type": None}, {}, "has the type None, which no value has"),
        ({"allOf": {}}, {}, "has allOf, which is no array"),
        ({"$ref": "#/$defs/b"}, {}, "refers to #/$defs/b, which is not there"),
        ({"$ref": "#b"}, {}, "refers to #b, which is not there"),
        ({"$ref": "b.json"}, {}, "refers to b.json, which is not there"),
        ({"$ref": "http://[/b"}, {"$id": "http://h/top.json"}, "refers to http://[/b, which is n"),
        ({"$ref": "#/properties/a/$ref/0"}, {}, "refers to #/properties/a/$ref/0, which is not"),
        ({"$ref": "#/allOf/9"}, {"allOf": [{}]}, "refers to #/allOf/9, which is not there"),
        ({"$ref": 5}, {}, "refers to something by no text"),
        ({"$ref": "#"}, {}, "has # within itself"),
        ({"$recursiveRef": "#"}, {}, "has # within itself"),
        ({"type": "array", "items": {"$ref": "#"}}, {}, "has # within itself"),
        (DECIMAL | {"connect.parameters": {}}, {}, "is a decimal without a scale"),
        (
            DECIMAL | {"connect.parameters": {"scale": "39"}},
            {},
            "is a decimal(38,39), which no column has",
        ),
    ],
)
def test_a_property_without_a_column_type_is_json_and_costs_no_other(
    part: Any, more: dict[str, Any], why: str
) -> None:
    schema = JsonSchema(json.dumps(objects(a=part, b=TEXT) | more))
    assert columns_text(stored(schema.columns)) == "a string, b string"
    assert schema.columns[0].type == JSON
    (note,) = schema.notes
    assert note.startswith(f"a is JSON as text: it {why}")


def test_of_a_schema_that_a_person_wrote_each_part_must_be_one() -> None:
    broken = objects(a=objects(b={"$ref": "#/$defs/b"}))
    with pytest.raises(SchemaRefused, match="a: b: refers to"):
        _ = JsonSchema(json.dumps(broken), is_whole=True).columns
    tree = JsonSchema(json.dumps(objects(a={"$ref": "#"})), is_whole=True)
    assert columns_text(stored(tree.columns)) == "a string"


def test_a_schema_within_itself_is_json_where_it_begins_again() -> None:
    tree = objects(id=WHOLE, next={"$ref": "#/$defs/n"})
    top = objects(a={"$ref": "#/$defs/n"}) | {"$defs": {"n": tree}}
    assert columns(top) == "a struct<id:bigint,next:json>"


@pytest.mark.parametrize("precision", ["64", "38", "39"])
def test_a_decimal_of_more_digits_than_a_column_has_is_as_wide_as_one(precision: str) -> None:
    given = {"scale": "2", "connect.decimal.precision": precision}
    assert columns(objects(a=DECIMAL | {"connect.parameters": given})) == "a decimal(38,2)"


def test_properties_of_any_name_have_columns() -> None:
    names = ["first name", "ab", "aB", "_Kafka", "", "a\x00", 1_001 * "a"]
    schema = JsonSchema(json.dumps(objects(**dict.fromkeys(names, TEXT))))
    assert [c.name for c in schema.columns] == [
        "first_name", "ab", "aB_2", "_Kafka_2", "_", "a_", 1_000 * "a"
    ]  # fmt: skip
    assert [c.named for c in schema.columns] == names
    notes = [*renamed(schema.columns)]
    assert notes[0] == "first name is in the column first_name"
    assert len(notes) == len(names) - 1
    nested = JsonSchema(json.dumps(objects(a={"type": "array", "items": objects(**{"x y": TEXT})})))
    assert [*renamed(nested.columns)] == ["a.x y is in the column a.x_y"]


def test_names_that_differ_in_case_are_columns_of_their_own_where_schemas_are_merged() -> None:
    assert columns({"allOf": [objects(ab=TEXT), objects(aB=WHOLE)]}) == "ab string, aB_2 bigint"


def test_what_is_nested_too_deep_is_json_where_its_property_begins() -> None:
    assert columns(nested(33)) == "a json"
    inner: Any = objects(x=WHOLE)
    for _ in range(32):
        inner = {"type": "array", "items": inner}
    assert columns(objects(a=inner)) == "a json"
    deep: Any = WHOLE
    for _ in range(40):
        deep = objects(a=deep)
    text = columns(deep).replace("json", "string")
    assert text.count("struct<") == 32
    assert columns_text(parse_columns(text)) == text


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
