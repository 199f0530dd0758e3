"""JSON Schemas of the tests, and values as producers write them."""

import json
from typing import Any

from binwright.tables.json_schemas import JsonSchema


def objects(**properties: Any) -> dict[str, Any]:
    """Return the schema of objects; a property is a schema, or the name of its type."""
    schemas = {
        n: {"type": each} if isinstance(each, str) else each for n, each in properties.items()
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": schemas,
    }


def parsed(schema: Any) -> JsonSchema:
    """Return a schema as the product reads it."""
    return JsonSchema(json.dumps(schema))


def written(value: Any, number: int = 7) -> bytes:
    """Return a value as a serializer of Confluent's writes it: with the id of its schema."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"\x00" + number.to_bytes(4, "big") + text
