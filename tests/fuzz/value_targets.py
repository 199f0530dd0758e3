"""What decodes values into columns, and the schemas of values."""

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from tests.consumer.decode.protobuf import body
from tests.fuzz.target import Target

from binwright.consumer.decode.avro_schemas import AvroSchema
from binwright.consumer.decode.avro_values import AvroDecoder
from binwright.consumer.decode.csv_values import CsvDecoder
from binwright.consumer.decode.json_by_schema import JsonSchemaDecoder
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.new_fields import KeptFields
from binwright.consumer.decode.one_by_one import Bad
from binwright.consumer.decode.protobuf_compiler import compiled
from binwright.consumer.decode.protobuf_schemas import ProtobufSchema
from binwright.consumer.decode.protobuf_values import ProtobufDecoder, TableSchema
from binwright.consumer.decode.registry_schemas import has_header, schema_id
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.tables.columns import columns_text, parse_columns, stored
from binwright.tables.json_schemas import JsonSchema
from binwright.tables.ports import ValueDecoder
from binwright.tables.schemas import SchemaRefused

HEADER = b"\0\0\0\0\x07"
JSON_DECODER = JsonDecoder(
    parse_columns(
        "id BIGINT, x DOUBLE, d DECIMAL(9,2), at TIMESTAMP, s STRUCT<b: BOOLEAN, l: ARRAY<STRING>>"
    )
)
JSON_VALUE = b'{"id":7,"x":1.5e3,"d":"1.25","at":"2026-01-01T00:00:00Z","s":{"b":true,"l":["a"]}}'
JSON_VALUES = b"\0".join([JSON_VALUE, b"{}", JSON_VALUE[:-1], b'{"d": 3.5}'] * 3)
REST_COLUMNS = parse_columns("id BIGINT, s STRUCT<b: BOOLEAN>, m ARRAY<STRUCT<x: INT>>")
REST_DECODER = JsonDecoder(REST_COLUMNS, KeptFields(REST_COLUMNS))
VARIANT_DECODER = VariantDecoder(parse_columns("value VARIANT"))
CSV_DECODER = CsvDecoder(parse_columns("id BIGINT, x DOUBLE, d DECIMAL(9,2), at TIMESTAMP"), ",")
CSV_VALUES = b"\0".join([b'7,1.5e3,"1.25",2026-01-01T00:00:00Z', b",,,", b'"a,1'] * 3)
AVRO_SCHEMA = """{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"},
 {"name": "s", "type": ["null", "string"]},
 {"name": "l", "type": {"type": "array", "items": "int"}},
 {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
 {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
 {"name": "m", "type": {"type": "map", "values": "double"}}]}"""
AVRO_VALUE = b"\x0e\x02\x04ab\x04\x02\x04\0\x02\x02\x7d\x02\x02k" + bytes(9)
_AVRO = AvroSchema(AVRO_SCHEMA)
AVRO_DECODER = AvroDecoder(_AVRO.columns, {7: _AVRO})
PROTOBUF_SCHEMA = """syntax = "proto3"; package p;
import "google/protobuf/struct.proto"; import "google/protobuf/timestamp.proto";
message M {
  int64 id = 1; optional string s = 2; repeated int32 l = 3; map<string, double> m = 4;
  google.protobuf.Timestamp at = 5; google.protobuf.Value any = 6; repeated N n = 7;
  oneof which { uint64 u = 8; E e = 9; bytes b = 10; }
  message N { int32 x = 1; map<int32, N> by = 2; string old = 3; }
}
enum E { Z = 0; ONE = 1; }"""
PROTOBUF2_SCHEMA = """syntax = "proto2"; message M { required int32 id = 1; optional string s = 2;
repeated group G = 3 { optional string t = 4; repeated M m = 5; } extensions 100 to 200; }"""
_PROTOBUF = ProtobufSchema(compiled(PROTOBUF_SCHEMA, {}))
_PROTOBUF2 = ProtobufSchema(compiled(PROTOBUF2_SCHEMA, {}))
PROTOBUF_DECODER = ProtobufDecoder(
    parse_columns(
        "id INT, s STRING, l ARRAY<BIGINT>, m MAP<STRING, DOUBLE>, at TIMESTAMP, any STRING, "
        "n ARRAY<STRUCT<x: INT, by: ARRAY<STRUCT<key: INT, value: STRUCT<old: STRING>>>>>, "
        "u DECIMAL(20,0), e STRING, b BINARY, "
        "g ARRAY<STRUCT<t: STRING, m: ARRAY<STRUCT<s: STRING>>>>"
    ),
    {7: TableSchema(_PROTOBUF, None), 8: TableSchema(_PROTOBUF2, None)},
)
PROTOBUF_END = b"\0\xff\0"
PROTOBUF_VALUE = body(
    _PROTOBUF,
    {
        "id": 7, "s": "ab", "l": [1, -1], "m": {"k": 1.5}, "at": "2026-01-01T00:00:00Z",
        "any": {"a": [1, None]}, "n": [{"x": 1, "by": {"5": {"old": "o"}}}], "e": "ONE",
    },
)  # fmt: skip
PROTOBUF2_VALUE = body(_PROTOBUF2, {"id": 1, "s": "ab", "g": [{"t": "t", "m": [{"id": 2}]}]})
PROTOBUF_VALUES = tuple(
    PROTOBUF_END.join([which + b"\0" + value, which + b"\x02\0" + value] * 3)
    for which, value in ((b"\x07", PROTOBUF_VALUE), (b"\x08", PROTOBUF2_VALUE))
)
JSON_SCHEMA = """{"$id": "https://h/o.json", "type": "object", "required": ["id"], "properties": {
 "id": {"type": "integer", "connect.type": "int32"}, "x": {"type": ["number", "null"]},
 "at": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]},
 "s": {"$ref": "#/$defs/s"}, "any": {}, "p": {"$ref": "p.json#/properties/q"},
 "l": {"type": "array", "items": [{"enum": ["a"]}], "additionalItems": {"const": "b"}},
 "m": {"type": "object", "additionalProperties": {"anyOf": [{"type": "integer"}, {"minimum": 1}]}}},
 "allOf": [{"properties": {"b": {"type": "string", "connect.type": "bytes"}}}, {"$ref": "#a"}],
 "if": {}, "then": {"properties": {"d": {"type": "number", "connect.parameters": {"scale": "2"},
  "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes"}}},
 "$defs": {"s": {"type": "object", "properties": {"b": {"type": "boolean"}}},
  "a": {"$anchor": "a", "dependentSchemas": {"b": {"properties": {"e": true}}}}}}"""
