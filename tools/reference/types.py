"""The page of types: what fields of each format are as columns, by the code that maps them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from tools.reference.markdown import Entry, code, entries

from binwright.consumer.decide.widening import widens
from binwright.consumer.decode.arrow_types import arrow_type
from binwright.consumer.decode.avro_schemas import SIMPLE as AVRO_SIMPLE
from binwright.consumer.decode.avro_schemas import TICKS, AvroSchema
from binwright.consumer.decode.protobuf_compiler import compiled
from binwright.consumer.decode.protobuf_schemas import KINDS, ProtobufSchema
from binwright.tables.columns import (
    ALIASES,
    MOST_DIGITS,
    SIMPLE,
    Columns,
    ColumnType,
    Decimal,
    Simple,
    parse_columns,
    stored,
)
from binwright.tables.json_schemas import FORMATS, INTEGERS, JsonSchema
from binwright.tables.schemas import SchemaRefused

HEAD = """\
# Types

What the type of a field is as a column; the first list has as what a column is staged (Arrow's
name, in Parquet). Each line is what the code makes of an example. Every column may be NULL. How
tables get their columns, and what becomes of values that do not fit:
[columns.md](../how-to/columns.md).
"""
FIELD, OTHER = "x", "y"
NONE = "none: there is nothing to store"

AVRO_NAMED: Mapping[str, Any] = {
    "enum": {"type": "enum", "name": "Color", "symbols": ["RED"]},
    "fixed": {"type": "fixed", "name": "Hash", "size": 16},
}
AVRO_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
AVRO: Sequence[tuple[Any, str]] = (
    ({"type": "int", "logicalType": "date"}, ""),
    *(
        ({"type": "long", "logicalType": name}, "nanoseconds are cut" if "nanos" in name else "")
        for name in TICKS
    ),
    (AVRO_DECIMAL, "one of `columns` may be string, or binary: the bytes"),
    (AVRO_DECIMAL | {"precision": 64}, "a value of more digits is bad by itself"),
    (AVRO_DECIMAL | {"precision": 64, "scale": 39}, "the number as text"),
    (AVRO_DECIMAL | {"scale": -2}, "Avro has a logical type ignored that is not valid"),
    ({"type": "string", "logicalType": "uuid"}, ""),
    ({"type": "int", "logicalType": "time-millis"}, "the number as stored, as of any other"),
    (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        "the number as stored; one of `columns` may be timestamp, read as UTC",
    ),
    (["null", "int"], "a union with null alone is the other type"),
    (["null", "int", "long"], "of numbers the widest type"),
    (["null", "string", "boolean"], "as JSON, as are other unions"),
    (
        [
            {"type": "record", "name": "A", "fields": [{"name": "n", "type": "int"}]},
            {"type": "record", "name": "B", "fields": []},
        ],
        "of records a struct for each",
    ),
    ({"type": "array", "items": "int"}, ""),
    ({"type": "map", "values": "int"}, ""),
    ({"type": "record", "name": "By", "fields": [{"name": "n", "type": "int"}]}, ""),
    ("Row", "the record itself, within itself: as JSON"),
    ({"type": "record", "name": "Empty", "fields": []}, ""),
    (["null", {"type": "record", "name": "Empty", "fields": []}], "true, or NULL"),
    ("null", ""),
    ({"type": "array", "items": "null"}, "a list of what takes no bytes"),
)
PROTOBUF: Sequence[tuple[str, str]] = (
    ("optional int32", "NULL where it is absent; others have their default value"),
    ("repeated int32", ""),
    ("By", "a message"),
    ("map<string, int32>", ""),
    ("map<int32, string>", "as is every map whose keys are no text"),
    ("google.protobuf.Timestamp", "nanoseconds are cut"),
    ("google.protobuf.Int32Value", "as are all wrappers: the type within, NULL where absent"),
    ("google.protobuf.Struct", "as JSON, as are `Value` and `ListValue`"),
    ("google.protobuf.Duration", "as are other messages of `google.protobuf`"),
    ("google.protobuf.Any", ""),
    (
        "Empty",
        "a message without fields: true, or NULL where absent. One of `columns` may be boolean",
    ),
    ("repeated Empty", ""),
    ("Again", "a message within itself: as JSON"),
)
PROTOBUF_NOTES = {"enum": "its name; a number without one as text. One of `columns` may be int"}
PROTOBUF_HEAD = """syntax = "proto3";
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Color { RED = 0; }
message By { int32 n = 1; }
message Empty {}
message Again { Again again = 1; }
"""
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}}
JSON_SCHEMA: Sequence[tuple[Any, str]] = (
    *(({"type": name}, "") for name in ("boolean", "integer", "number", "string")),
    *(({"type": "string", "format": name}, "") for name in FORMATS),
    *(({"type": "integer", "connect.type": name}, "of Connect's converter") for name in INTEGERS),
    ({"type": "number", "connect.type": "float32"}, "of Connect's converter"),
    ({"type": "string", "connect.type": "bytes"}, "base64, of Connect's converter"),
    (
        {
            "type": "number",
            "title": "org.apache.kafka.connect.data.Decimal",
            "connect.parameters": {"scale": "2"},
        },
        "of Connect's converter",
    ),
    (OBJECT, "what else a value has is left out"),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "so `patternProperties`"),
    ({"type": "object"}, "as JSON"),
    ({"type": "array", "items": {"type": "integer"}}, "so `prefixItems` of one type"),
    ({"type": "array"}, "items as JSON"),
    ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, "as JSON"),
    ({"type": ["null", "string"]}, "so `oneOf` and `anyOf` with null, and `nullable`"),
    ({"type": ["integer", "string"]}, "as JSON"),
    ({}, "any value, as JSON"),
    ({"enum": ["red", "green"]}, "the type of its values; so `const`"),
    ({"allOf": [OBJECT, {"properties": {"m": {"type": "string"}}}]}, "so `$ref` beside others"),
    ({"oneOf": [OBJECT, {"properties": {"m": {"type": "string"}}}]}, "so `anyOf`, `if`"),
    ({"type": "null"}, ""),
    (False, ""),
    ({"$ref": "#"}, "the schema itself, within itself: as JSON"),
)
DDL = (
    *sorted(SIMPLE),
    *("decimal(9,2)", f"decimal({MOST_DIGITS + 1},0)", "variant"),
    *("array<int>", "map<string,int>", "struct<n:int>"),
    *("map<int,string>", "array<variant>", "timestamp_ntz"),
)


def page() -> str:
    """Return the reference, in Markdown."""
    aliases = ", ".join(f"{code(name)} ({kind})" for name, kind in sorted(ALIASES.items()))
    return "\n".join(
        [
            HEAD,
            f"## `columns` of the settings\n\nOther names: {aliases}. As what each is staged:\n",
            entries(map(_ddl, DDL)),
            "## Avro\n\nA schema that is no record has one column, `value`, of its type.\n",
            entries(_avro()),
            "## Protobuf\n\nOf a `oneof` each field has a column; one at most is not NULL.\n",
            entries(_protobuf()),
            "## JSON Schema\n\nDrafts 4 to 2020-12.\n",
            entries(_json_schema(*each) for each in JSON_SCHEMA),
            "## Wider columns\n\nWhat a column may become with `widen = true`.\n",
            entries(_wider()),
        ]
    )


def _row(name: str, columns: Columns, note: str) -> Entry:
    """Return the line of a field, whose column these are, if it has one."""
    if not columns:
        return _entry(name, NONE, note)
    (column,) = stored(columns)
    return _entry(name, code(str(column.type)), note)


def _refused(name: str, why: object, note: str) -> Entry:
    return _entry(name, f"refused: {str(why).removeprefix(f'{FIELD}: ')}", note)


def _entry(name: str, becomes: str, note: str) -> Entry:
    return code(name), (), f"{becomes}; {note}" if note else becomes


def _ddl(text: str) -> Entry:
    try:
        (column,) = stored(parse_columns(f"{FIELD} {text}"))
        return _entry(text, code(str(arrow_type(column.type))), "")
    except ValueError as exc:
        return _refused(text, exc, "")


def _avro() -> Iterator[Entry]:
    for node, note in (*((AVRO_NAMED.get(each, each), "") for each in AVRO_SIMPLE), *AVRO):
        name = node if isinstance(node, str) else _compact(node)
        fields = [{"name": FIELD, "type": node}]
        try:
            schema = AvroSchema(json.dumps({"type": "record", "name": "Row", "fields": fields}))
            yield _row(name, schema.columns, note)
        except SchemaRefused as exc:
            yield _refused(name, exc, note)


def _protobuf() -> Iterator[Entry]:
    names = [FieldDescriptorProto.Type.Name(each)[len("TYPE_") :].lower() for each in KINDS]
    samples = [*((name, PROTOBUF_NOTES.get(name, "")) for name in names), *PROTOBUF]
    messages = (
        f"message Row{number} {{ {'Color' if kind == 'enum' else kind} {FIELD} = 1; }}\n"
        for number, (kind, _) in enumerate(samples)
    )
    schema = ProtobufSchema(compiled(PROTOBUF_HEAD + "".join(messages), {}))
    for number, (kind, note) in enumerate(samples):
        try:
            yield _row(kind, schema.columns(f"Row{number}"), note)
        except SchemaRefused as exc:
            yield _refused(kind, exc, note)


def _json_schema(node: Any, note: str) -> Entry:
    name = _compact(node)
    try:
        properties = {FIELD: node, OTHER: {"type": "boolean"}}
        schema = JsonSchema(json.dumps({"type": "object", "properties": properties}))
        return _row(name, tuple(c for c in schema.columns if c.name == FIELD), note)
    except SchemaRefused as exc:
        return _refused(name, exc, note)


def _wider() -> Iterator[Entry]:
    kinds: list[ColumnType] = [*map(Simple, sorted(SIMPLE)), Decimal(9, 2)]
    wanted = [*kinds, Decimal(10, 0), Decimal(20, 0), Decimal(11, 4)]
    for kind in kinds:
        if found := [str(each) for each in wanted if widens(kind, each)]:
            yield _entry(str(kind), ", ".join(map(code, found)), "")


def _compact(node: Any) -> str:
    return json.dumps(node, separators=(",", ":"))
