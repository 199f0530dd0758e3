"""Structures that grow: types that are used again, nests, many entries, and values that amplify.

Bytes that are changed at random seldom hit them. Here each input seeds the choices of which a
structure is made.
"""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pyarrow as pa
from tests.consumer.decode.value_bombs import BOMBS, HEADER, zigzag
from tests.fuzz.target import Target

from binwright.consumer.decode.avro_schemas import AvroSchema
from binwright.consumer.decode.avro_values import AvroDecoder
from binwright.consumer.decode.csv_values import CsvDecoder
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.protobuf_compiler import compiled
from binwright.consumer.decode.protobuf_schemas import ProtobufSchema
from binwright.consumer.decode.protobuf_values import ProtobufDecoder, TableSchema
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings
from binwright.tables.columns import parse_columns
from binwright.tables.json_schemas import JsonSchema
from binwright.tables.schemas import SchemaRefused

MOST = 8 << 20  # bytes of memory that a value may take
SEEDS = tuple(bytes([n]) for n in range(40))
_SIMPLE = ("null", "boolean", "int", "long", "float", "double", "string", "bytes")
_SQL = ("INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL(38,9)")
_ODD = (
    *("9999-12-31T23:59:59.999999Z", "0001-01-01", "-9999-01-01", "1677-09-21T00:12:43Z"),
    *("2262-04-12 00:00", "2016-12-31T23:59:60Z", "24:00", "2026-02-29", "1e400", "-0", "1e-400"),
    *("9" * 39, "0." + "0" * 400 + "1", "NaN", "-Infinity", "1e999999999", "0x10", "+1", "1_0"),
    *("170141183460469231731687303715884105728", "3.4028236e38", "", " ", "\ud800", "é" * 50),
)


def _avro_type(choose: Random, named: list[str], depth: int) -> Any:
    """Return a type, perhaps one of those that were named before."""
    kinds = ["simple", "simple", "named"] + ["record", "array", "map", "union", "logical"] * (
        depth > 0
    )
    match choose.choice(kinds):
        case "record":
            name = f"R{len(named)}"
            named.append(name)
            count = choose.choice([0, 1, 2, 2, 30])
            fields = [
                {"name": f"f{n}", "type": _avro_type(choose, named, depth - 1)}
                for n in range(count)
            ]
            return {"type": "record", "name": name, "fields": fields}
        case "array":
            return {"type": "array", "items": _avro_type(choose, named, depth - 1)}
        case "map":
            return {"type": "map", "values": _avro_type(choose, named, depth - 1)}
        case "union":
            count = choose.randrange(1, 4)
            return [_avro_type(choose, named, depth - 1) for _ in range(count)]
        case "logical":
            return choose.choice(
                [
                    {"type": "long", "logicalType": "timestamp-micros"},
                    {"type": "int", "logicalType": "date"},
                    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9},
                    {"type": "fixed", "name": f"F{choose.random()}".replace(".", ""), "size": 16},
                ]
            )
        case "named" if named:
            return choose.choice(named)
    return choose.choice(_SIMPLE)


def _amplifying(choose: Random) -> bytes:
    """Return bytes of which few ask for much: counts, and the same bytes many times."""
    parts = []
    for _ in range(choose.randrange(1, 6)):
        item = choose.choice([b"\0", b"\2", b"\1", b"\2a", b"\x80\x01", choose.randbytes(3)])
        count = choose.choice([1, 3, 1_000, 60_000])
        parts += [zigzag(choose.choice([count, count, 1 << 40])), item * count, b"\0"]
    return b"".join(parts)


def _avro(content: bytes) -> object:
    choose, named = Random(content), list[str]()
    top = _avro_type(choose, named, choose.randrange(1, 6))
    for _ in range(choose.choice([0, 0, 20])):  # each level is used twice
        name = f"R{len(named)}"
        fields = [{"name": "a", "type": top}, {"name": "b", "type": named[-1] if named else "int"}]
        top = {"type": "record", "name": name, "fields": fields}
        named.append(name)
    schema = AvroSchema(json.dumps(top))
    values = [HEADER + _amplifying(choose) for _ in range(3)]
    return AvroDecoder(schema.columns, {7: schema}, MOST).decode(pa.array(values, pa.binary()))


def _columns(choose: Random, depth: int) -> str:
    match choose.choice(["simple", "array", "map", "struct"] if depth else ["simple"]):
        case "array":
            return f"ARRAY<{_columns(choose, depth - 1)}>"
        case "map":
            return f"MAP<STRING, {_columns(choose, depth - 1)}>"
        case "struct":
            count = choose.choice([1, 3, 60])
            return f"STRUCT<{', '.join(f'f{n}: {_columns(choose, 0)}' for n in range(count))}>"
    return choose.choice(_SQL)


