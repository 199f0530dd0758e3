"""Avro values of the tests, as producers write them."""

import json
from io import BytesIO
from typing import Any

import fastavro

from binwright.consumer.decode.avro_schemas import AvroSchema


def record(*fields: tuple[str, Any], name: str = "Order") -> dict[str, Any]:
    """Return the schema of a record with these fields."""
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


def doubling(depth: int) -> Any:
    """Return a schema of a few kB whose fields double with each level."""
    kind: Any = record(("x", "int"), name="R0")
    for level in range(1, depth):
        kind = record(("a", kind), ("b", f"R{level - 1}"), name=f"R{level}")
    return kind


def parsed(schema: Any, *references: Any) -> AvroSchema:
    """Return a schema as the product reads it."""
    return AvroSchema(json.dumps(schema), [json.dumps(each) for each in references])


def written(schema: Any, value: Any, number: int = 7) -> bytes:
    """Return a value as a serializer of Confluent's writes it: with the id of its schema."""
    sink = BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), value)
    return b"\x00" + number.to_bytes(4, "big") + sink.getvalue()
