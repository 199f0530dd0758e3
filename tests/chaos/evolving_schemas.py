"""Schemas that get version after version, and values of each of them, good ones and bad ones."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from struct import pack, unpack
from typing import Any, Literal

from tests.consumer.decode import avro, json_schema

Kind = Literal["AVRO", "JSON"]
Fields = Mapping[str, Any]
"""The names of fields, and their types in the language of the schema."""

UNKNOWN = 999_999
"""The id of a schema that the registry never has."""
PARTS = ("top", "by", "items")
ADDED: Mapping[Kind, tuple[Any, ...]] = {
    "AVRO": ("string", "int", "float", 8),  # a number: a decimal of so many digits
    "JSON": ("string", "integer", "number", "boolean"),
}
WIDER: Mapping[Any, Any] = {"int": "long", "float": "double", 8: 12, 12: 16}
FAULTS = ("torn", "unknown", "nameless", "tombstone")
NULLS = 0.1
SCALE = 2
FIRST: Mapping[Kind, Fields] = {
    "AVRO": {"id": "long", "units": "int", "price": "float"},
    "JSON": {"id": "integer", "units": "integer", "price": "number"},
}


@dataclass(frozen=True, slots=True)
class Shape:
    """One version: the fields of the value, of a struct in it, and of the structs of a list."""

    kind: Kind
    top: Fields
    by: Fields
    items: Fields

    def next(self, drawn: Random, number: int) -> "Shape":
        """Return the next version: one more field, or a wider one."""
        part = drawn.choice(PARTS)
        fields: Fields = getattr(self, part)
        narrow = sorted(name for name, kind in fields.items() if kind in WIDER)
        if narrow and self.kind == "AVRO" and drawn.random() < 0.5:
            name = drawn.choice(narrow)
            changed = {**fields, name: WIDER[fields[name]]}
        else:
            changed = {**fields, f"{part}_{number}": drawn.choice(ADDED[self.kind])}
        changes: dict[str, Any] = {part: changed}
        return replace(self, **changes)

    @property
    def schema(self) -> dict[str, Any]:
        """Return the schema as it is registered; the note is last, so a torn value lacks of it."""
        if self.kind == "JSON":
            listed = {"type": "array", "items": json_schema.objects(**self.items)}
            by = json_schema.objects(**self.by)
            return json_schema.objects(**self.top, by=by, items=listed, note="string")
        listed = {"type": "array", "items": _record(self.items, "Item")}
        top = [(name, _nullable(kind)) for name, kind in self.top.items()]
        inside = ("by", ["null", _record(self.by, "By")]), ("items", listed)
        return avro.record(*top, *inside, ("note", "string"))

    def value(self, drawn: Random, note: str) -> dict[str, Any]:
        """Return a value; a field may be NULL, and an integer as large as its type allows."""
        by = None if drawn.random() < NULLS else _drawn(self.by, drawn)
        items = [_drawn(self.items, drawn) for _ in range(drawn.randrange(3))]
        return {**_drawn(self.top, drawn), "by": by, "items": items, "note": note}

    def written(self, value: Any, number: int) -> bytes:
        """Return a value as a serializer of Confluent's writes it."""
        if self.kind == "AVRO":
            return avro.written(self.schema, value, number)
        present = {name: each for name, each in value.items() if each is not None}
        return json_schema.written(present, number)


def first_shape(kind: Kind) -> Shape:
    """Return the first version."""
    string, whole = ("string", "int") if kind == "AVRO" else ("string", "integer")
    return Shape(kind, FIRST[kind], {"name": string}, {"amount": whole})


def spoiled(value: bytes, fault: str) -> bytes | None:
    """Return what a producer writes instead of a good value; a tombstone is no bad record."""
    match fault:
        case "torn":
            return value[:-1]
        case "unknown":
            return b"\0" + UNKNOWN.to_bytes(4, "big") + value[5:]
        case "nameless":
            return b"\1" + json.dumps("no schema").encode()
    return None


def _record(fields: Fields, name: str) -> dict[str, Any]:
    return avro.record(*((n, _nullable(kind)) for n, kind in fields.items()), name=name)


def _nullable(kind: Any) -> list[Any]:
    if isinstance(kind, int):
        return [
            "null",
            {"type": "bytes", "logicalType": "decimal", "precision": kind, "scale": SCALE},
        ]
    return ["null", kind]


def _drawn(fields: Fields, drawn: Random) -> dict[str, Any]:
    return {
        name: None if drawn.random() < NULLS else _value(kind, drawn)
        for name, kind in fields.items()
    }


def _value(kind: Any, drawn: Random) -> Any:
    match kind:
        case int():
            return Decimal(drawn.randrange(10**kind)).scaleb(-SCALE)
        case "string":
            return f"text {drawn.randrange(1 << 30):x} ÄÖ"
        case "boolean":
            return drawn.random() < 0.5
        case "float":
            return unpack("f", pack("f", drawn.uniform(-1e6, 1e6)))[0]
        case "double" | "number":
            return drawn.uniform(-1e12, 1e12)
    bits = 31 if kind == "int" else 63
    return drawn.randrange(-(1 << bits), 1 << bits)