def _json(choose: Random, depth: int) -> str:
    """Return JSON whose parts are there many times, with odd numbers, times and names."""
    match choose.choice(["odd", "number", "array", "object"] if depth else ["odd", "number"]):
        case "number":
            return choose.choice(["0", "-1.5e300", "1e-5", "9" * 300, "true", "null", "{}", "[]"])
        case "array":
            item = _json(choose, depth - 1)
            count = max(min(choose.choice([1, 3, 300, 60_000]), 200_000 // len(item)), 1)
            return f"[{','.join([item] * count)}]"
        case "object":
            parts = [
                f"{json.dumps(f'f{n}')}:{_json(choose, depth - 1)}"
                for n in range(choose.choice([0, 1, 3]))
            ]
            return f"{{{','.join(parts)}}}"
    return json.dumps(choose.choice(_ODD))


def _json_values(content: bytes) -> object:
    choose = Random(content)
    columns = parse_columns(f"x {_columns(choose, 2)}, f0 {_columns(choose, 1)}")
    texts = [f'{{"x":{_json(choose, 4)},"f0":{_json(choose, 1)}}}' for _ in range(4)]
    values = pa.array([text.encode(errors="surrogatepass") for text in texts], pa.binary())
    VariantDecoder(parse_columns("v VARIANT"), MOST).decode(values)
    return JsonDecoder(columns, most_bytes=MOST).decode(values)


def _csv_values(content: bytes) -> object:
    choose = Random(content)
    columns = parse_columns(", ".join(f"c{n} {kind}" for n, kind in enumerate(_SQL)))
    lines = [",".join(choose.choices(_ODD, k=len(_SQL))) for _ in range(20)]
    values = [line.encode(errors="surrogatepass") for line in lines]
    return CsvDecoder(columns, ",", MOST).decode(pa.array(values, pa.binary()))


def _bomb(content: bytes) -> object:
    """Decode what is known to amplify, of any size."""
    choose = Random(content)
    bomb = BOMBS[choose.choice(sorted(BOMBS))]
    values = [bomb.value(choose.choice([10, 5_000, 100_000])) for _ in range(2)]
    return bomb.decoder(MOST).decode(pa.array(values, pa.binary()))


def _json_schema_of(choose: Random, depth: int) -> Any:
    match choose.choice(["object", "array", "union", "ref", "simple"] if depth else ["simple"]):
        case "object":
            count = choose.choice([1, 2, 20])
            parts = {f"f{n}": _json_schema_of(choose, depth - 1) for n in range(count)}
            return {"type": "object", "properties": parts, "required": [*parts][:1]}
        case "array":
            return {"type": "array", "items": _json_schema_of(choose, depth - 1)}
        case "union":
            word = choose.choice(["oneOf", "anyOf", "allOf"])
            return {word: [_json_schema_of(choose, depth - 1) for _ in range(2)]}
        case "ref":
            return {"$ref": f"#/$defs/d{choose.randrange(12)}"}
    return {"type": choose.choice(["string", "integer", "number", "boolean", "null", "object"])}


def _json_schema(content: bytes) -> object:
    choose = Random(content)
    schema = _json_schema_of(choose, choose.randrange(1, 6))
    schema["$defs"] = {  # of which each may use the next one twice
        f"d{n}": choose.choice(
            [
                {"type": "string"},
                _json_schema_of(choose, 2),
                {"properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "ab"}},
            ]
        )
        for n in range(12)
    }
    return JsonSchema(json.dumps(schema), {}).columns


def _protobuf(content: bytes) -> object:
    """Decode amplifying values of messages that nest and use each other."""
    choose, count = Random(content), 6
    messages = []
    for n in range(count):
        others = [f"M{m}" for m in range(n + 1, count)] or ["int32"]
        kinds = [
            choose.choice(
                [
                    f"repeated {choose.choice(others)}",
                    f"optional {choose.choice(others)}",
                    f"map<string, {choose.choice(others)}>",
                    "repeated int64",
                    "repeated string",
                    "bytes",
                ]
            )
            for _ in range(choose.choice([1, 3, 12]))
        ]
        fields = " ".join(f"{kind} f{k} = {k};" for k, kind in enumerate(kinds, 1))
        messages.append(f"message M{n} {{ {fields} }}")
    table = TableSchema(
        ProtobufSchema(compiled(f'syntax = "proto3"; {" ".join(messages)}', {})), ""
    )
    pieces = [b"\x0a\0", b"\x12\0", b"\x0a\2\x0a\0", b"\x0a\4\x0a\2\x0a\0", b"\x08\1"]
    values = [
        HEADER + b"\0" + choose.choice(pieces) * choose.choice([1, 100, 30_000]) for _ in range(4)
    ]
    return ProtobufDecoder(table.columns, {7: table}, MOST).decode(pa.array(values, pa.binary()))


def _tables(content: bytes) -> object:
    """Return settings with many tables, of which some say the same of a topic."""
    choose, count = Random(content), Random(content).choice([1, 5, 300])
    entries = []
    for n in range(count):
        entry: dict[str, Any] = {
            "topics": [choose.choice([f"t{n}", f"t{n % 7}", f"t{n}.*", "(a|b)*c{1,9}"])],
            "format": choose.choice(["json", "variant", "csv", "string", "avro"]),
        }
        if choose.random() < 0.5:
            names = [f"c{k % choose.choice([3, 99])}" for k in range(choose.choice([1, 3, 40]))]
            entry["columns"] = ", ".join(f"{name} {_columns(choose, 1)}" for name in names)
        if choose.random() < 0.2:
            entry["table"] = choose.choice([f"t{n}", "shared", "t1__bad", "../x"])
        entries.append(entry)
    return load_settings(topics=[f"t{n}" for n in range(9)], tables=entries)


def _of(decode: Callable[[bytes], object], *errors: type[Exception], inputs: int = 20) -> Target:
    return Target(decode, errors, SEEDS, inputs)


STRUCTURES: Mapping[str, Target] = {
    f"structure: {name}": target
    for name, target in {
        "Avro": _of(_avro, SchemaRefused),
        "JSON and VARIANT": _of(_json_values),
        "odd times and numbers in CSV": _of(_csv_values),
        "values that amplify": _of(_bomb),
        "JSON Schema": _of(_json_schema, SchemaRefused),
        "Protobuf": _of(_protobuf, SchemaRefused, inputs=4),
        "tables of settings": _of(_tables, SettingsError, inputs=6),
    }.items()
}
