"""Values of which a few bytes take much memory once they are decoded, of each format."""

import json
import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from tests.consumer.decode import avro, protobuf
from tests.fuzz.limits import peak_memory

from binwright.consumer.decode.avro_values import AvroDecoder
from binwright.consumer.decode.csv_values import CsvDecoder
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.protobuf_values import ProtobufDecoder, TableSchema
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.tables.columns import parse_columns
from binwright.tables.ports import ValueDecoder

HEADER = b"\0\0\0\0\7"


@dataclass(frozen=True, slots=True)
class Bomb:
    """A value of a length that can be chosen.

    Attributes:
        decoder: Returns what decodes it, where values may take so many bytes.
        value: Returns one of about so many bytes.
    """

    decoder: Callable[[int], ValueDecoder]
    value: Callable[[int], bytes]


def _json(columns: str, *items: str, around: str = '{"x":[%s]}') -> Bomb:
    item = ",".join(items)
    before, after = around.split("%s")
    return Bomb(
        lambda most: JsonDecoder(parse_columns(columns), most_bytes=most),
        lambda size: (before + ",".join([item] * (size // (len(item) + 1) + 1)) + after).encode(),
    )


def _variant(item: str) -> Bomb:
    return Bomb(
        lambda most: VariantDecoder(parse_columns("v VARIANT"), most),
        lambda size: ("[" + ",".join([item] * (size // (len(item) + 1) + 1)) + "]").encode(),
    )


def _csv(columns: str, item: str, end: str = "") -> Bomb:
    return Bomb(
        lambda most: CsvDecoder(parse_columns(columns), ",", most),
        lambda size: (item * (size // len(item)) + end).encode(),
    )


def zigzag(number: int) -> bytes:
    """Return a number as Avro writes it, not below 0."""
    found, left = bytearray(), 2 * number
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*found, left))


def _avro(kind: object, item: bytes, columns: str = "") -> Bomb:
    schema = avro.parsed(avro.record(("x", kind)))
    into = parse_columns(columns) if columns else schema.columns

    def value(size: int) -> bytes:
        count = size // len(item)
        return HEADER + zigzag(count) + item * count + b"\0"

    return Bomb(lambda most: AvroDecoder(into, {7: schema}, most), value)


def _protobuf(field: str, item: bytes, rest: str = "", *, packed: bool = False) -> Bomb:
    schema = protobuf.parsed(protobuf.proto(field, rest=rest))
    table = TableSchema(schema, "")

    def value(size: int) -> bytes:
        content = item * (size // len(item))
        if packed:
            length, left = bytearray(), len(content)
            while left > 0x7F:
                length.append(left & 0x7F | 0x80)
                left >>= 7
            content = b"\x0a" + bytes((*length, left)) + content
        return HEADER + b"\0" + content

    return Bomb(lambda most: ProtobufDecoder(table.columns, {7: table}, most), value)


def _items(**fields: object) -> dict[str, object]:
    return {"type": "array", "items": avro.record(*fields.items(), name="Item")}


_WIDE = ", ".join(f"c{n}: BIGINT" for n in range(100))
_NULLS = {f"n{n}": "null" for n in range(500)}
_OPTIONAL = {f"o{n}": ["null", "string"] for n in range(20)}
BOMBS = {
    "JSON {} in no column": _json("a INT", "{}"),
    "JSON [] in no column": _json("a INT", "[]"),
    "JSON [1] in no column": _json("a INT", "[1]"),
    "JSON objects": _json("x ARRAY<STRUCT<y: INT>>", '{"y":1}'),
    "JSON {} as structs": _json("x ARRAY<STRUCT<y: INT>>", "{}"),
    "JSON {} as wide structs": _json(f"x ARRAY<STRUCT<{_WIDE}>>", "{}"),
    "JSON numbers": _json("x ARRAY<BIGINT>", "1", "1000", "123456789012"),
    "JSON floats": _json("x ARRAY<DOUBLE>", "1.5"),
    "JSON short texts": _json("x ARRAY<STRING>", '"a"', '"é"', '"ab"'),
    "JSON a text": _json("x STRING", "a" * 99, around='{"x":"%s"}'),
    "JSON a wide text": _json("x STRING", "a" * 99, around='{"x":"😀%s"}'),
    "JSON an escaped text": _json("x STRING", "a" * 99, around='{"x":"\\ud83d\\ude00%s"}'),
    "JSON dates": _json("x ARRAY<DATE>", '"2026-01-01"'),
    "JSON moments": _json("x ARRAY<TIMESTAMP>", '"2026-01-01T00:00:00Z"'),
    "JSON decimals": _json("x ARRAY<DECIMAL(9,2)>", "1.5"),
    "JSON whole decimals": _json("x ARRAY<DECIMAL(9,2)>", "1"),
    "JSON {} beside a decimal": _json("d DECIMAL(9,2)", "{}"),
    "JSON a variant": _json("x VARIANT", "{}", '{"a":1.5}'),
    "JSON a map": Bomb(
        lambda most: JsonDecoder(parse_columns("x MAP<STRING, INT>"), most_bytes=most),
        lambda size: json.dumps({"x": {str(n): n for n in range(size // 14)}}).encode(),
    ),
    "variant {}": _variant("{}"),
    "variant texts": _variant('"é"'),
    "variant a wide text": _variant('"😀' + "a" * 999 + '"'),
    "CSV a text": _csv("a STRING", "a"),
    "CSV a wide text": _csv("a STRING", "a", "😀"),
    "CSV many fields": _csv("a STRING", "ab,"),
    "CSV empty fields": _csv("a STRING", ","),
    "Avro records of a boolean": _avro(_items(b="boolean"), b"\0"),
    "Avro records of nulls": _avro(_items(**_NULLS, b="boolean"), b"\0"),
    "Avro records in wide structs": _avro(
        _items(c0="boolean"), b"\1", f"x ARRAY<STRUCT<c0: BOOLEAN, {_WIDE.replace('c0:', 'd:')}>>"
    ),
    "Avro optional texts": _avro(_items(**_OPTIONAL), b"\2\2a" * 20),
    "Avro no optional texts": _avro(_items(**_OPTIONAL), b"\0" * 20),
    "Avro numbers": _avro({"type": "array", "items": "long"}, b"\x02\x80\x7f"),
    "Avro booleans": _avro({"type": "array", "items": "boolean"}, b"\0"),
    "Avro maps": _avro({"type": "array", "items": {"type": "map", "values": "long"}}, b"\0"),
    "Avro lists": _avro({"type": "array", "items": {"type": "array", "items": "long"}}, b"\0"),
    "Avro texts": _avro({"type": "array", "items": "string"}, b"\4ab"),
    "Avro decimals": _avro(
        {"type": "array", "items": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
        b"\2\7",
    ),
    "Protobuf messages": _protobuf("repeated N n", b"\x0a\0", "message N { int32 a = 1; }"),
    "Protobuf wide messages": _protobuf(
        "repeated N n",
        b"\x0a\0",
        f"message N {{ {' '.join(f'int64 a{n} = {n};' for n in range(1, 51))} }}",
    ),
    "Protobuf numbers": _protobuf("repeated int64 n", b"\x01\x80\x7f", packed=True),
    "Protobuf texts": _protobuf("repeated string n", b"\x0a\x01a"),
    "Protobuf no texts": _protobuf("repeated string n", b"\x0a\0"),
    "Protobuf maps": _protobuf("map<int32, N> n", b"\x0a\2\x08\1", "message N { int32 a = 1; }"),
}


def of_estimate(bomb: Bomb, most: int) -> tuple[bytes, int]:
    """Return a value that is estimated to take about so much memory, and the estimate, bytes."""
    size, decoder = 1_000, bomb.decoder(1 << 40)
    while True:
        value = bomb.value(size)
        need = decoder.memory(pa.array([value], pa.binary()))
        if need > most // 2:
            return value, need
        size *= 2


def _measured(name: str, most: int) -> tuple[int, int]:
    """Return what a value is estimated to take, and what it takes in a process of its own."""
    bomb = BOMBS[name]
    (value, need), decoder = of_estimate(bomb, most), bomb.decoder(1 << 40)
    decoder.decode(pa.array([bomb.value(50)], pa.binary()))  # loads what it needs
    before = peak_memory(reset=True)
    decoder.decode(pa.array([value], pa.binary()))
    return need, peak_memory() - before


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    for name in BOMBS:
        with context.Pool(1) as pool:
            found = pool.apply(_measured, (name, int(sys.argv[1])))
        sys.stdout.write(f"{json.dumps([name, *found])}\n")
