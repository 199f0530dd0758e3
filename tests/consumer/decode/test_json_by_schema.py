"""JSON values behind a header land by the table's columns, if their schema's fields fit them."""

import random
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from tests.consumer.decode.avro import parsed as avro_schema
from tests.consumer.decode.avro import record
from tests.consumer.decode.json_schema import objects, parsed, written

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.json_by_schema import JsonReading, JsonSchemaDecoder, misfit
from binwright.consumer.decode.json_records import RecordReader
from binwright.consumer.decode.one_by_one import Bad
from binwright.tables.columns import (
    JSON,
    Array,
    Column,
    Columns,
    Map,
    Simple,
    Struct,
    parse_columns,
)
from binwright.tables.json_schemas import JsonSchema
from binwright.tables.schemas import SchemaRefused

ONE = parsed(objects(id="integer"))
TWO = parsed(objects(id="integer", at={"type": "string", "format": "date-time"}))
NESTED = parsed(objects(id=objects(x="integer")))
NO_COLUMNS = parsed({"type": "array"})
COLUMNS = TWO.columns
SCHEMAS: dict[int, JsonSchema | Bad] = {
    7: ONE,
    8: TWO,
    9: Bad("schema_unknown", "no 9"),
    10: NESTED,
    11: NO_COLUMNS,
}


def decoded(values: list[bytes | None], decoder: JsonSchemaDecoder) -> tuple[list[Any], list[Any]]:
    array = pa.array([b"x", *values], pa.binary()).slice(1)  # as one of a larger array
    rows, bad = decoder.decode(array)
    for each in (rows, bad):
        each.validate(full=True)
    assert (rows.type, bad.type) == (row_type(decoder.columns), BAD)
    assert len(rows) == len(bad) == len(values)
    return rows.to_pylist(), bad.to_pylist()


def test_each_value_is_read_behind_its_header() -> None:
    values = [
        written({"id": 1}, 7),
        written({"id": 2, "at": "2026-01-01T00:00:00Z"}, 8),
        None,
        b"",
        b'{"id":1}',
        written({"id": 1}, 9),
        b"\0\0\0\7",
        written({"id": "x"}, 7),
        written(b"", 7),
        written(b" [1]", 8),
        written({"id": {"x": 1}}, 10),
        written([], 11),
        b"\1" + written({"id": 1})[1:],
        written({"id": None, "more": 1}, 7),
    ]
    rows, bad = decoded(values, JsonSchemaDecoder(COLUMNS, SCHEMAS))
    nothing = {"id": None, "at": None}
    assert rows == [
        {"id": 1, "at": None}, {"id": 2, "at": datetime(2026, 1, 1, tzinfo=UTC)}, nothing,
        *[None] * 10, nothing,
    ]  # fmt: skip
    assert [why and (why["kind"], why["reason"]) for why in bad] == [
        None, None, None,
        ("malformed", "needs 0 and a schema's id in front, has the string ''"),
        ("malformed", "needs 0 and a schema's id in front, has the string '7b 22 69 64 22'"),
        ("schema_unknown", "no 9"),
        ("malformed", "needs 0 and a schema's id in front, has the string '00 00 00 07'"),
        ("incompatible", "id needs bigint, has the string 'x'"),
        ("malformed", "Input is a zero-length, empty document: line 1 column 1 (char 0)"),
        ("malformed", "needs an object, has an array"),
        ("incompatible", "id needs bigint, has an object"),
        ("incompatible", "schema 11: describes no object with properties"),
        ("malformed", "needs 0 and a schema's id in front, has the string '01 00 00 00 07'"),
        None,
    ]  # fmt: skip
    assert [why and why["value"] for why in bad] == [None] * 3 + values[3:13] + [None]