USED_SCHEMA = """{"$id": "p.json", "properties": {"q": {"patternProperties": {"^a": {"const": 1}},
 "additionalProperties": false}}}"""
_JSON = JsonSchema(JSON_SCHEMA, {"https://h/p.json": USED_SCHEMA})
JSON_SCHEMA_DECODER = JsonSchemaDecoder(_JSON.columns, {7: _JSON, 8: Bad("malformed", "x")})
JSON_SCHEMA_VALUES = b"\n".join(
    [
        HEADER + b'{"id":7,"x":1.5,"at":"2026-01-01T00:00:00Z","s":{"b":true},"any":[1]}',
        HEADER + b'{"l":["a","b"],"m":{"k":1.5},"b":"YQ==","d":1.25,"p":{"ax":1},"e":"x"}',
        HEADER[:-1] + b"\x08{}",
    ]
    * 3
)


def _text_values(decoder: ValueDecoder, content: bytes) -> object:
    """Decode values, separated as no valid one is."""
    return decoder.decode(pa.array(content.split(b"\0"), pa.binary()))


def _avro_values(content: bytes) -> object:
    """Decode values of one schema, whose header each gets."""
    values = [HEADER + value for value in content.split(b"\0\0\0")]
    return AVRO_DECODER.decode(pa.array(values, pa.binary()))


def _avro_schema(content: bytes) -> object:
    return AvroSchema(content.decode(errors="replace")).columns


def _protobuf_values(content: bytes) -> object:
    """Decode values of two schemas, of whose header each has the last byte."""
    values = [
        HEADER[:-1] + bytes((7 + value[0] % 2,)) + value[1:]
        for value in content.split(PROTOBUF_END)
        if value
    ]
    return PROTOBUF_DECODER.decode(pa.array(values, pa.binary()))


def _protobuf_schema(content: bytes) -> object:
    return ProtobufSchema(compiled(content.decode(errors="replace"), {})).columns("")


def _json_schema_values(content: bytes) -> object:
    """Decode values of two schemas; those that name others are of the first."""
    values = [
        HEADER + value[5:] if has_header(value) and schema_id(value) not in {7, 8} else value
        for value in content.split(b"\n")
    ]
    return JSON_SCHEMA_DECODER.decode(pa.array(values, pa.binary()))


def _json_schema(content: bytes) -> object:
    """Return the columns of a schema, which uses another; settings could name what is stored."""
    schema, _, used = content.decode(errors="replace").partition("\0")
    columns = JsonSchema(schema, {"https://h/p.json": used or USED_SCHEMA}).columns
    assert parse_columns(columns_text(stored(columns))) == stored(columns)
    return columns


VALUE_TARGETS: Mapping[str, Target] = {
    "JSON values": Target(partial(_text_values, JSON_DECODER), (), (JSON_VALUES,)),
    "JSON values with more fields": Target(partial(_text_values, REST_DECODER), (), (JSON_VALUES,)),
    "variant values": Target(partial(_text_values, VARIANT_DECODER), (), (JSON_VALUES,)),
    "CSV values": Target(partial(_text_values, CSV_DECODER), (), (CSV_VALUES,)),
    "Avro values": Target(_avro_values, (), (b"\0\0\0".join([AVRO_VALUE] * 3),)),
    "Avro schema": Target(_avro_schema, (SchemaRefused,), (AVRO_SCHEMA.encode(),)),
    "JSON values by schema": Target(_json_schema_values, (), (JSON_SCHEMA_VALUES,)),
    "JSON Schema": Target(
        _json_schema,
        (SchemaRefused,),
        (JSON_SCHEMA.encode(), f"{JSON_SCHEMA}\0{USED_SCHEMA}".encode()),
    ),
    "Protobuf values": Target(_protobuf_values, (), PROTOBUF_VALUES),
    "Protobuf schema": Target(
        _protobuf_schema,
        (SchemaRefused,),
        (PROTOBUF_SCHEMA.replace("map<int32, N>", "repeated E").encode(),),
        inputs=10,  # each starts a process
    ),
}