@pytest.mark.parametrize("garbage", [0, 0.01])
def test_many_values_are_read_in_blocks(garbage: float, monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[bytes | None] = []

    def count(_: RecordReader, value: bytes | None) -> Any:
        alone.append(value)
        return {}

    monkeypatch.setattr(RecordReader, "read", count)
    choose = random.Random(1)
    values: list[bytes | None] = [
        b"no header" if choose.random() < garbage else written({"id": n}, 7 + n % 2)
        for n in range(20_000)
    ]
    rows, bad = decoded(values, JsonSchemaDecoder(COLUMNS, SCHEMAS))
    for n, (value, row, why) in enumerate(zip(values, rows, bad, strict=True)):
        if value == b"no header":
            assert (row, why["value"]) == (None, value)
        else:
            assert (row["id"], why) == (n, None)
    assert not alone


def test_only_bad_values_and_no_values() -> None:
    decoder = JsonSchemaDecoder(COLUMNS, {})
    assert decoded([], decoder) == ([], [])
    assert decoded([None], decoder)[0] == [{"id": None, "at": None}]
    rows, bad = decoded([b"x", b"y"], decoder)
    assert (rows, [why["value"] for why in bad]) == ([None, None], [b"x", b"y"])
    assert decoded([b"x", None], JsonSchemaDecoder((), {}))[0] == [None, {}]


def test_what_has_no_single_type_is_text_of_json() -> None:
    schema = parsed(objects(a={}, b=objects(x={}), c={"type": "array", "items": {}}))
    decoder = JsonReading().decoder(schema.columns, {7: schema})
    assert decoder.columns == parse_columns("a STRING, b STRUCT<x: STRING>, c STRING")
    texts = [
        (b'{"a": {"z" : [1.10, 12345678901234567890123]}}', '{"z":[1.10,12345678901234567890123]}'),
        (b'{"a": "x"}', '"x"'),
        (b'{"a": null}', None),
        (b'{"a": 1.0}', "1.0"),
        (b'{"a": false}', "false"),
    ]
    rows, bad = decoded([written(text) for text, _ in texts], decoder)
    assert [row["a"] for row in rows] == [expected for _, expected in texts]
    assert bad == [None] * len(texts)
    rows, _ = decoded([written({"a": "x"})] * 1_000, decoder)  # as many as are read in a block
    assert {row["a"] for row in rows} == {'"x"'}
    rows, _ = decoded([written({"b": {"x": [1]}, "c": [1, "a"]})], decoder)
    assert rows == [{"a": None, "b": {"x": "[1]"}, "c": '[1,"a"]'}]


def test_a_schema_of_another_format_is_refused() -> None:
    with pytest.raises(SchemaRefused, match="is no JSON Schema, and the table is of JSON"):
        JsonReading().of(avro_schema(record(("id", "int"))))
    assert JsonReading().of(ONE) is ONE


# --- what values would lose by the table's columns ----------------------------------------------

ID, X = parse_columns("id BIGINT"), parse_columns("x BIGINT")
STRUCT = (Column("a", Struct(X)),)


def of(kind: Any) -> Columns:
    return (Column("a", kind),)


@pytest.mark.parametrize(
    ("columns", "there", "reason"),
    [
        (ID, ID, ""),
        (ID, parse_columns("id STRING"), ""),  # each value is tried
        (ID, parse_columns("more STRING"), ""),  # is refused as one of another subject
        (ID, parse_columns("ID BIGINT"), "ID is id in the table: names match exactly"),
        (STRUCT, of(Struct(parse_columns("X BIGINT"))), "a.X is x in the table: names match ex"),
        (STRUCT, of(Simple("string")), "a is string, and struct<x:bigint> in the table"),
        (STRUCT, of(JSON), "a is json, and struct<x:bigint> in the table"),
        (STRUCT, of(Map(Simple("bigint"))), "a is map<string,bigint>, and struct<x:bigint> in"),
        (of(Array(Struct(X))), of(Array(JSON)), "a is json, and struct<x:bigint> in the table"),
        (of(Array(Struct(X))), of(JSON), "a is json, and array<struct<x:bigint>> in the table"),
        (of(Map(Struct(X))), of(JSON), "a is json, and map<string,struct<x:bigint>> in the table"),
        (of(Map(Struct(X))), of(Map(Struct(X))), ""),
        (of(Map(Struct(X))), of(Struct(of(JSON))), "a.a is json, and struct<x:bigint> in the"),
        (of(Map(Simple("bigint"))), STRUCT, ""),
        (of(JSON), STRUCT, ""),
        (of(Simple("binary")), of(Simple("string")), "a is string, and binary in the table"),
        (of(Simple("binary")), of(Simple("binary")), ""),
        (of(Simple("string")), of(Simple("binary")), ""),
        (of(Array(Simple("bigint"))), of(JSON), ""),
    ],
)  # fmt: skip
def test_what_a_reader_of_the_columns_would_leave_out_is_found(
    columns: Columns, there: Columns, reason: str
) -> None:
    found = misfit(Struct(columns), Struct(there))
    assert found[: len(reason) or 1] == reason


def test_values_that_would_lose_fields_are_bad() -> None:
    columns = parse_columns("a STRUCT<x: BIGINT>")
    decoder = JsonSchemaDecoder(columns, {7: parsed(objects(a={})), 8: parsed(objects(A={}))})
    _, bad = decoded([written({"a": {"x": 1, "y": 2}}), written({"A": 1}, 8)], decoder)
    assert [why["reason"] for why in bad] == [
        "schema 7: a is json, and struct<x:bigint> in the table",
        "schema 8: A is a in the table: names match exactly",
    ]
